import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from weft.core.dtype import DTYPES, bool_, float32, float64, int32, uint8
from weft.engine.expr import PRIMITIVES, cast, clz, const, fma, load, popcount
from weft.engine.interpreter import NUMPY, evaluate

REAL = [name for name, dtype in DTYPES.items() if dtype.kind != "c"]
EDGES = [0.0, -0.0, 1.9, -1.9, 300.0, -300.0, 449.0, 465.0, 2.0**31 - 128, 2.0**31, -(2.0**31), -(2.0**33), 2.0**32 + 1024,
         2.0**63, 2.0**64, 1.5e19, 1e30, -1e30, 65519.0, 65520.0, 2.0**-24, 1e-40, math.inf, -math.inf, math.nan]  # fmt: skip


def test_knows_every_primitive():
    assert NUMPY.table.keys() == PRIMITIVES.keys()


def to_numpy(tensor, dtype):
    return tensor.view(torch.uint8).numpy().view(dtype.numpy)


@pytest.mark.parametrize("target", REAL)
@pytest.mark.parametrize(
    "source", ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
)
def test_casts_like_torch(source, target):
    noise = torch.randn(4000, dtype=torch.float64) * 10.0 ** torch.randint(-6, 7, (4000,))
    x = torch.cat([torch.tensor(EDGES, dtype=torch.float64), noise]).to(getattr(torch, source))
    if target == "uint32":  # torch disagrees with itself beyond the range: its vectors and its tails differ
        x = x[(x.double() >= -(2.0**31)) & (x.double() < 2.0**32)]
    want = to_numpy(x.to(getattr(torch, target)), DTYPES[target])
    (got,) = evaluate([cast(load(0, DTYPES[source]), DTYPES[target])], [to_numpy(x, DTYPES[source])])
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))


finite = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(finite, finite, finite)
def test_fma_rounds_once(a, b, c):
    x, y, z = (np.array([v], np.float32) for v in (a, b, c))
    (got,) = evaluate([fma(load(0, float32), load(1, float32), load(2, float32))], [x, y, z])
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    with np.errstate(over="ignore"):
        neighbours = [
            got[0],
            np.nextafter(got[0], np.float32(np.inf)),
            np.nextafter(got[0], np.float32(-np.inf)),
        ]
    if all(np.isfinite(neighbours)):
        distances = [abs(Fraction(float(n)) - exact) for n in neighbours]
        assert distances[0] == min(distances)


def test_fma_of_special_values():
    x = np.array([np.inf, np.inf, 3e38, np.nan, 0, 1e-45], np.float32)
    (got,) = evaluate([fma(load(0, float32), load(0, float32), const(-1.0, float32))], [x])
    np.testing.assert_array_equal(got, np.array([np.inf, np.inf, np.inf, np.nan, -1, -1], np.float32))
    tiny = np.array([2.0**-30])
    (got,) = evaluate([fma(load(0, float64) + 1, load(0, float64) + 1, const(-1.0, float64))], [tiny])
    assert got[0] == 2.0**-29 + 2.0**-60


def test_integers_divide_toward_zero_and_shift_arithmetically():
    a, b = np.array([-7, 7, -7, 7], np.int32), np.array([2, 2, -2, -2], np.int32)
    x, y = load(0, int32), load(1, int32)
    quotient, rest, shifted = evaluate([x / y, x % y, x >> 1], [a, b])
    assert quotient.tolist() == [-3, 3, 3, -3] and rest.tolist() == [-1, 1, -1, 1]
    assert shifted.tolist() == [-4, 3, -4, 3]


def test_counts_bits():
    x = np.array([0, 1, 255, 16], np.uint8)
    zeros, ones = evaluate([clz(load(0, uint8)), popcount(load(0, uint8))], [x])
    assert zeros.tolist() == [8, 7, 0, 3] and ones.tolist() == [0, 1, 8, 1]


def test_loads_the_parts_of_complex_operands():
    z = np.array([1 + 2j], np.complex64)
    real, imag = evaluate([load((0, 0), float32), load((0, 1), float32)], [z])
    assert real[0] == 1 and imag[0] == 2


def test_narrow_constants_and_bools():
    (got,) = evaluate([~const(True, bool_) | load(0, bool_)], [np.array([True, False])])
    assert got.tolist() == [True, False]
    assert np.array([1], ml_dtypes.bfloat16).dtype == DTYPES["bfloat16"].numpy
