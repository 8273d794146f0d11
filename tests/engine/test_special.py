import mpmath
import numpy as np
import pytest
import torch

import weft

X = np.concatenate(
    [np.linspace(-29.7, 29.7, 120), np.linspace(0.01, 3, 60), [8.0, 8.0001, 1e-5, -0.5, -1e-5, 700.0]]
)
FUNCTIONS = {
    "i0": (weft.i0, lambda x: mpmath.besseli(0, x)),
    "i1": (weft.special.i1, lambda x: mpmath.besseli(1, x)),
    "i0e": (weft.special.i0e, lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x))),
    "i1e": (weft.special.i1e, lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x))),
    "lgamma": (weft.lgamma, lambda x: mpmath.re(mpmath.loggamma(x))),
    "digamma": (weft.digamma, mpmath.digamma),
    "trigamma": (lambda x: weft.polygamma(1, x), lambda x: mpmath.polygamma(1, x)),
}


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_accuracy(name, dtype):
    """A few units in the last place; digamma, which has zeros, absolutely so below 1."""
    function, exact = FUNCTIONS[name]
    x = X[np.abs(X) < 90].astype(dtype) if dtype == "float32" else X
    got = function(weft.from_numpy(x)).numpy()
    with mpmath.workdps(30):
        expected = [exact(mpmath.mpf(float(value))) for value in x]
        floor = 1 if name in ("digamma", "lgamma") else 0
        errors = [abs(float(y) - e) / max(abs(e), floor) for y, e in zip(got, expected, strict=True)]
    assert max(errors) < 6 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_lgamma_at_its_zeros_and_at_both_ends_of_the_range(dtype):
    limits = np.finfo(dtype)
    steps = limits.eps * 2.0 ** np.arange(-1, 50)
    steps = steps[steps < 0.3]
    tiny = limits.smallest_subnormal * 3.0 ** np.arange(60)
    x = np.concatenate(
        [1 + steps, 1 - steps, 2 + steps, 2 - steps, tiny, -tiny, 7.9 + steps, 10 ** np.arange(36.0)]
    )
    x = x.astype(dtype)
    got = weft.lgamma(weft.from_numpy(x)).numpy()
    with mpmath.workdps(40):
        expected = [mpmath.re(mpmath.loggamma(mpmath.mpf(float(value)))) for value in x[(x != 1) & (x != 2)]]
    got = got[(x != 1) & (x != 2)]
    errors = [abs(float(y) - e) / abs(e) for y, e in zip(got, expected, strict=True)]
    assert max(errors) < 3 * limits.eps


def test_lgamma_of_special_values():
    infinity, nan = float("inf"), float("nan")
    x = weft.tensor(
        [0.0, -0.0, -1.0, -2.0, -1.7e308, infinity, -infinity, 1.7e308, 1.0, 2.0], dtype=weft.float64
    )
    assert x.lgamma().tolist() == [infinity] * 8 + [0.0, 0.0]
    assert weft.tensor([nan]).lgamma().isnan().all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_airy(dtype):
    """Errors are in units of the function's size: left of 0 that of its waves."""
    x = np.concatenate([np.linspace(-14, 20, 700), [-10.5, 10.5, -0.0, 5e-324]]).astype(dtype)
    with mpmath.workdps(40):
        expected = np.array([float(mpmath.airyai(mpmath.mpf(float(value)))) for value in x])
    size = np.where(x < 0, np.maximum(abs(x), 1.0).astype(np.float64) ** -0.25, expected)
    errors = abs(weft.special.airy_ai(weft.from_numpy(x)).numpy() - expected) / size
    assert errors.max() < (8 if dtype is np.float32 else 60) * np.finfo(dtype).eps


def test_airy_far_from_zero():
    x = weft.tensor([3141590.0, 1e30, -3141590.0, -1e7, 2.0], dtype=weft.float64)
    with mpmath.workdps(40):
        expected = [float(mpmath.airyai(value)) for value in x.tolist()]
    np.testing.assert_allclose(weft.special.airy_ai(x).numpy(), expected, rtol=1e-5, atol=0)
    assert weft.special.airy_ai(weft.tensor(3141590.0)) == 0
    assert weft.special.airy_ai(weft.tensor([float("inf"), -float("inf"), float("nan")])).isnan().all()


