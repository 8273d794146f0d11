"""Trapezoids against PyTorch."""

import pytest
import torch
from expressions import check as check_expression
from expressions import lines
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


UNFIT = """
torch.trapezoid(torch.tensor([1.0, 2.0, 4.0]), torch.ones(1, 3))  # raises
torch.trapezoid(torch.ones(2, 3), torch.ones(2, 1, 3))  # raises
torch.trapezoid(torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 2.0, 4.0], [2.0, 1.0, 0.0]]))
torch.trapezoid(torch.tensor([1.0, 2.0]), torch.ones(1, 3))
torch.trapezoid(torch.ones(2, 1, 3), torch.tensor([[1.0, 2.0, 4.0], [2.0, 1.0, 0.0]]))
torch.trapezoid(torch.ones(3, 2, 3), torch.ones(2, 3), dim=0)  # raises
torch.trapezoid(torch.ones(3, 2, 3), torch.tensor([[1.0, 2.0, 4.0], [2.0, 1.0, 0.0]]), dim=1)
torch.cumulative_trapezoid(torch.ones(3), torch.ones(1, 3))  # raises
torch.trapezoid(torch.tensor(1.0))  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


ORDER_OF_CHECKS = """
torch.trapezoid(torch.tensor(False))  # raises
torch.trapezoid(torch.tensor(1.0))  # raises
torch.trapezoid(torch.tensor(1.0), torch.tensor([1.0]))  # raises
torch.trapezoid(torch.tensor([True, False]), dim=1)  # raises
torch.trapezoid(torch.zeros(0, dtype=torch.bool))
torch.trapezoid(torch.zeros(2, 0), torch.ones(5), dim=1)
torch.trapezoid(torch.zeros(0, 2), dx=True, dim=0)
torch.trapezoid(torch.tensor([1, 2**63 - 1, 4]))
torch.trapezoid(torch.tensor([1, 2**63 - 1, 4]), dx=2)
torch.trapezoid(torch.tensor([100, 200], dtype=torch.uint8), dx=0.5)
torch.trapezoid(torch.ones(2), dx=True)  # raises
torch.trapezoid(torch.ones(2), dx=1j)  # raises
torch.trapezoid(torch.ones(2), torch.tensor(1.0))
torch.trapezoid(torch.ones(3), torch.tensor(1.0))  # raises
torch.trapezoid(torch.arange(3.0), torch.arange(6.0).reshape(2, 3), dim=-1)  # raises
torch.trapezoid(torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(1, 2, 3), dim=1)  # raises
torch.cumulative_trapezoid(torch.tensor([1, 2**63 - 1, 4]))
torch.cumulative_trapezoid(torch.tensor([100, 200], dtype=torch.uint8), dx=2)
torch.cumulative_trapezoid(torch.tensor(1.0))  # raises
torch.cumulative_trapezoid(torch.tensor(1.0), dx=True)  # raises
torch.cumulative_trapezoid(torch.zeros(0), torch.tensor(1.0))
torch.cumulative_trapezoid(torch.zeros(0), dx=1j)  # raises
"""


@pytest.mark.parametrize("expression", lines(ORDER_OF_CHECKS))
def test_order_of_checks(expression):
    """PyTorch's order of checks and of sums, in which integers wrap around."""
    check_expression(expression)
