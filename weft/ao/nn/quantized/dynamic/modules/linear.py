"""The linear layer of floats with a quantized weight."""

from __future__ import annotations

from typing import Any

from ......core.dtype import float16, qint8
from ......core.tensor import Tensor
from ......library.namespaces import ops
from ......nn import Linear as FloatLinear
from ......nn.modules.linear import NonDynamicallyQuantizableLinear
from ......nn.utils.parametrize import type_before_parametrizations
from ....intrinsic import LinearReLU
from ....qat.dynamic import Linear as TrainedLinear
from ...modules.linear import Linear as QuantizedLinear
from ...modules.utils import observed_weight


class Linear(QuantizedLinear):
    """A linear layer whose input is quantized with parameters that suit it. The result is of floats.

    >>> import weft as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 2))
    >>> torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)[0]
    DynamicQuantizedLinear(in_features=3, out_features=2, dtype=torch.qint8, qscheme=torch.per_tensor_affine)
    """

    _version = 4

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = qint8):
        super().__init__(in_features, out_features, bias_, dtype)
        self.version = self._version

    def forward(self, x: Tensor) -> Tensor:
        packed = self._packed_params._packed_params
        name = f"linear{'_relu' if self._relu else ''}_dynamic"
        if self._packed_params.dtype is float16:
            return getattr(ops.quantized, f"{name}_fp16")(x, packed)
        # Half of the integers, as on processors whose sums of products have 16 bits: PyTorch's default.
        return getattr(ops.quantized, name)(x, packed, True).to(x.dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        return text + (f", qscheme={self.weight().qscheme()}" if self._packed_params.dtype is qint8 else "")

    @classmethod
    def from_reference(cls, ref_qlinear: Any) -> Any:  # type: ignore[override]  # PyTorch's signature
        """The layer of a reference layer."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features, dtype=ref_qlinear.weight_dtype)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        return made

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer of a layer of floats, whose weight is quantized as its QConfig says."""
        kind = type_before_parametrizations(mod)
        if kind not in (FloatLinear, NonDynamicallyQuantizableLinear, LinearReLU, TrainedLinear):
            raise AssertionError(
                f"nn.quantized.dynamic.Linear.from_float: got {kind}, which is no linear layer"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        layer = mod[0] if kind is LinearReLU else mod
        observer = layer.qconfig.weight()
        if observer.dtype not in (qint8, float16):
            raise AssertionError(
                f"The only supported dtypes for dynamic quantized linear are qint8 and float16, got: {observer.dtype}"
            )
        is_half = observer.dtype is float16
        weight = layer.weight.detach().float() if is_half else observed_weight(layer.weight, observer)
        made = cls(layer.in_features, layer.out_features, dtype=observer.dtype)
        made.set_weight_bias(weight, layer.bias)
        return made