def test_special_values():
    infinity, nan = float("inf"), float("nan")
    assert weft.digamma(weft.tensor([0.0, -0.0, infinity])).tolist() == [-infinity, infinity, infinity]
    assert weft.digamma(weft.tensor([-1.0, -infinity, nan])).isnan().all()
    assert weft.i0(weft.tensor([0.0, 1000.0])).tolist() == [1, infinity]
    assert weft.special.i0e(weft.tensor([infinity])).tolist() == [0]
    assert weft.polygamma(1, weft.tensor([0.0, infinity])).tolist() == [infinity, 0]


def quantile(p):
    if p > 0.5:
        return -quantile(1 - p)
    if p > 1e-6:
        return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)
    start = -mpmath.sqrt(-2 * mpmath.log(p))
    return mpmath.findroot(lambda x: log_ndtr(x) - mpmath.log(p), (start, start + 1))


def log_ndtr(x):
    area = mpmath.erfc(abs(x) / mpmath.sqrt(2)) / 2
    return mpmath.log(area) if x < 0 else mpmath.log1p(-area)


def spherical(x):
    return mpmath.sin(x) / x


RIGHT = np.concatenate([np.linspace(0.01, 2, 60), np.linspace(2.01, 40, 120), [8.0, 8.0001, 1e-9, 500.0]])
BOTH = np.concatenate([RIGHT, -RIGHT])
P = np.concatenate([np.linspace(0.001, 0.999, 80), 10.0 ** np.arange(-300, -4, 12), [0.075, 0.0774, 1.5e-11]])
OTHERS = {
    "bessel_j0": (lambda x: mpmath.besselj(0, x), BOTH),
    "bessel_j1": (lambda x: mpmath.besselj(1, x), BOTH),
    "bessel_y0": (lambda x: mpmath.bessely(0, x), RIGHT),
    "bessel_y1": (lambda x: mpmath.bessely(1, x), RIGHT),
    "modified_bessel_k0": (lambda x: mpmath.besselk(0, x), RIGHT),
    "modified_bessel_k1": (lambda x: mpmath.besselk(1, x), RIGHT),
    "scaled_modified_bessel_k0": (lambda x: mpmath.besselk(0, x) * mpmath.exp(x), RIGHT),
    "scaled_modified_bessel_k1": (lambda x: mpmath.besselk(1, x) * mpmath.exp(x), RIGHT),
    "spherical_bessel_j0": (spherical, BOTH),
    "erfcx": (lambda x: mpmath.exp(x * x) * mpmath.erfc(x), BOTH[BOTH > -26]),
    "log_ndtr": (log_ndtr, BOTH),
    "ndtri": (quantile, P),
}


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("name", OTHERS)
def test_accuracy_of_other_functions(name, dtype):
    """A few units in the last place; functions with zeros absolutely so, in units of what they swing by."""
    exact, x = OTHERS[name]
    limits = np.finfo(dtype)
    x = x.astype(dtype)
    got = getattr(weft.special, name)(weft.from_numpy(x)).numpy()
    with mpmath.workdps(40):
        expected = [exact(mpmath.mpf(float(value))) for value in x]
        floor = 0.2 if name[:8] in ("bessel_j", "bessel_y") else 0
        usual = [limits.tiny < abs(e) < limits.max for e in expected]
        errors = [
            abs(float(y) - e) / max(abs(e), floor)
            for y, e, kept in zip(got, expected, usual, strict=True)
            if kept
        ]
    assert len(errors) > 80
    assert max(errors) < 8 * limits.eps


@pytest.mark.parametrize("name", OTHERS)
def test_special_values_are_pytorchs(name):
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 5e-324, 1e-310, 1e300, -1e300]
    if name[:8] in ("bessel_j", "bessel_y"):
        values = values[:-2]  # PyTorch takes the sine of these by a reduction of its own
    x = np.array(values)
    expected = getattr(torch.special, name)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(
        getattr(weft.special, name)(weft.from_numpy(x)).numpy(), expected, rtol=1e-6, atol=5e-324
    )
