"""Convolutions with batch normalization or ReLU for quantization-aware training."""

from __future__ import annotations

from typing import Any, ClassVar

from ......core.tensor import Tensor
from ......nn import BatchNorm1d, BatchNorm2d, BatchNorm3d, Module, Parameter, ReLU
from ......nn import Conv1d as FloatConv1d
from ......nn import Conv2d as FloatConv2d
from ......nn import Conv3d as FloatConv3d
from ......nn.functional import relu
from ......nn.modules.linear import init_bias
from ......ops.creation.creation import empty
from ....layers import conv_arguments
from ....qat import Conv1d, Conv2d, Conv3d
from ....qat.modules.fake_quantized_weight import FakeQuantizedWeight
from ...modules import fused
from .batch_norm import WithBatchNorm


class _ConvBnNd(WithBatchNorm):
    _version = 2
    # The convolution of floats, and the layer with ReLU that takes its place if the layer ends with ReLU.
    _CONV: ClassVar[type[Module]]
    _CONV_RELU: ClassVar[type[Module] | None] = None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool | None = None, padding_mode: str = "zeros", eps: float = 1e-05,
        momentum: float = 0.1, freeze_bn: bool = False, qconfig: Any = None,
    ):  # fmt: skip
        geometry = kernel_size, stride, padding, dilation, groups
        super().__init__(in_channels, out_channels, *geometry, False, padding_mode)
        if bias:
            self.bias = Parameter(empty(out_channels))
        self._set_batch_norm(out_channels, eps, momentum, freeze_bn, qconfig)

    def reset_bn_parameters(self) -> None:
        """Draw a new weight of the batch normalization and a new bias, and forget the running mean and variance."""
        super().reset_bn_parameters()
        if self.bias is not None:
            init_bias(self.bias, self.weight)

    def _layer(self: Any, input: Tensor, weight: Tensor) -> Tensor:
        return self._conv_forward(input, weight, None)

    def forward(self, input: Tensor) -> Tensor:
        found = self._forward(input)
        return found if self._CONV_RELU is None else relu(found)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer of a convolution and a batch normalization of floats with a QConfig, whose parameters it shares."""
        qconfig = cls._qconfig_of(mod)
        conv, bn = mod[0], mod[1]
        statistics = {"eps": bn.eps, "momentum": bn.momentum, "qconfig": qconfig}
        made = cls(*conv_arguments(conv), **statistics)
        made._share(conv, bn)
        return made

    def to_float(self) -> Any:
        """The convolution of floats into which the batch normalization is folded, with ReLU if the layer ends with it."""
        made: Any = self._CONV(*conv_arguments(self))
        made.weight, made.bias = self.folded()
        if self._CONV_RELU is not None:
            made = self._CONV_RELU(made, ReLU())
        return made.train(self.training)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *rest: Any) -> None:
        if local_metadata.get("version") in (None, 1):
            names = {"weight": "gamma", "bias": "beta"}
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                old = prefix + names.get(name, name)
                if old in state_dict:
                    state_dict[f"{prefix}bn.{name}"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class ConvBn1d(_ConvBnNd, FloatConv1d, fused._FusedModule):
    """Conv1d and BatchNorm1d, which are rounded as the one convolution that they become."""

    _FLOAT_MODULE: ClassVar[Any] = fused.ConvBn1d
    _CONV, _BATCH_NORM = FloatConv1d, BatchNorm1d


class ConvBn2d(_ConvBnNd, FloatConv2d, fused._FusedModule):
    """Conv2d and BatchNorm2d, which are rounded as the one convolution that they become."""

    _FLOAT_MODULE: ClassVar[Any] = fused.ConvBn2d
    _CONV, _BATCH_NORM = FloatConv2d, BatchNorm2d


class ConvBn3d(_ConvBnNd, FloatConv3d, fused._FusedModule):
    """Conv3d and BatchNorm3d, which are rounded as the one convolution that they become."""

    _FLOAT_MODULE: ClassVar[Any] = fused.ConvBn3d
    _CONV, _BATCH_NORM = FloatConv3d, BatchNorm3d


class ConvBnReLU1d(ConvBn1d):
    """ConvBn1d, then ReLU."""

    _FLOAT_MODULE, _CONV_RELU = fused.ConvBnReLU1d, fused.ConvReLU1d


class ConvBnReLU2d(ConvBn2d):
    """ConvBn2d, then ReLU."""

    _FLOAT_MODULE, _CONV_RELU = fused.ConvBnReLU2d, fused.ConvReLU2d


class ConvBnReLU3d(ConvBn3d):
    """ConvBn3d, then ReLU."""

    _FLOAT_MODULE, _CONV_RELU = fused.ConvBnReLU3d, fused.ConvReLU3d


class _ConvReLU(FakeQuantizedWeight):
    """The part of convolutions that end with ReLU."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", qconfig: Any = None,
    ):  # fmt: skip
        geometry = kernel_size, stride, padding, dilation, groups, bias, padding_mode
        super().__init__(in_channels, out_channels, *geometry, qconfig)

    def forward(self, input: Tensor) -> Tensor:
        return relu(super().forward(input))

    def to_float(self: Any) -> Any:
        """The convolution and ReLU of floats with the same parameters."""
        return self._FLOAT_MODULE(super().to_float(), ReLU()).train(self.training)  # type: ignore[misc]


class ConvReLU1d(_ConvReLU, Conv1d, fused._FusedModule):
    """Conv1d whose weight is rounded, then ReLU."""

    _FLOAT_MODULE = fused.ConvReLU1d


class ConvReLU2d(_ConvReLU, Conv2d, fused._FusedModule):
    """Conv2d whose weight is rounded, then ReLU."""

    _FLOAT_MODULE = fused.ConvReLU2d


class ConvReLU3d(_ConvReLU, Conv3d, fused._FusedModule):
    """Conv3d whose weight is rounded, then ReLU."""

    _FLOAT_MODULE = fused.ConvReLU3d


_WITH_BATCH_NORM = {ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d}


def update_bn_stats(mod: Any) -> None:
    """`model.apply(update_bn_stats)`: convolutions with batch normalization average the statistics of each batch."""
    if type(mod) in _WITH_BATCH_NORM:
        mod.update_bn_stats()


def freeze_bn_stats(mod: Any) -> None:
    """`model.apply(freeze_bn_stats)`: convolutions with batch normalization keep their running statistics."""
    if type(mod) in _WITH_BATCH_NORM:
        mod.freeze_bn_stats()
