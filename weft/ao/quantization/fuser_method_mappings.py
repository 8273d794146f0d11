"""Which layers are fused, and how: into one layer in eval mode, or into layers that are trained as one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from ... import nn
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from ..nn import intrinsic
from .utils import MatchAllNode

_WITH_RELU: dict[Any, Any] = {
    nn.Conv1d: intrinsic.ConvReLU1d,
    nn.Conv2d: intrinsic.ConvReLU2d,
    nn.Conv3d: intrinsic.ConvReLU3d,
}
_WITH_BN: dict[Any, Any] = {
    nn.Conv1d: intrinsic.ConvBn1d,
    nn.Conv2d: intrinsic.ConvBn2d,
    nn.Conv3d: intrinsic.ConvBn3d,
}
_WITH_BN_RELU: dict[Any, Any] = {
    nn.Conv1d: intrinsic.ConvBnReLU1d,
    nn.Conv2d: intrinsic.ConvBnReLU2d,
    nn.Conv3d: intrinsic.ConvBnReLU3d,
}


def _check_modes(*layers: Any) -> None:
    if len({layer.training for layer in layers}) > 1:
        names = ", ".join(type(layer).__name__ for layer in layers)
        raise AssertionError(f"{names} must be in the same mode (train or eval) to be fused")


def _check_trainable(features: int, bn: Any) -> None:
    if bn.num_features != features:
        raise AssertionError(
            f"The layer has {features} channels, but the batch normalization {bn.num_features}"
        )
    if not (bn.affine and bn.track_running_stats):
        raise AssertionError(
            "Only a BatchNorm with affine=True and track_running_stats=True is fused for training"
        )


def _fused_class(classes: dict[Any, Any], mode: str, *layers: Any) -> Any:
    if type(layers[0]) not in classes:
        raise NotImplementedError(f"Cannot fuse {mode} modules: {layers}")
    return classes[type(layers[0])]


def fuse_conv_bn(is_qat: bool, conv: Any, bn: Any) -> Any:
    """A ConvBn layer for training, or the convolution in eval mode into which the batch normalization is folded."""
    _check_modes(conv, bn)
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    _check_trainable(conv.out_channels, bn)
    return _fused_class(_WITH_BN, "train", conv, bn)(conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: Any, bn: Any, relu: Any) -> Any:
    """A ConvBnReLU layer for training, or a ConvReLU layer in eval mode into which the batch normalization is folded."""
    _check_modes(conv, bn, relu)
    if not is_qat:
        made = _fused_class(_WITH_RELU, "eval", conv, bn, relu)
        return made(fuse_conv_bn_eval(conv, bn), relu)
    _check_trainable(conv.out_channels, bn)
    return _fused_class(_WITH_BN_RELU, "train", conv, bn, relu)(conv, bn, relu)


def fuse_linear_bn(is_qat: bool, linear: Any, bn: Any) -> Any:
    """A LinearBn1d for training, or the linear layer in eval mode into which the batch normalization is folded."""
    _check_modes(linear, bn)
    if not is_qat:
        return fuse_linear_bn_eval(linear, bn)
    _check_trainable(linear.out_features, bn)
    return intrinsic.LinearBn1d(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: Any, bn: Any) -> Any:
    """The transposed convolution in eval mode into which the batch normalization is folded."""
    _check_modes(convt, bn)
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")  # noqa: TRY002 (PyTorch's class)
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _in_both_modes(fused: Callable) -> Callable:
    return lambda is_qat, *layers: fused(*layers)


_METHODS: dict[tuple, Callable] = {
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
    (nn.Linear, nn.ReLU): _in_both_modes(intrinsic.LinearReLU),
    (nn.BatchNorm2d, nn.ReLU): _in_both_modes(intrinsic.BNReLU2d),
    (nn.BatchNorm3d, nn.ReLU): _in_both_modes(intrinsic.BNReLU3d),
}
for _conv, _transposed, _bn in (
    (nn.Conv1d, nn.ConvTranspose1d, nn.BatchNorm1d),
    (nn.Conv2d, nn.ConvTranspose2d, nn.BatchNorm2d),
    (nn.Conv3d, nn.ConvTranspose3d, nn.BatchNorm3d),
):
    _METHODS[_conv, _bn] = fuse_conv_bn
    _METHODS[_conv, _bn, nn.ReLU] = fuse_conv_bn_relu
    _METHODS[_conv, nn.ReLU] = _in_both_modes(_WITH_RELU[_conv])
    _METHODS[_transposed, _bn] = fuse_convtranspose_bn


def get_fuser_method(op_list: tuple, additional_fuser_method_mapping: dict | None = None) -> Callable:
    """The function that fuses layers of these classes.

    Raises: AssertionError if there is none.
    """
    found = {**_METHODS, **(additional_fuser_method_mapping or {})}.get(op_list)
    if found is None:
        raise AssertionError(f"did not find fuser method for: {op_list}")
    return found


def _patterns(pattern: Any) -> list[Any]:
    """The pattern, and those of which parts are replaced by MatchAllNode."""
    if isinstance(pattern, (tuple, list)):
        return [*product(*(_patterns(each) for each in pattern))]
    return [pattern, MatchAllNode]


def get_fuser_method_new(op_pattern: Any, fuser_method_mapping: dict) -> Callable:
    """The function for the pattern, or for the first one in which MatchAllNode takes the place of parts of it.

    Raises: AssertionError if there is none.
    """
    for pattern in _patterns(op_pattern):
        if fuser_method_mapping.get(pattern) is not None:
            return fuser_method_mapping[pattern]
    raise AssertionError(f"did not find fuser method for: {op_pattern}")
