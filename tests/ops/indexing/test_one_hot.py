import pytest
import torch
from twins import check


@pytest.mark.refuses(3)
def test_one_hot():
    check(lambda lib, i: lib.nn.functional.one_hot(i), torch.tensor([[0, 2], [1, 0]]))
    check(lambda lib, i: lib.nn.functional.one_hot(i, 4), torch.tensor(2))
    check(lambda lib, i: lib.nn.functional.one_hot(i, 2), torch.tensor([2]))
    check(lambda lib, i: lib.nn.functional.one_hot(i), torch.tensor([-1]))
    check(lambda lib, i: lib.nn.functional.one_hot(i), torch.tensor([1.0]))
