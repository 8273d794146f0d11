"""The linear layer of quantized tensors."""

from __future__ import annotations

from typing import Any

from ....._ops import ops
from .....compat.missing import module_getattr
from .....core.dtype import float16, qint8
from .....core.registry import FUNCTIONS
from .....core.tensor import Tensor
from .....nn import Module, Sequential
from .....ops.creation.creation import zeros
from .....ops.creation.from_data import tensor
from .utils import WeightedQuantizedModule, observed_weight, result_parameters


class LinearPackedParams(Module):
    """The prepared weight and bias of a linear layer. A state_dict holds the quantized weight and the bias."""

    _version = 3

    def __init__(self, dtype: Any = qint8):
        super().__init__()
        self.dtype = dtype
        if dtype is float16:
            self.set_weight_bias(zeros(1, 1), None)
        else:
            empty = FUNCTIONS["_empty_affine_quantized"]([1, 1], scale=1.0, zero_point=0, dtype=qint8)
            self.set_weight_bias(empty, None)

    def set_weight_bias(self, weight: Tensor, bias: Tensor | None) -> None:
        """Prepare a weight and a bias."""
        prepack = ops.quantized.linear_prepack_fp16 if self.dtype is float16 else ops.quantized.linear_prepack
        self._packed_params = prepack(weight, bias)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        unpack = ops.quantized.linear_unpack_fp16 if self.dtype is float16 else ops.quantized.linear_unpack
        return unpack(self._packed_params)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list,
        *rest: Any,
    ) -> None:
        if prefix + "dtype" in state_dict:
            self.dtype = state_dict.pop(prefix + "dtype")
        if prefix + "_packed_params" in state_dict:
            self.set_weight_bias(*state_dict.pop(prefix + "_packed_params"))
        else:
            missing_keys.append(prefix + "_packed_params")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, *rest)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


class Linear(WeightedQuantizedModule):
    """A linear layer: quantized input, weight and result. `scale` and `zero_point` are those of the result."""

    _version = 3
    _relu = False
    scale: float
    zero_point: int

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = qint8):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        bias = zeros(out_features) if bias_ else None
        if dtype is float16:
            weight = zeros(out_features, in_features)
        else:
            weight = FUNCTIONS["_empty_affine_quantized"](
                [out_features, in_features], scale=1.0, zero_point=0, dtype=qint8
            )
        self._packed_params = LinearPackedParams(dtype)
        self._packed_params.set_weight_bias(weight, bias)
        self.scale, self.zero_point = 1.0, 0

    def _get_name(self) -> str:
        return "QuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, "
            f"zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def forward(self, x: Tensor) -> Tensor:
        call = ops.quantized.linear_relu if self._relu else ops.quantized.linear
        return call(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def weight(self) -> Tensor:
        """The quantized weight."""
        return self._packed_params._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The bias, in floats."""
        return self._packed_params._weight_bias()[1]

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Exchange the weight and the bias."""
        self._packed_params.set_weight_bias(w, b)

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = tensor(self.scale)
        destination[prefix + "zero_point"] = tensor(self.zero_point)

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list,
        *rest: Any,
    ) -> None:
        for name, kind in (("scale", float), ("zero_point", int)):
            if prefix + name in state_dict:
                setattr(self, name, kind(state_dict.pop(prefix + name)))
            else:
                missing_keys.append(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, *rest)

    @classmethod
    def from_reference(cls, ref_qlinear: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The layer of a reference layer, with the parameters of the result."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantized layer of a layer that was observed, or trained with rounded numbers."""
        scale, zero_point = result_parameters(mod)
        linear = mod[0] if isinstance(mod, Sequential) else mod
        observer = getattr(mod, "weight_fake_quant", None) or mod.qconfig.weight()
        made = cls(linear.in_features, linear.out_features)
        made.set_weight_bias(observed_weight(linear.weight, observer), linear.bias)
        made.scale, made.zero_point = scale, zero_point
        return made


__getattr__ = module_getattr(__name__)
