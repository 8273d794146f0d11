"""The linear layer for quantization-aware training."""

from __future__ import annotations

from typing import Any, ClassVar

from .....core.tensor import Tensor
from .....nn import Linear as FloatLinear
from .....nn import Sequential
from .....nn.functional import linear
from .....nn.utils.parametrize import is_parametrized, transfer_parametrizations_and_params
from .fake_quantized_weight import FakeQuantizedWeight


class Linear(FakeQuantizedWeight, FloatLinear):
    """A linear layer whose weight is rounded."""

    _FLOAT_MODULE: ClassVar[Any] = FloatLinear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(in_features, out_features, bias, device, dtype)
        self._set_qconfig(qconfig, factory_kwargs={"device": device, "dtype": dtype})

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self._rounded_weight(), self.bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer of a linear layer of floats with a QConfig, whose parameters and parametrizations it shares."""
        qconfig = cls._qconfig_of(mod)
        layer = mod[0] if isinstance(mod, Sequential) else mod
        made = cls(layer.in_features, layer.out_features, bias=layer.bias is not None, qconfig=qconfig)
        for name in ("weight", "bias"):
            if is_parametrized(layer, name):
                transfer_parametrizations_and_params(layer, made, name)
            else:
                setattr(made, name, getattr(layer, name))
        return made

    def to_float(self) -> Any:
        """The linear layer of floats with the same parameters."""
        return self._copy_to(FloatLinear(self.in_features, self.out_features, self.bias is not None))
