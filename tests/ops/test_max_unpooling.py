import pytest
import torch
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
