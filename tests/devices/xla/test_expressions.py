"""The rules of JAX beside the interpreter's."""

import jax
import numpy as np
import pytest

from weft.core.dtype import DTYPES, float32, float64, int32
from weft.devices.xla import expressions
from weft.engine.expr import PRIMITIVES, cast, clz, const, fma, ldexp, load, popcount
from weft.engine.interpreter import evaluate

EDGES = [
    0.0,
    -0.0,
    1.9,
    -1.9,
    300.0,
    2.0**31,
    -(2.0**33),
    2.0**63,
    1.5e19,
    -1e30,
    65520.0,
    np.inf,
    -np.inf,
    np.nan,
]


def traced(root, *operands):
    """What a compiled function of JAX makes of the expression."""
    leaves = [load(k, dtype) for k, (dtype, _) in enumerate(operands)]
    with jax.enable_x64(True):
        function = jax.jit(
            lambda *arrays: expressions.evaluate([root], dict(zip(leaves, arrays, strict=True)))[0]
        )
        return np.asarray(function(*(array for _, array in operands)))


def test_knows_every_primitive():
    assert expressions.tracer.table.keys() == PRIMITIVES.keys() | {"call"}


@pytest.mark.parametrize(
    "target", ["bool", "uint8", "int32", "int64", "uint64", "float16", "bfloat16", "float32", "float8_e4m3fn"]
)
@pytest.mark.parametrize("source", [float32, float64])
def test_casts(source, target):
    x = np.array(EDGES, source.numpy)
    root = cast(load(0, source), DTYPES[target])
    (wanted,) = evaluate([root], [x])
    found = traced(root, (source, x))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))


@pytest.mark.parametrize("function", [clz, popcount])
def test_bits(function):
    x = np.array([0, 1, -1, 255, 1 << 30], np.int32)
    root = function(load(0, int32))
    np.testing.assert_array_equal(traced(root, (int32, x)), evaluate([root], [x])[0])


@pytest.mark.parametrize("dtype", [float32, float64])
def test_rounding_by_a_large_constant_stays(dtype):
    """XLA computes (x + c) - c as x where it can."""
    magic = const(1.5 * 2.0**dtype.mantissa_bits, dtype)
    x = np.array([1.3, 2.6, -7.7], dtype.numpy)
    a = load(0, dtype)
    for root in ((a + magic) - magic, fma(a, const(1.0, dtype), magic) - magic):
        np.testing.assert_array_equal(traced(root, (dtype, x)), np.rint(x))


def test_ldexp():
    x, k = np.array([1.5, 1.5, -3.0, 1.0], np.float32), np.array([3, -100, 120, -126], np.int32)
    found = traced(ldexp(load(0, float32), load(1, int32)), (float32, x), (int32, k))
    np.testing.assert_array_equal(found, np.ldexp(x, k))
