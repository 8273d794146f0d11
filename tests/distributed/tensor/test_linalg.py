"""Factorizations of matrices whose rows lie on several processes give what one process gives, with gradients."""

import pytest
from several_ranks import outcomes

WHOLE = "(Replicate(),)"
SMALL = {"r", "svdvals", "lstsq", "residuals"}  # as many numbers as columns, which all processes have


@pytest.mark.parametrize("size", [2, 3])
def test_like_one_process(size):
    for rank in outcomes("weft", size, "linalg_programs"):
        for name, (error, placements) in rank["differences"].items():
            assert error < 1e-10, name
            assert (placements == WHOLE) == (name in SMALL), name


def test_errors_are_those_of_one_process():
    for rank in outcomes("weft", 3, "linalg_programs"):
        assert rank["failures"] == [True] * 3
