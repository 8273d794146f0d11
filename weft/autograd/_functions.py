"""`torch.autograd._functions`: operations of PyTorch before 0.4 as classes, of which programs still call `Resize`."""

from __future__ import annotations

import math
from typing import Any

from ..compat.missing import module_getattr
from ..core.tensor import Tensor
from .function import Function


class Resize(Function):
    """`Resize.apply(tensor, sizes)`: a view of other sizes, or a copy if the tensor is not contiguous."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sizes: tuple[int, ...]) -> Tensor:  # type: ignore[override]
        if math.prod(sizes) != tensor.numel():
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({math.prod(sizes)} elements in total), but the given tensor "
                f"has a size of {'x'.join(map(str, tensor.shape))} ({tensor.numel()} elements). autograd's resize can only "
                "change the shape of a given tensor, while preserving the number of elements. "
            )
        ctx.input_sizes = tensor.shape
        return tensor.contiguous().view(*sizes)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return grad_output.contiguous().view(ctx.input_sizes), None


__getattr__ = module_getattr(__name__)
