"""Which quantized layer takes the place of which layer of floats."""

from __future__ import annotations

from typing import Any

from ... import nn
from ...compat.missing import module_getattr
from ..nn import intrinsic as fused
from ..nn import quantized
from ..nn.intrinsic import quantized as fused_quantized
from ..nn.quantized import dynamic
from .stubs import DeQuantStub, QuantStub

_STATIC: dict[Any, Any] = {
    QuantStub: quantized.Quantize,
    DeQuantStub: quantized.DeQuantize,
    nn.Linear: quantized.Linear,
    nn.Conv1d: quantized.Conv1d,
    nn.Conv2d: quantized.Conv2d,
    nn.Conv3d: quantized.Conv3d,
    nn.BatchNorm2d: quantized.BatchNorm2d,
    nn.BatchNorm3d: quantized.BatchNorm3d,
    nn.ReLU6: quantized.ReLU6,
    nn.Embedding: quantized.Embedding,
    quantized.FloatFunctional: quantized.QFunctional,
    fused.LinearReLU: fused_quantized.LinearReLU,
    fused.ConvReLU1d: fused_quantized.ConvReLU1d,
    fused.ConvReLU2d: fused_quantized.ConvReLU2d,
    fused.ConvReLU3d: fused_quantized.ConvReLU3d,
}
_DYNAMIC: dict[Any, Any] = {nn.Linear: dynamic.Linear}
# PyTorch quantizes these, too, when they are called.
DYNAMIC_IN_PYTORCH = (nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell, nn.RNNCell)


def get_default_static_quant_module_mappings() -> dict[Any, Any]:
    """The quantized layers whose input is quantized, by the layers of floats."""
    return dict(_STATIC)


def get_default_dynamic_quant_module_mappings() -> dict[Any, Any]:
    """The quantized layers whose input is of floats, by the layers of floats."""
    return dict(_DYNAMIC)


def get_default_qconfig_propagation_list() -> set[Any]:
    """The layers that are observed."""
    return {*_STATIC, *_DYNAMIC}


def get_static_quant_module_class(
    float_module_class: Any, additional_static_quant_mapping: Any = None, is_reference: bool = False
) -> Any:
    """The quantized layer for one of floats.

    Raises: AssertionError if there is none; NotImplementedError for reference layers.
    """
    if is_reference:
        raise NotImplementedError("get_static_quant_module_class: reference layers are not there yet")
    found = {**_STATIC, **(additional_static_quant_mapping or {})}.get(float_module_class)
    if found is None:
        raise AssertionError(
            f"Floating point module class {float_module_class} does not have a corresponding quantized module class"
        )
    return found


__getattr__ = module_getattr(__name__)
