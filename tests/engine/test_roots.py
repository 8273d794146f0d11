"""Roots of unity are right to the last bit or two."""

import mpmath
import pytest

from weft.engine.roots import roots_of_unity


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 12, 15, 64, 1001])
def test_like_exact_numbers(n):
    with mpmath.workdps(30):
        for k, root in enumerate(roots_of_unity(n).tolist()):
            assert abs(mpmath.expjpi(mpmath.mpf(-2 * k) / n) - root) < 2.3e-16


def test_the_axes_are_exact():
    assert roots_of_unity(4).tolist() == [1, -1j, -1, 1j]
