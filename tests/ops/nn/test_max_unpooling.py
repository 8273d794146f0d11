import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from oracle import check

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@pytest.mark.refuses({"1": 3, "2": 4, "3": 4})
@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling_undoes_pooling(n):
    x = torch.randn(2, 2, *[5] * n)
    values, indices = getattr(torch.nn.functional, f"max_pool{n}d")(x, 2, return_indices=True)
    for size in (None, x.shape, [9] * n):
        check(f"{F}max_unpool{n}d", values, indices, 2, output_size=size)
    check(f"{F}max_unpool{n}d", values, indices + 1000, 2)
    check(f"{F}max_unpool{n}d", values, indices.int(), 2)


UNFIT = """
torch.nn.functional.max_unpool2d(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 2, 2).long(), -3)  # raises
torch.nn.functional.max_unpool1d(torch.ones(1, 1, 2), torch.zeros(1, 1, 2).long(), 2, padding=5)  # raises
torch.nn.functional.max_unpool2d(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 2, 2).long(), 0)
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
