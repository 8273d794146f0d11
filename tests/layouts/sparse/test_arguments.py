"""Forms of arguments of sparse constructors and conversions, and the checks of parts, beside PyTorch's."""

import pytest
import torch

import weft

X = "torch.tensor([[0.0, 2.0], [3.0, 0.0]])"
PARTS = "torch.tensor([0, 1, 2]), torch.tensor([1, 0])"
COO = "torch._validate_sparse_coo_tensor_args(torch.tensor([[0, 1], [1, 0]]), torch.ones(2)"
COMPRESSED = f"torch._validate_sparse_compressed_tensor_args({PARTS}, torch.ones(2)"
SAME = [
    "torch.sparse_coo_tensor((2, 3))",
    "torch.sparse_coo_tensor([2, 3], dtype=torch.float64)",
    "torch.sparse_coo_tensor(torch.Size([2, 0]), device='cpu', requires_grad=True)",
    "torch.sparse_coo_tensor(size=(2, 3))",
    "torch.sparse_coo_tensor((2.0, 3))",
    "torch.sparse_coo_tensor()",
    f"{X}.to_sparse(layout=torch.strided)",
    f"{X}.to_sparse().to_sparse(layout=torch.strided)",
    f"{X}.to_sparse(layout=torch.strided, blocksize=(1, 1))",
    f"{COO}, (2, 2))",
    f"{COO}, (1, 2))",
    f"{COO}, (2, 2), True)",
    "torch._validate_sparse_coo_tensor_args(torch.tensor([[1, 0], [1, 0]]), torch.ones(2), (2, 2), True)",
    *(
        f"{COMPRESSED}, (2, 2), torch.{layout})"
        for layout in "sparse_csr sparse_csc sparse_bsr sparse_coo strided".split()
    ),
    f"{COMPRESSED}, (2, 1), torch.sparse_csr)",
    f"torch._validate_sparse_csr_tensor_args({PARTS}, torch.ones(2), (2, 2))",
    f"torch._validate_sparse_csc_tensor_args({PARTS}, torch.ones(2), (2, 3))",
    f"torch._validate_sparse_bsr_tensor_args({PARTS}, torch.ones(2, 1, 1), (2, 2))",
    f"torch._validate_sparse_bsc_tensor_args({PARTS}, torch.ones(2, 1, 1), (2, 3))",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", SAME)
def test_values_and_errors(expression):
    def outcome(library):
        try:
            return repr(eval(expression, {"torch": library}))
        except Exception as error:
            return type(error)

    assert outcome(weft) == outcome(torch)


def test_a_strided_tensor_stays_itself():
    x = weft.ones(2)
    assert x.to_sparse(layout=weft.strided) is x
