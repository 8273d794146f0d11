import itertools
import math

import numpy as np
import pytest
import torch

from weft.core.dtype import complex64, complex128, float32, float64
from weft.engine import complexes, scalar
from weft.engine.complexes import Complex
from weft.engine.expr import load
from weft.engine.kernel import prepare_map
from weft.engine.loops import Result

PARTS = {np.complex64: (complex64, float32), np.complex128: (complex128, float64)}
UNARY = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "square", "sin", "cos",
         "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "sigmoid", "sgn", "angle",
         "absolute", "isnan", "isinf", "isfinite"]  # fmt: skip
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, math.inf, -math.inf, math.nan]


def compiled(function, *operands):
    dtype, part = PARTS[operands[0].dtype.type]
    value = function(*(Complex(load((i, 0), part), load((i, 1), part)) for i in range(len(operands))))
    parts = (value.real, value.imag) if isinstance(value, Complex) else (value,)
    whole = operands[0].dtype if isinstance(value, Complex) else parts[0].dtype.numpy
    out = np.empty(operands[0].shape, whole)
    arrays = [out, *map(np.ascontiguousarray, operands)]
    launch = prepare_map(
        [Result(parts)], [dtype] * len(operands), [], [out.size], [[a.itemsize] for a in arrays]
    )
    launch.entry(*(a.ctypes.data for a in arrays), launch.meta, launch.count)
    return out


def numbers(dtype, largest, seed=0, count=2000):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=count) + 1j * rng.normal(size=count)
    return (z * 10 ** rng.uniform(-3, math.log10(largest), count)).astype(dtype)


def check(got, want):
    torch.testing.assert_close(torch.from_numpy(got), want, equal_nan=True)


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize("name", UNARY)
def test_like_torch(name, dtype):
    z = numbers(dtype, 10)
    check(compiled(getattr(complexes, name), z), getattr(torch, name)(torch.from_numpy(z)))


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize("name", sorted(set(UNARY) - {"expm1"}))
def test_infinities_nans_and_zeros_like_torch(name, dtype):
    z = np.array([complex(x, y) for x, y in itertools.product(EDGES, EDGES)]).astype(dtype)
    got, want = compiled(getattr(complexes, name), z), getattr(torch, name)(torch.from_numpy(z))
    for part in ("real", "imag") if want.is_complex() else ("real",):
        check(np.ascontiguousarray(getattr(got, part)), getattr(want, part).contiguous())


def test_expm1_keeps_a_zero_imaginary_part():
    z = np.array([complex(math.inf, 0.0)])  # where torch gives NaN for it
    assert compiled(complexes.expm1, z)[0] == complex(math.inf, 0.0)


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "eq", "ne"])
def test_arithmetic_like_torch(name, dtype, edges):
    a, b = numbers(dtype, 10), numbers(dtype, 10, seed=1)
    if edges and name not in (
        "add",
        "sub",
    ):  # torch multiplies by alpha = 1 + 0i, so that infinities become NaN
        z = np.array([complex(x, y) for x, y in itertools.product(EDGES, EDGES)]).astype(dtype)
        a, b = (g.ravel() for g in np.meshgrid(z, z))
    functions = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
    }
    got = compiled(functions.get(name) or getattr(scalar, name), a, b)
    check(got, getattr(torch, name)(torch.from_numpy(a), torch.from_numpy(b)))


@pytest.mark.parametrize("dtype", PARTS)
def test_pow_like_torch(dtype):
    z, exponent = numbers(dtype, 2), numbers(dtype, 2, seed=1)
    want = torch.pow(torch.from_numpy(z), torch.from_numpy(exponent))
    # complex64: torch's own error grows with the exponent, ours is that of complex128 rounded.
    tolerance = {"rtol": 2e-5, "atol": 1e-5} if dtype is np.complex64 else {}
    torch.testing.assert_close(torch.from_numpy(compiled(complexes.pow, z, exponent)), want, **tolerance)


def test_pow_of_complex64_is_right_to_two_ulp():
    rng = np.random.default_rng(0)
    z = (rng.uniform(-20, 20, 500) + 1j * rng.uniform(-20, 20, 500)).astype(np.complex64)
    exponent = (rng.uniform(-15, 15, 500) + 1j * rng.uniform(-3, 3, 500)).astype(np.complex64)
    want = np.power(z.astype(np.complex128), exponent.astype(np.complex128))
    got = compiled(complexes.pow, z, exponent)
    error = np.abs(got - want) / np.abs(want)
    assert error[(np.abs(want) > 1e-37) & (np.abs(want) < 1e38)].max() < 2 * 2.0**-23


def test_no_overflow_on_the_way():
    z = np.array([3e300 + 4e300j, 3e-300 + 4e-300j])
    np.testing.assert_allclose(compiled(complexes.absolute, z), [5e300, 5e-300], rtol=1e-15)
    np.testing.assert_allclose(compiled(lambda a: a / a, z), [1, 1], rtol=1e-15)
    assert np.isfinite(compiled(complexes.exp, np.array([709.9 + 0.8j]))).all()
    np.testing.assert_allclose(compiled(complexes.sqrt, z) ** 2 / z, 1, rtol=1e-14)


ENDS = "log log2 log10 sqrt rsqrt asin acos acosh asinh atan atanh tanh".split()


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize("name", ENDS)
def test_both_ends_of_the_range_like_torch(name, dtype):
    """Each part to some units in its last place: torch computes these carefully, but for one part of acos."""
    limits = np.finfo(dtype)
    parts = [0.0, limits.smallest_subnormal, limits.tiny / 4, limits.tiny, limits.eps**2, limits.tiny**0.5, limits.eps, 0.5,
             1 - limits.eps / 2, 1.0, 1 + limits.eps, 2.0, 100.0, limits.max**0.5 * 1.5, limits.max / 8, limits.max]  # fmt: skip
    parts = np.array(parts)
    z = np.array([complex(x, y) for x, y in itertools.product([*parts, *-parts], repeat=2)]).astype(dtype)
    got, want = compiled(getattr(complexes, name), z), getattr(torch, name)(torch.from_numpy(z)).numpy()
    if name == "acos":
        want = abs(torch.acosh(torch.from_numpy(z)).numpy().imag) + 1j * want.imag
    with np.errstate(invalid="ignore"):
        for mine, theirs in ((got.real, want.real), (got.imag, want.imag)):
            bound = 64 * limits.eps * abs(theirs) + 8 * limits.smallest_subnormal
            same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs)) | (abs(mine - theirs) <= bound)
            assert same.all(), [(z[i], mine[i], theirs[i]) for i in np.flatnonzero(~same)[:5]]


def test_tanh_of_an_infinite_angle():
    z = np.array([complex(80, math.inf), complex(math.inf, math.inf), complex(-100, math.nan)])
    got, want = compiled(complexes.tanh, z), torch.tanh(torch.from_numpy(z)).numpy()
    np.testing.assert_array_equal(got.real, want.real)


def test_python_numbers_and_real_expressions_take_part():
    z = np.array([1 + 2j])
    assert compiled(lambda a: 2 * a - 1j, z)[0] == 2 + 3j
    assert compiled(lambda a: 1 / (a + a.real) * (2 + 2j), z)[0] == 1
