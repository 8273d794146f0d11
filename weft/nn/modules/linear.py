"""Defines linear and bilinear layers."""

from __future__ import annotations

import math
from typing import Any

from ...autograd.parameter import Parameter, UninitializedParameter
from ...core.arguments import integer
from ...core.dtype import DType
from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from ...ops.creation.creation import empty
from .. import functional as F
from .. import init
from ..module import Module
from .lazy import LazyModuleMixin
from .utils import shown

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Returns its input; the constructor takes any arguments.

    >>> from weft import nn
    >>> nn.Identity(54, unused=True)(3)
    3
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """Computes input @ weight.T + bias.

    Shapes: [..., in_features] -> [..., out_features]; weight [out_features, in_features].

    >>> import weft as torch
    >>> torch.nn.Linear(20, 30)(torch.randn(128, 20)).shape
    torch.Size([128, 30])
    """

    weight: Tensor
    bias: Parameter  # None without a bias; PyTorch gives checkers this type, so that programs read `layer.bias.grad`

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in_features), device=device, dtype=dtype))
        values = Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", values)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            init_bias(self.bias, self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{shown(self, 'in_features', 'out_features')}, bias={self.bias is not None}"


def init_bias(bias: Tensor, weight: Tensor) -> None:
    """Fill the bias with uniform numbers within 1 / sqrt(fan_in) of `weight`."""
    fan_in, _ = init._calculate_fan_in_and_fan_out(weight)
    bound = 1 / math.sqrt(fan_in) if fan_in else 0
    init.uniform_(bias, -bound, bound)


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear that quantization tools do not replace."""


class Bilinear(Module):
    """Computes input1 @ weight[k] @ input2 + bias[k] for each output k.

    Shapes: [..., in1_features], [..., in2_features] -> [..., out_features].

    >>> import weft as torch
    >>> torch.nn.Bilinear(2, 3, 4)(torch.rand(5, 2), torch.rand(5, 3)).shape
    torch.Size([5, 4])
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if integer(in1_features, "Bilinear", "in1_features") <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        values = Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", values)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{shown(self, 'in1_features', 'in2_features', 'out_features')}, bias={self.bias is not None}"


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear that takes `in_features` from its first input.

    >>> import weft as torch
    >>> layer = torch.nn.LazyLinear(4)
    >>> layer(torch.rand(2, 3)).shape
    torch.Size([2, 4])
    >>> layer
    Linear(in_features=3, out_features=4, bias=True)
    """

    cls_to_become = Linear
    weight: UninitializedParameter
    bias: UninitializedParameter | None  # type: ignore[assignment]

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: DType | None = None
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
