import mpmath
import numpy as np
import pytest

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
