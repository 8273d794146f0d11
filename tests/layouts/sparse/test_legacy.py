"""The constructors of old for sparse tensors, side by side with PyTorch's."""

import pytest
import torch

import weft

EXPRESSIONS = [
    "torch.sparse.FloatTensor(i, v, torch.Size([2, 3]))", "torch.sparse.FloatTensor(i, v)",
    "torch.sparse.FloatTensor()", "torch.sparse.FloatTensor(2, 3)",
    "torch.sparse.DoubleTensor(torch.Size([2, 3]))", "torch.sparse.LongTensor(i, v.long(), (2, 3))",
    "torch.sparse.FloatTensor(i, v, (2, 3), device='cpu')",
    "isinstance(x, torch.sparse.FloatTensor), isinstance(v, torch.sparse.FloatTensor)",
    "isinstance(x.double(), torch.sparse.FloatTensor), isinstance(x.double(), torch.sparse.DoubleTensor)",
    "torch.sparse.FloatTensor.dtype, torch.sparse.FloatTensor.layout, torch.sparse.FloatTensor.is_sparse",
    "x.type(), x.type(torch.sparse.DoubleTensor)", "x.new(i, v, (2, 2)), x.new(2, 3), x.new()",
    "torch.sparse.FloatTensor(v)", "x.new([[1.0]])",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_like_pytorch(expression):
    found = []
    for library in (weft, torch):
        i, v = library.tensor([[0, 1], [1, 0]]), library.tensor([1.0, 2.0])
        names = {"torch": library, "i": i, "v": v, "x": library.sparse_coo_tensor(i, v, (2, 2))}
        try:
            found.append(repr(eval(expression, names)))
        except Exception as error:
            found.append(type(error))
    assert found[0] == found[1]
