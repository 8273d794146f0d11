"""Which quantized layer takes the place of which layer of floats."""

from __future__ import annotations

from typing import Any

from ... import nn
from ...library.namespaces import ops
from ...nn import functional as F
from ...nn.modules.linear import NonDynamicallyQuantizableLinear
from ...nn.utils.parametrize import type_before_parametrizations
from ..nn import intrinsic as fused
from ..nn import qat, quantizable, quantized
from ..nn.intrinsic import qat as fused_qat
from ..nn.intrinsic import quantized as fused_quantized
from ..nn.intrinsic.quantized import dynamic as fused_dynamic
from ..nn.qat import dynamic as qat_dynamic
from ..nn.quantized import dynamic, reference
from .fake_quantize import (
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
)
from .stubs import DeQuantStub, QuantStub

DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    QuantStub: quantized.Quantize,
    DeQuantStub: quantized.DeQuantize,
    nn.Linear: quantized.Linear,
    nn.Conv1d: quantized.Conv1d,
    nn.Conv2d: quantized.Conv2d,
    nn.Conv3d: quantized.Conv3d,
    nn.ConvTranspose1d: quantized.ConvTranspose1d,
    nn.ConvTranspose2d: quantized.ConvTranspose2d,
    nn.ConvTranspose3d: quantized.ConvTranspose3d,
    nn.Dropout: quantized.Dropout,
    nn.ELU: quantized.ELU,
    nn.GroupNorm: quantized.GroupNorm,
    nn.Hardswish: quantized.Hardswish,
    nn.InstanceNorm1d: quantized.InstanceNorm1d,
    nn.InstanceNorm2d: quantized.InstanceNorm2d,
    nn.InstanceNorm3d: quantized.InstanceNorm3d,
    nn.LayerNorm: quantized.LayerNorm,
    nn.LeakyReLU: quantized.LeakyReLU,
    nn.PReLU: quantized.PReLU,
    nn.BatchNorm2d: quantized.BatchNorm2d,
    nn.BatchNorm3d: quantized.BatchNorm3d,
    nn.ReLU6: quantized.ReLU6,
    nn.Embedding: quantized.Embedding,
    nn.EmbeddingBag: quantized.EmbeddingBag,
    quantized.FloatFunctional: quantized.QFunctional,
    NonDynamicallyQuantizableLinear: quantized.Linear,
    fused.BNReLU2d: fused_quantized.BNReLU2d,
    fused.BNReLU3d: fused_quantized.BNReLU3d,
    fused.ConvReLU1d: fused_quantized.ConvReLU1d,
    fused.ConvReLU2d: fused_quantized.ConvReLU2d,
    fused.ConvReLU3d: fused_quantized.ConvReLU3d,
    fused.ConvAdd2d: fused_quantized.ConvAdd2d,
    fused.ConvAddReLU2d: fused_quantized.ConvAddReLU2d,
    fused.LinearReLU: fused_quantized.LinearReLU,
    fused.LinearLeakyReLU: fused_quantized.LinearLeakyReLU,
    fused.LinearTanh: fused_quantized.LinearTanh,
    fused_qat.ConvBn1d: quantized.Conv1d,
    fused_qat.ConvBn2d: quantized.Conv2d,
    fused_qat.ConvBn3d: quantized.Conv3d,
    fused_qat.ConvBnReLU1d: fused_quantized.ConvReLU1d,
    fused_qat.ConvBnReLU2d: fused_quantized.ConvReLU2d,
    fused_qat.ConvBnReLU3d: fused_quantized.ConvReLU3d,
    fused_qat.ConvReLU2d: fused_quantized.ConvReLU2d,
    fused_qat.ConvReLU3d: fused_quantized.ConvReLU3d,
    fused_qat.LinearReLU: fused_quantized.LinearReLU,
    fused_qat.LinearBn1d: quantized.Linear,
    qat.Linear: quantized.Linear,
    qat.Conv2d: quantized.Conv2d,
    qat.Conv3d: quantized.Conv3d,
}
DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    QuantStub: quantized.Quantize,
    DeQuantStub: quantized.DeQuantize,
    nn.Linear: reference.Linear,
    nn.Conv1d: reference.Conv1d,
    nn.Conv2d: reference.Conv2d,
    nn.Conv3d: reference.Conv3d,
    nn.ConvTranspose1d: reference.ConvTranspose1d,
    nn.ConvTranspose2d: reference.ConvTranspose2d,
    nn.ConvTranspose3d: reference.ConvTranspose3d,
    nn.Embedding: reference.Embedding,
    nn.EmbeddingBag: reference.EmbeddingBag,
    nn.GRUCell: reference.GRUCell,
    nn.LSTMCell: reference.LSTMCell,
    nn.RNNCell: reference.RNNCell,
    nn.LSTM: reference.LSTM,
}
DEFAULT_QAT_MODULE_MAPPINGS: dict[Any, Any] = {
    nn.Conv2d: qat.Conv2d,
    nn.Conv3d: qat.Conv3d,
    nn.Linear: qat.Linear,
    NonDynamicallyQuantizableLinear: qat.Linear,
    fused.ConvBn1d: fused_qat.ConvBn1d,
    fused.ConvBn2d: fused_qat.ConvBn2d,
    fused.ConvBn3d: fused_qat.ConvBn3d,
    fused.ConvBnReLU1d: fused_qat.ConvBnReLU1d,
    fused.ConvBnReLU2d: fused_qat.ConvBnReLU2d,
    fused.ConvBnReLU3d: fused_qat.ConvBnReLU3d,
    fused.ConvReLU2d: fused_qat.ConvReLU2d,
    fused.ConvReLU3d: fused_qat.ConvReLU3d,
    fused.LinearReLU: fused_qat.LinearReLU,
    fused.LinearBn1d: fused_qat.LinearBn1d,
}
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    nn.Linear: dynamic.Linear,
    NonDynamicallyQuantizableLinear: dynamic.Linear,
    qat_dynamic.Linear: dynamic.Linear,
    fused.LinearReLU: fused_dynamic.LinearReLU,
    nn.LSTM: dynamic.LSTM,
    nn.GRU: dynamic.GRU,
    nn.LSTMCell: dynamic.LSTMCell,
    nn.GRUCell: dynamic.GRUCell,
    nn.RNNCell: dynamic.RNNCell,
    nn.Embedding: quantized.Embedding,
    nn.EmbeddingBag: quantized.EmbeddingBag,
}
# The quantized functions of functions of floats.
DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS: dict[Any, Any] = {
    getattr(F, name): getattr(ops.quantized, name)
    for name in ("elu", "hardswish", "instance_norm", "layer_norm", "leaky_relu", "dropout")
}
# Layers whose results have a range that is known beforehand.
DEFAULT_MODULE_TO_ACT_POST_PROCESS: dict[Any, Any] = {
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}


