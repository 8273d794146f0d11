"""Measured accuracy over more points than fit here: docs/accuracy.md."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special
import torch

from weft.core.dtype import float32, float64
from weft.engine import approx
from weft.engine.expr import absolute, const, load, slow_path
from weft.engine.interpreter import evaluate
from weft.engine.kernel import prepare_map
from weft.engine.loops import Result

NUMPY_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
               "atanh": "arctanh"}  # fmt: skip
UNARY = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
         "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "erfinv", "sigmoid"]  # fmt: skip
BINARY = ["pow", "atan2", "hypot"]
TYPES = {float32: np.float32, float64: np.float64}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, math.inf, -math.inf, math.nan, 1e-40, -1e-40, 1e38, -1e38,
           88.8, -87.5, -103.5, -104.5, 128.0, -149.5, -151.0, 709.9, -745.5, 5e-324, 1e300, -1e300]  # fmt: skip


def compiled(expr, *operands):
    """The values of an expression, from machine code."""
    out = np.empty(operands[0].shape, expr.dtype.numpy)
    arrays = [out, *map(np.ascontiguousarray, operands)]
    dtypes = [float32 if a.dtype == np.float32 else float64 for a in arrays[1:]]
    launch = prepare_map([Result((expr,))], dtypes, [], [out.size], [[a.itemsize] for a in arrays])
    launch.entry(*(a.ctypes.data for a in arrays), launch.meta, launch.count)
    return out


def expression(name, dtype):
    return getattr(approx, name)(*(load(i, dtype) for i in range(2 if name in BINARY else 1)))


def sample(dtype, count, seed):
    """Random bits, and numbers of everyday size."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2 ** (8 * dtype.itemsize), count // 2, dtype=f"u{dtype.itemsize}").view(
        TYPES[dtype]
    )
    everyday = rng.choice([-1, 1], count // 4) * 2.0 ** rng.uniform(-20, 7, count // 4)
    with np.errstate(invalid="ignore"):  # signalling NaNs among the random bits
        return np.concatenate([bits, everyday, rng.uniform(-1.5, 1.5, count // 4)]).astype(TYPES[dtype])


def sigmoid(x):
    return np.where(x < 0, np.exp(-np.abs(x)), 1) / (1 + np.exp(-np.abs(x)))


def in_float64(name):
    if name == "sigmoid":
        return sigmoid
    return getattr(scipy.special, name, None) or getattr(
        np, {"pow": "power", "atan2": "arctan2"}.get(name, NUMPY_NAMES.get(name, name))
    )


def ulps(got, want, smallest_exponent, mantissa):
    """How far `got` is from `want`, in units of the last place of a float of this format."""
    _, exponent = np.frexp(want)
    return np.abs(got - want) / np.ldexp(1.0, np.maximum(exponent - 1, smallest_exponent) - mantissa)


@pytest.mark.parametrize("name", UNARY + BINARY)
def test_float32_is_right_to_one_ulp(name):
    operands = [sample(float32, 200_000, seed) for seed in range(2 if name in BINARY else 1)]
    with np.errstate(all="ignore"):
        want = in_float64(name)(*(x.astype(np.float64) for x in operands))
        rounded = want.astype(np.float32)
    got = compiled(expression(name, float32), *operands)
    regular = np.isfinite(rounded) & np.isfinite(got)
    overflow = np.abs(want) > np.finfo(np.float32).max
    np.testing.assert_array_equal(got[~regular & ~overflow], rounded[~regular & ~overflow])
    assert (np.abs(got[overflow]) >= np.finfo(np.float32).max).all()
    assert ulps(got[regular].astype(np.float64), want[regular], -126, 23).max() <= 1


def test_log1p_of_float32_where_its_terms_cancel():
    x = np.random.default_rng(0).uniform(0.34, 0.38, 100_000).astype(np.float32)
    want = np.log1p(x.astype(np.float64))
    assert ulps(compiled(expression("log1p", float32), x).astype(np.float64), want, -126, 23).max() < 0.85


def in_many_digits(name, *xs):
    xs = [mpmath.mpf(float(x)) for x in xs]
    own = {
        "exp2": lambda x: mpmath.power(2, x),
        "log2": lambda x: mpmath.log(x, 2),
        "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
        "pow": mpmath.power,
    }
    return own.get(name, getattr(mpmath, name, None))(*xs)


def in_domain(name, x):
    low, high = {"log": (0, 2e308), "log2": (0, 2e308), "log10": (0, 2e308), "log1p": (-1, 2e308), "acosh": (1, 2e308),
                 "asin": (-1, 1), "acos": (-1, 1), "atanh": (-1, 1), "erfinv": (-0.999999, 0.999999)}.get(name, (-2e308, 2e308))  # fmt: skip
    return (low < x) & (x < high)


@pytest.mark.parametrize("name", UNARY + BINARY)
def test_float64_is_right_to_one_ulp(name):
    operands = [sample(float64, 600, seed) for seed in range(2 if name in BINARY else 1)]
    if name == "pow":
        operands[0] = np.abs(operands[0])
    keep = np.logical_and.reduce([np.isfinite(x) & in_domain(name, x) for x in operands])
    operands = [x[keep] for x in operands]
    got = compiled(expression(name, float64), *operands)
    worst = 0
    with mpmath.workprec(200):
        for value, *xs in zip(got, *operands, strict=True):
            if not 1e-290 < abs(value) < 1e300:
                continue
            want = in_many_digits(name, *xs)
            exponent = mpmath.frexp(want)[1]
            worst = max(worst, abs(mpmath.mpf(float(value)) - want) * mpmath.mpf(2) ** (53 - exponent))
    assert 0 < worst <= 1


@pytest.mark.parametrize("dtype", [float32, float64], ids=lambda d: d.name)
@pytest.mark.parametrize("name", UNARY + BINARY)
def test_special_values_like_torch(name, dtype):
    with np.errstate(over="ignore", under="ignore"):
        x = np.array(SPECIAL).astype(TYPES[dtype])
    operands = [a.ravel() for a in np.meshgrid(x, x)] if name in BINARY else [x]
    got = compiled(expression(name, dtype), *operands)
    want = getattr(torch, name)(*map(torch.from_numpy, operands)).numpy()
    np.testing.assert_allclose(
        got, want, rtol=1e-5 if dtype is float32 else 1e-13, atol=1e-43 if dtype is float32 else 1e-320
    )
    zero = (want == 0) & (got == 0)
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize("dtype", [float32, float64], ids=lambda d: d.name)
@pytest.mark.parametrize("name", UNARY + BINARY)
def test_the_interpreter_agrees_to_the_bit(name, dtype):
    expr = expression(name, dtype)
    operands = [sample(dtype, 200, 7 + seed) for seed in range(2 if name in BINARY else 1)]
    (want,) = evaluate([expr], operands)
    np.testing.assert_array_equal(compiled(expr, *operands), want)


@pytest.mark.parametrize("dtype", [float32, float64], ids=lambda d: d.name)
@pytest.mark.parametrize("count", [1, 7, 16, 61])
def test_slow_path_takes_the_exception_where_its_condition_holds(dtype, count):
    x = np.arange(count).astype(TYPES[dtype])
    operand, argument = load(0, dtype), load(0, dtype)
    expr = slow_path(operand, operand + 1, const(5.0, dtype) < absolute(argument), argument * -1)
    np.testing.assert_array_equal(compiled(expr, x), np.where(x > 5, -x, x + 1))


@pytest.mark.parametrize("dtype", [float32, float64], ids=lambda d: d.name)
def test_slow_path_of_several_operands(dtype):
    a, b = (np.arange(61).astype(TYPES[dtype])[::step].copy() for step in (1, -1))
    x, y = load(0, dtype), load(1, dtype)
    expr = slow_path((x, y), x + y, x < y, x - y)
    np.testing.assert_array_equal(compiled(expr, a, b), np.where(a < b, a - b, a + b))
