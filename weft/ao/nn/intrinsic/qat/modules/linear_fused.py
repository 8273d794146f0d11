"""The linear layer with batch normalization for quantization-aware training."""

from __future__ import annotations

from typing import Any

from ......core.tensor import Tensor
from ......nn import BatchNorm1d, Linear
from ......nn.functional import linear
from ...modules import fused
from .batch_norm import WithBatchNorm


class LinearBn1d(WithBatchNorm, Linear, fused._FusedModule):
    """A linear layer and a batch normalization, which are rounded as the one linear layer that they become."""

    _FLOAT_MODULE = fused.LinearBn1d
    _BATCH_NORM = BatchNorm1d

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, eps: float = 1e-05, momentum: float = 0.1,
        freeze_bn: bool = False, qconfig: Any = None,
    ):  # fmt: skip
        super().__init__(in_features, out_features, bias)
        self._set_batch_norm(out_features, eps, momentum, freeze_bn, qconfig)

    def _layer(self, input: Tensor, weight: Tensor) -> Tensor:
        return linear(input, weight)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> LinearBn1d:
        """The layer of a LinearBn1d of floats with a QConfig, whose parameters it shares."""
        qconfig = cls._qconfig_of(mod)
        layer, bn = mod
        sizes = layer.in_features, layer.out_features, layer.bias is not None
        made = cls(*sizes, bn.eps, bn.momentum, False, qconfig)
        made._share(layer, bn)
        return made

    def to_float(self) -> Linear:
        """The linear layer of floats into which the batch normalization is folded."""
        made = Linear(self.in_features, self.out_features)
        made.weight, made.bias = self.folded()
        return made
