"""Python functions of single elements."""

import pytest
from expressions import check, lines

EXPRESSIONS = """
torch.ones(2).apply_(lambda a: a * 3)
torch.ones(2, requires_grad=True).apply_(lambda a: a)  # raises
torch.ones(2).map_(torch.arange(2.0), lambda a, b: a + b)
torch.ones(2).map_(torch.ones(2, requires_grad=True), lambda a, b: a)  # raises
torch.ones(2, requires_grad=True).map_(torch.ones(2), lambda a, b: a)  # raises
torch.ones(2).map2_(torch.arange(2.0), torch.ones(1), lambda a, b, c: a + b * c)
torch.ones(2).map2_(torch.ones(2), torch.ones(2, requires_grad=True), lambda a, b, c: a)  # raises
torch.ones(2).map2_(torch.ones(2, requires_grad=True), torch.ones(2), lambda a, b, c: a)  # raises
"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_as_in_torch(expression):
    check(expression)
