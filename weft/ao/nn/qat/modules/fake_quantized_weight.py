"""What layers for quantization-aware training share: a weight that is rounded each time before the layer computes with it."""

from __future__ import annotations

from typing import Any, ClassVar

from .....core.tensor import Tensor
from .....nn import Module, Parameter
from .....nn.utils.parametrize import type_before_parametrizations


class FakeQuantizedWeight(Module):
    """A base beside a layer of floats. `weight_fake_quant` observes and rounds the weight."""

    # The layer of floats that `from_float` takes.
    _FLOAT_MODULE: ClassVar[type[Module]]
    qconfig: Any
    weight: Any
    bias: Any

    def _set_qconfig(self, qconfig: Any, **keywords: Any) -> None:
        """Take the QConfig of the constructor. keywords: those of the constructor of the FakeQuantize."""
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(**keywords)

    def _rounded_weight(self) -> Tensor:
        return self.weight_fake_quant(self.weight)

    @classmethod
    def _qconfig_of(cls, mod: Any) -> Any:
        """The QConfig of a layer of floats.

        Raises: AssertionError for a layer of another class, and for one without a QConfig.
        """
        kind = type_before_parametrizations(mod)
        if kind is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, got {kind.__name__}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if not mod.qconfig:
            raise AssertionError("Input float module must have a valid qconfig")
        return mod.qconfig

    def _copy_to(self, layer: Any) -> Any:
        """Give a new layer of floats the weight, the bias and the mode of this one."""
        layer.weight = Parameter(self.weight.detach())
        if self.bias is not None:
            layer.bias = Parameter(self.bias.detach())
        return layer.train(self.training)
