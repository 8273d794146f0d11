"""Fuses a batch normalization with the layer before it, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

import weft

from ...autograd.parameter import Parameter
from ...core.tensor import Tensor


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a copy of a convolution that computes the convolution and then a batch normalization in eval mode.

    Raises: AssertionError if one of them is in training mode.
    """
    _check_eval(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return the weight and bias of a convolution fused with a batch normalization of these statistics.

    Shapes: conv_w [out, in, *kernel], or [in, out, *kernel] if `transpose`; the others [out].
    """
    scale, bias = _folded(conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    kernel = (1,) * (conv_w.dim() - 2)
    weight = conv_w * scale.reshape((1, -1, *kernel) if transpose else (-1, 1, *kernel))
    return _parameter(weight, conv_w), _parameter(bias, conv_w if conv_b is None else conv_b)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a copy of a linear layer that computes the layer and then a batch normalization in eval mode.

    Raises: AssertionError if one of them is in training mode, or their features do not fit.
    """
    _check_eval(linear, bn)
    assert linear.out_features == bn.num_features or bn.num_features == 1, (
        "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, "
        f"got linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
    )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Return weight [out, in] and bias [out] of a linear layer fused with a batch normalization of these statistics."""
    scale, bias = _folded(linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    return _parameter(linear_w * scale.unsqueeze(-1), linear_w), _parameter(
        bias, linear_w if linear_b is None else linear_b
    )


def _folded(
    bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, weight: Tensor | None, shift: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the factor of the layer's weight, and its new bias."""
    scale = weft.rsqrt(var + eps)
    if weight is not None:
        scale = weight * scale
    new = (-mean if bias is None else bias - mean) * scale
    return scale, new if shift is None else new + shift


def _parameter(value: Tensor, like: Tensor) -> Parameter:
    return Parameter(value.to(like.dtype), like.requires_grad)


def _check_eval(layer: Any, bn: Any) -> None:
    assert not (layer.training or bn.training), "Fusion only for eval!"
