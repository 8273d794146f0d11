import pytest
import torch
from twins import check

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put(accumulate):
    base, index = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0, 1, 0])
    value = torch.tensor([10.0, 20.0, 10.0])
    check(lambda lib, b, i, v: b.index_put((i, i), v, accumulate=accumulate), base, index, value)
    check(lambda lib, b, i, v: lib.index_put_(b, (i,), v[:1], accumulate), base, index, value)
    mask = torch.tensor([[True, False], [True, True]])
    check(lambda lib, b, m, v: b.index_put((m,), v, accumulate), base, mask, value)
