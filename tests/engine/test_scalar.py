import math

import numpy as np
import pytest
import torch

from weft.core.dtype import DTYPES, float32, int32, int64
from weft.engine import scalar
from weft.engine.complexes import Complex
from weft.engine.expr import Expr, load
from weft.engine.interpreter import evaluate

EDGES = np.array([0.0, -0.0, 1.5, -1.5, 2.5, -0.5, math.inf, -math.inf, math.nan])


def values(expr, *operands):
    (result,) = evaluate([expr], operands)
    return result


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["square", "reciprocal", "rsqrt", "sqrt", "absolute", "sign", "sgn", "isnan", "isinf",
                                  "isfinite", "floor", "ceil", "trunc", "signbit", "angle"])  # fmt: skip
def test_like_torch(name, dtype):
    x = EDGES.astype(dtype)
    want = getattr(torch, name)(torch.from_numpy(x))
    got = torch.from_numpy(np.asarray(values(getattr(scalar, name)(load(0, DTYPES[dtype])), x)))
    torch.testing.assert_close(got, want, equal_nan=True)
    assert (torch.signbit(got) == torch.signbit(want))[~torch.isnan(want)].all()


@pytest.mark.parametrize(("dtype", "exponents"), [("float32", (20, 30)), ("float64", (49, 59))])
def test_fmod_is_exact_where_the_quotient_has_more_digits_than_a_float(dtype, exponents):
    rng = np.random.default_rng(0)
    b = rng.uniform(0.5, 2, 4096).astype(dtype)
    a = (b * 2.0 ** rng.uniform(*exponents, 4096)).astype(dtype)
    got = values(scalar.fmod(load(0, DTYPES[dtype]), load(1, DTYPES[dtype])), a, b)
    np.testing.assert_array_equal(got, np.fmod(a, b))


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_extremes_propagate_nan(name):
    a, b = (g.ravel() for g in np.meshgrid(EDGES, EDGES))
    got = values(getattr(scalar, name)(load(0, DTYPES["float64"]), load(1, DTYPES["float64"])), a, b)
    torch.testing.assert_close(
        torch.from_numpy(got), getattr(torch, name)(*map(torch.from_numpy, (a, b))), equal_nan=True
    )


def test_integers_have_signs_and_extremes():
    x = np.array([-3, 0, 4], np.int32)
    assert values(scalar.sign(load(0, int32)), x).tolist() == [-1, 0, 1]
    assert values(scalar.maximum(load(0, int32), 2), x).tolist() == [2, 2, 4]
    assert values(scalar.signbit(load(0, int64)), x.astype(np.int64)).tolist() == [True, False, False]


def test_dispatches_on_its_operands():
    x = load(0, float32)
    assert isinstance(scalar.exp(x), Expr)
    assert isinstance(scalar.exp(Complex(x, x)), Complex)
    assert isinstance(scalar.where(x < 1, Complex(x, x), 2.0), Complex)
    with pytest.raises(NotImplementedError, match="erf of complex numbers"):
        scalar.erf(Complex(x, x))
