"""Functions of `torch` for quantized tensors that begin with `quantized_`, besides those of recurrent layers."""

from __future__ import annotations

from typing import Any

from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from .arithmetic_operators import _batch_norm as quantized_batch_norm

__all__ = ["quantized_batch_norm", "quantized_max_pool1d", "quantized_max_pool2d", "quantized_max_pool3d"]


def _pool(dims: int, input: Tensor, kernel_size: Any, stride: Any, *rest: Any) -> Tensor:
    return FUNCTIONS[f"nn.functional.max_pool{dims}d"](input, kernel_size, stride or None, *rest)


def quantized_max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The maxima of windows of sequences."""
    return _pool(1, input, kernel_size, stride, padding, dilation, ceil_mode)


def quantized_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The maxima of windows of images."""
    return _pool(2, input, kernel_size, stride, padding, dilation, ceil_mode)


def quantized_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The maxima of windows of volumes."""
    return _pool(3, input, kernel_size, stride, padding, dilation, ceil_mode)
