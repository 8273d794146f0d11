"""Layers that turn windows into columns, and add columns up as windows."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from .utils import shown

__all__ = ["Fold", "Unfold"]


class Fold(Module):
    """Adds up columns as windows of an image. Shapes: [N, C * prod(kernel_size), L] -> [N, C, *output_size].

    >>> import weft as torch
    >>> torch.nn.Fold(output_size=(4, 5), kernel_size=(2, 2))(torch.ones(1, 3 * 2 * 2, 12)).shape
    torch.Size([1, 3, 4, 5])
    """

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return shown(self, "output_size", "kernel_size", "dilation", "padding", "stride")


class Unfold(Module):
    """Makes each window of an image a column. Shapes: [N, C, H, W] -> [N, C * prod(kernel_size), L].

    >>> import weft as torch
    >>> torch.nn.Unfold(kernel_size=(2, 3))(torch.randn(2, 5, 3, 4)).shape
    torch.Size([2, 30, 4])
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return shown(self, "kernel_size", "dilation", "padding", "stride")
