"""`torch.gradient` against PyTorch."""

import pytest
from expressions import check as check_expression
from expressions import lines

DISTANCE_OF_ZERO = """
torch.gradient(torch.tensor([1.0, 2.0, 4.0, 7.0]), spacing=0)
torch.gradient(torch.tensor([1, 2, 4, 7]), spacing=0)
torch.gradient(torch.tensor([1, 2, 4, 7]), spacing=0, edge_order=2)
torch.gradient(torch.tensor([[1.0, 2.0, 4.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]), spacing=0.0, edge_order=2)
torch.gradient(torch.tensor([1.0, 2.0, 4.0, 7.0]), spacing=nan, edge_order=2)
torch.gradient(torch.tensor([1.0, 2.0, 4.0, 7.0]), spacing=0.5, edge_order=2)
torch.gradient(torch.tensor([1.0, 2.0, 4.0, 7.0]), spacing=[torch.tensor([1.0, 1.0, 1.0, 1.0])], edge_order=2)
"""


@pytest.mark.parametrize("expression", lines(DISTANCE_OF_ZERO))
def test_distance_of_zero(expression):
    """No distance gives infinities and NaN, as PyTorch's order of arithmetic has it."""
    check_expression(expression)