def get_default_static_quant_module_mappings() -> dict[Any, Any]:
    """The quantized layers whose input is quantized, by the layers of floats."""
    return dict(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_static_quant_reference_module_mappings() -> dict[Any, Any]:
    """The reference layers, which compute in floats with rounded weights, by the layers of floats."""
    return dict(DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS)


def get_embedding_static_quant_module_mappings() -> dict[Any, Any]:
    """Those of `get_default_static_quant_module_mappings`, and those of embeddings that were trained with rounded tables."""
    trained = {qat.Embedding: quantized.Embedding, qat.EmbeddingBag: quantized.EmbeddingBag}
    return {**DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, **trained}


def get_default_qat_module_mappings() -> dict[Any, Any]:
    """The layers with rounded weights, by the layers of floats."""
    return dict(DEFAULT_QAT_MODULE_MAPPINGS)


def get_embedding_qat_module_mappings() -> dict[Any, Any]:
    """Those of `get_default_qat_module_mappings`, and those of embeddings."""
    return {**DEFAULT_QAT_MODULE_MAPPINGS, nn.EmbeddingBag: qat.EmbeddingBag, nn.Embedding: qat.Embedding}


def get_default_dynamic_quant_module_mappings() -> dict[Any, Any]:
    """The quantized layers whose input is of floats, by the layers of floats."""
    return dict(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)


def no_observer_set() -> set[Any]:
    """The layers that `prepare` observes inside, and not as a whole."""
    return {quantizable.LSTM, quantizable.MultiheadAttention}


def get_default_qconfig_propagation_list() -> set[Any]:
    """The layers that are observed."""
    mappings = (
        DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        DEFAULT_QAT_MODULE_MAPPINGS,
        DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    )
    return {nn.Sequential}.union(*mappings)


def get_default_compare_output_module_list() -> set[Any]:
    """The layers that are observed, and those that take their places."""
    mappings = (
        DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        DEFAULT_QAT_MODULE_MAPPINGS,
        DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    )
    return get_default_qconfig_propagation_list().union(*(mapping.values() for mapping in mappings))


def get_default_float_to_quantized_operator_mappings() -> dict[Any, Any]:
    """The quantized functions, by the functions of floats."""
    return dict(DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS)


def get_quantized_operator(float_op: Any) -> Any:
    """The quantized function for one of floats.

    Raises: AssertionError if there is none.
    """
    found = DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS.get(float_op)
    if found is None:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return found


def _quantized_class(float_module_class: Any, mapping: dict[Any, Any], additional: dict | None) -> Any:
    found = {**mapping, **(additional or {})}.get(float_module_class)
    if found is None:
        raise AssertionError(
            f"Floating point module class {float_module_class} does not have a corresponding quantized module class"
        )
    return found


def get_static_quant_module_class(
    float_module_class: Any, additional_static_quant_mapping: Any = None, is_reference: bool = False
) -> Any:
    """The quantized layer for one of floats.

    Raises: AssertionError if there is none.
    """
    mapping = (
        DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS
        if is_reference
        else DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    )
    return _quantized_class(float_module_class, mapping, additional_static_quant_mapping)


def get_dynamic_quant_module_class(
    float_module_class: Any, additional_dynamic_quant_mapping: Any = None
) -> Any:
    """The layer for one of floats that quantizes its input when it is called.

    Raises: AssertionError if there is none.
    """
    return _quantized_class(
        float_module_class, DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, additional_dynamic_quant_mapping
    )


def fixed_post_process(module: nn.Module) -> Any:
    """The constructor of the FakeQuantize of a layer in training mode whose range is known beforehand, else None."""
    kind = type_before_parametrizations(module)
    return DEFAULT_MODULE_TO_ACT_POST_PROCESS.get(kind) if module.training else None
