"""What reference layers share: weights in floats with the parameters by which they are quantized."""

from __future__ import annotations

import copy
from typing import Any

from ...... import nn
from ......core.dtype import QUANTIZED, float16, float32, int32, quint8
from ......core.qscheme import SCHEMES
from ......core.registry import FUNCTIONS
from ......core.tensor import Tensor
from ......ops.creation.from_data import tensor

__all__ = ["ReferenceQuantizedModule"]
PER_TENSOR = SCHEMES["per_tensor_affine"]
_PER_CHANNEL = (SCHEMES["per_channel_affine"], SCHEMES["per_channel_affine_float_qparams"])
DEFAULT: dict[str, Any] = {"qscheme": PER_TENSOR, "dtype": quint8, "scale": 1.0, "zero_point": 0}


class Rounded(nn.Module):
    """The base of layers that compute in floats, with weights that are rounded to the numbers of quantized ones.

    The parameters of a weight `w` are the attributes `w_qscheme` and `w_dtype`, and the buffers `w_scale`, `w_zero_point` and `w_axis`.
    """

    is_decomposed: bool

    def _set_parameters(self, name: str, given: dict[str, Any], device: Any) -> None:
        """Keep the parameters of a weight.

        Raises: AssertionError for other schemes than those of quantized tensors.
        """
        scheme, dtype = given["qscheme"], given["dtype"]
        setattr(self, f"{name}_qscheme", scheme)
        setattr(self, f"{name}_dtype", dtype)
        if scheme is None:
            found = {
                "scale": tensor(1.0),
                "zero_point": tensor(0, dtype=int32),
                "axis": tensor(0, dtype=int32),
            }
        elif scheme is PER_TENSOR or scheme in _PER_CHANNEL:
            point = given["zero_point"]
            whole = float32 if scheme is _PER_CHANNEL[1] else int32
            found = {
                "scale": _as_tensor(given["scale"], float32),
                "zero_point": _as_tensor(point, point.dtype if isinstance(point, Tensor) else whole),
                "axis": tensor(given["axis"] if scheme in _PER_CHANNEL else 0, dtype=int32),
            }
        else:
            raise AssertionError(
                f"qscheme: {scheme} is not supported in reference quantized {self._get_name()}"
            )
        for part, value in found.items():
            self.register_buffer(f"{name}_{part}", value.to(device) if device is not None else value)
        setattr(self, f"{name}_axis_int", int(found["axis"]))

    def _quantized(self, name: str) -> Tensor:
        """A weight as a quantized tensor; as float16 if that is its dtype."""
        weight = getattr(self, name).detach()
        scheme, dtype, scale, point = (
            getattr(self, f"{name}_{part}") for part in ("qscheme", "dtype", "scale", "zero_point")
        )
        if dtype is float16:
            return weight.to(float16)
        if dtype not in QUANTIZED:
            raise ValueError(f"Unsupported dtype and qscheme: {dtype}, {scheme}")
        if scheme is PER_TENSOR:
            return FUNCTIONS["quantize_per_tensor"](weight, float(scale), int(point), dtype)
        return FUNCTIONS["quantize_per_channel"](
            weight, scale, point, getattr(self, f"{name}_axis_int"), dtype
        )

    def _rounded(self, name: str) -> Tensor:
        """A weight in floats, rounded to the numbers of the quantized one."""
        if getattr(self, f"{name}_qscheme") is None:
            return getattr(self, name)
        found = self._quantized(name)
        return found.dequantize() if found.is_quantized else found.to(float32)

    def _computed(self, layer: Any, names: tuple[str, ...], *args: Any) -> Any:
        """The result of the class `layer` of floats with rounded weights in place of these."""
        plain = copy.copy(self)
        rounded: dict[str, Any] = {name: self._rounded(name) for name in names}
        plain._parameters = {**self._parameters, **rounded}
        return layer.forward(plain, *args)


def _as_tensor(value: Any, dtype: Any) -> Tensor:
    return value.detach().clone() if isinstance(value, Tensor) else tensor(value, dtype=dtype)


class ReferenceQuantizedModule(Rounded):
    """The base of layers with one weight. A state_dict has the scheme and the dtype of the weight, too."""

    _IS_REFERENCE = True
    weight_qscheme: Any
    weight_dtype: Any

    def _init_weight_qparams(self, weight_qparams: dict[str, Any] | None, device: Any) -> None:
        given = DEFAULT if weight_qparams is None else weight_qparams
        self._set_parameters("weight", given, device)
        self.is_decomposed = given.get("is_decomposed", False)
        self.weight_quant_min, self.weight_quant_max = given.get("quant_min"), given.get("quant_max")

    def get_weight(self) -> Tensor:
        """The weight in floats, rounded to the numbers of the quantized one."""
        return self._rounded("weight")

    def get_quantized_weight(self) -> Tensor:
        """The weight as a quantized tensor."""
        return self._quantized("weight")

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight_qscheme"] = self.weight_qscheme
        destination[prefix + "weight_dtype"] = self.weight_dtype

    def _load_from_state_dict(
        self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, *rest: Any
    ) -> None:
        for name in ("weight_qscheme", "weight_dtype"):
            setattr(self, name, state_dict.pop(prefix + name))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest)
        self.weight_axis_int = int(self.weight_axis)
