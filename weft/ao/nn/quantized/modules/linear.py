"""The linear layer of quantized tensors."""

from __future__ import annotations

from typing import Any, ClassVar

from .....core.dtype import float16, qint8
from .....core.registry import FUNCTIONS
from .....core.tensor import Tensor
from .....library.namespaces import ops
from .....nn import Linear as FloatLinear
from .....nn.modules.linear import NonDynamicallyQuantizableLinear
from .....ops.creation.creation import zeros
from .utils import StateEntries, WeightedQuantizedModule, result_parameters


class LinearPackedParams(StateEntries):
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

    def _entries(self) -> dict[str, Any]:
        return {"dtype": self.dtype, "_packed_params": self._weight_bias()}

    def _set_entries(self, entries: dict[str, Any]) -> None:
        self.dtype = entries["dtype"]
        self.set_weight_bias(*entries["_packed_params"])

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *rest: Any) -> None:
        state_dict.setdefault(prefix + "dtype", self.dtype)  # the first version of the files did not hold it
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


class Linear(WeightedQuantizedModule):
    """A linear layer: quantized input, weight and result. `scale` and `zero_point` are those of the result."""

    _version = 3
    _FLOAT_MODULE: ClassVar[Any] = (FloatLinear, NonDynamicallyQuantizableLinear)
    _relu = False

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

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._packed_params._weight_bias()

    def weight(self) -> Tensor:
        """The quantized weight."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The bias, in floats."""
        return self._weight_bias()[1]

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Exchange the weight and the bias."""
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def from_reference(cls, ref_qlinear: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The layer of a reference layer, with the parameters of the result."""
        weight = ref_qlinear.get_quantized_weight()
        return cls._like(ref_qlinear, weight, ref_qlinear.bias, output_scale, output_zero_point)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantized layer of a layer that was observed, or trained with rounded numbers."""
        linear, weight, bias = cls._observed(mod, use_precomputed_fake_quant)
        return cls._like(linear, weight, bias, *result_parameters(mod))

    @classmethod
    def _like(
        cls, linear: Any, weight: Tensor, bias: Tensor | None, scale: Any, zero_point: Any, *settings: Any
    ) -> Any:
        """The layer with the sizes of another. settings: further arguments of the constructor."""
        made = cls(linear.in_features, linear.out_features, *settings)
        made.set_weight_bias(weight, bias)
        made._set_parameters(scale, zero_point)
        return made
