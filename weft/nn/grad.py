"""Functions that compute derivatives of convolutions: the gradient of the input, and that of the weight.

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
from ..core.names import named
from ..core.tensor import Tensor
from . import functional as F

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _input_gradient(name: str, convolve: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @named(name, convolve=convolve.__name__)
    def gradient(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        """Compute the gradient of the input of `{convolve}` from the gradient of its output."""
        with enable_grad():
            # A convolution is linear, so its gradient does not depend on the values of the input.
            input = grad_output.new_zeros(input_size, requires_grad=True)
            output = convolve(input, weight, None, stride, padding, dilation, groups)
            return grad(output, input, grad_output)[0]

    return gradient


def _weight_gradient(name: str, convolve: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @named(name, convolve=convolve.__name__)
    def gradient(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        """Compute the gradient of the weight of `{convolve}` from the gradient of its output."""
        with enable_grad():
            weight = grad_output.new_zeros(weight_size, requires_grad=True)
            output = convolve(input, weight, None, stride, padding, dilation, groups)
            return grad(output, weight, grad_output)[0]

    return gradient


conv1d_input = _input_gradient("conv1d_input", F.conv1d)
conv1d_weight = _weight_gradient("conv1d_weight", F.conv1d)
conv2d_input = _input_gradient("conv2d_input", F.conv2d)
conv2d_weight = _weight_gradient("conv2d_weight", F.conv2d)
conv3d_input = _input_gradient("conv3d_input", F.conv3d)
conv3d_weight = _weight_gradient("conv3d_weight", F.conv3d)

__getattr__ = module_getattr(__name__)
