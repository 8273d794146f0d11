"""Derivatives of convolutions as functions: the gradient of the input, and that of the weight.

>>> import weft as torch
>>> torch.nn.grad.conv1d_input((1, 1, 4), torch.ones(1, 1, 2), torch.ones(1, 1, 3))
tensor([[[1., 2., 2., 1.]]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import grad
from ..compat.missing import module_getattr
from ..core.grad_mode import enable_grad
from ..core.tensor import Tensor
from . import functional as F

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _of_input(
    convolve: Callable, input_size: Sequence[int], weight: Tensor, grad_output: Tensor, *geometry: Any
) -> Tensor:
    """The gradient of the input. A convolution is linear, so the values of the input do not matter."""
    with enable_grad():
        input = grad_output.new_zeros(input_size).requires_grad_()
        return grad(convolve(input, weight, None, *geometry), input, grad_output)[0]


def _of_weight(
    convolve: Callable, input: Tensor, weight_size: Sequence[int], grad_output: Tensor, *geometry: Any
) -> Tensor:
    with enable_grad():
        weight = grad_output.new_zeros(weight_size).requires_grad_()
        return grad(convolve(input, weight, None, *geometry), weight, grad_output)[0]


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of the input of `conv1d`, from that of its output."""
    return _of_input(F.conv1d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of the weight of `conv1d`, from that of its output."""
    return _of_weight(F.conv1d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of the input of `conv2d`, from that of its output."""
    return _of_input(F.conv2d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of the weight of `conv2d`, from that of its output."""
    return _of_weight(F.conv2d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of the input of `conv3d`, from that of its output."""
    return _of_input(F.conv3d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of the weight of `conv3d`, from that of its output."""
    return _of_weight(F.conv3d, input, weight_size, grad_output, stride, padding, dilation, groups)


__getattr__ = module_getattr(__name__)
