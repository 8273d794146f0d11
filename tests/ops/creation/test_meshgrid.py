"""Grids and combinations against PyTorch: values, dtypes, strides and errors."""

import pytest
from expressions import check as check_expression
from expressions import lines
from layouts import Layout, check

import weft

FORMS = """
torch.meshgrid(i, i)
torch.meshgrid([i, z.to(torch.int64)], indexing='ij')
torch.meshgrid(i, torch.tensor([1, 2]), indexing='xy')
torch.cartesian_prod(i)
torch.cartesian_prod(i, torch.tensor([1, 2]))
torch.combinations(i)
torch.combinations(i, 3)
torch.combinations(i, 0)
torch.combinations(i, 9)
torch.combinations(i, r=2, with_replacement=True)
""".strip().splitlines()

MESSAGES = """
torch.meshgrid(i, x)
torch.meshgrid()
torch.meshgrid(i, indexing='a')
torch.cartesian_prod(i, x.to(torch.int64))
torch.combinations(x)
torch.combinations(i, -1)
""".strip().splitlines()

X, INTEGERS, Z = Layout((2, 3, 4), (12, 4, 1)), Layout((6,), (1,), dtype="int64"), Layout((), ())


@pytest.mark.parametrize("expression", FORMS)
def test_forms_of_arguments(expression):
    check(expression, x=X, i=INTEGERS, z=Z)


@pytest.mark.refuses("all")
@pytest.mark.parametrize("expression", MESSAGES)
def test_error_messages(expression):
    check(expression, message=True, x=X, i=INTEGERS, z=Z)


def test_meshgrid_warns_without_indexing():
    weft.core.warn.warn_once.forget()
    with pytest.warns(UserWarning, match="required to pass the indexing argument"):
        weft.meshgrid(weft.zeros(2))


UNFIT = """
torch.meshgrid(torch.ones(2), indexing=1)  # raises
torch.meshgrid(torch.ones(2), indexing="a")  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
