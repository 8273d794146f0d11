import pytest
import torch

import weft


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_gradient_of_log_softmax_is_rounded_once(dtype, dim):
    """Of the output as it is stored, because PyTorch and weft round it alike or by one unit differently."""
    generator = torch.Generator().manual_seed(0)
    x, ct = (torch.randn(7, 6, 5, generator=generator).to(getattr(torch, dtype)) for _ in range(2))
    found, cotangent = (weft.tensor(each.tolist(), dtype=getattr(weft, dtype)) for each in (x, ct))
    out = found.requires_grad_().log_softmax(dim)
    out.backward(cotangent)
    stored = torch.tensor(out.tolist(), dtype=torch.float64)
    exact = ct.double() - stored.exp() * ct.double().sum(dim, keepdim=True)
    assert found.grad.tolist() == exact.to(x.dtype).tolist()
