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
        floor = 1 if name == "digamma" else 0
        errors = [abs(float(y) - e) / max(abs(e), floor) for y, e in zip(got, expected, strict=True)]
    assert max(errors) < 6 * np.finfo(dtype).eps


def test_special_values():
    infinity, nan = float("inf"), float("nan")
    assert weft.digamma(weft.tensor([0.0, -0.0, infinity])).tolist() == [-infinity, infinity, infinity]
    assert weft.digamma(weft.tensor([-1.0, -infinity, nan])).isnan().all()
    assert weft.i0(weft.tensor([0.0, 1000.0])).tolist() == [1, infinity]
    assert weft.special.i0e(weft.tensor([infinity])).tolist() == [0]
    assert weft.polygamma(1, weft.tensor([0.0, infinity])).tolist() == [infinity, 0]
