"""Trapezoids against PyTorch."""

import pytest
import torch
from matrices import random
from oracle import check


@pytest.mark.refuses(7)
@pytest.mark.parametrize("name", ("trapezoid", "cumulative_trapezoid", "trapz"))
def test_trapezoids(name):
    for y in (random(3, 4), random(3, 4).t(), torch.ones(3, 4).long(), torch.ones(3, 4).bool(), random(3, 0)):
        check(name, y)
        check(name, y, dim=0)
        check(name, y, dx=0.5)
        check(name, y, random(y.shape[-1]))
        check(name, y, random(*y.shape), dim=0)
    check(name, random(3, 4), random(3))
    check(name, random(3, 4), random(4) > 0)
