"""What the workflow asks of QConfigs, observers and modules."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import reduce
from typing import Any

from ...core.dtype import (
    QUANTIZED,
    DType,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float64,
    int8,
    int16,
    int32,
    int64,
    qint8,
    qint32,
    quint4x2,
    quint8,
    uint8,
    uint16,
)
from ...core.limits import iinfo
from ...core.qscheme import SCHEMES, qscheme
from ...core.tensor import Tensor
from ...core.warn import user_level
from ...layouts.quantized.ranges import observed_qparams
from ...nn import Module
from ...nn.utils.parametrize import is_parametrized
from ...ops.creation.from_data import tensor
from .quant_type import QuantType

DEPRECATION_WARNING = "torch.ao.quantization is deprecated in PyTorch, where torchao takes its place."
_BYTES = quint8, qint8, uint8, int8
_INT32 = qint32, int32
_FLOAT8 = float8_e5m2, float8_e4m3fn
_PER_TENSOR = SCHEMES["per_tensor_affine"], SCHEMES["per_tensor_symmetric"]
_SYMMETRIC = SCHEMES["per_tensor_symmetric"], SCHEMES["per_channel_symmetric"]


class MatchAllNode:
    """The part of a pattern that everything matches."""


# ---- QConfigs ------------------------------------------------------------------------------------------------------------


def get_qconfig_dtypes(qconfig: Any) -> tuple[Any, Any, bool]:
    """The dtype of the results, the dtype of the weights, and whether each result gets parameters of its own."""
    if qconfig is None:
        raise AssertionError("qconfig must be provided to extract dtypes")
    activation = qconfig.activation()
    return activation.dtype, qconfig.weight().dtype, getattr(activation, "is_dynamic", False)


def activation_dtype(qconfig: Any) -> Any:
    """The dtype of the results."""
    if qconfig is None:
        raise AssertionError("qconfig must be provided to determine activation dtype")
    return qconfig.activation().dtype


def weight_dtype(qconfig: Any) -> Any:
    """The dtype of the weights."""
    if qconfig is None:
        raise AssertionError("qconfig must be provided to determine weight dtype")
    return qconfig.weight().dtype


def activation_is_dynamically_quantized(qconfig: Any) -> bool:
    """Whether each result gets parameters of its own."""
    return get_qconfig_dtypes(qconfig)[2]


def activation_is_statically_quantized(qconfig: Any) -> bool:
    """Whether the results are quantized, or float16, with the same parameters each time."""
    wanted = *_BYTES, *_INT32, *_FLOAT8, float16, int16
    return activation_dtype(qconfig) in wanted and not activation_is_dynamically_quantized(qconfig)


def activation_is_int8_quantized(qconfig: Any) -> bool:
    """Whether the results have integers of 8 bits."""
    return activation_dtype(qconfig) in _BYTES


def activation_is_int32_quantized(qconfig: Any) -> bool:
    """Whether the results have integers of 32 bits."""
    return activation_dtype(qconfig) in _INT32


def weight_is_quantized(qconfig: Any) -> bool:
    """Whether the weights are quantized, or float16."""
    return weight_dtype(qconfig) in (*_BYTES, *_FLOAT8, quint4x2, float16, int16, int32)


def weight_is_statically_quantized(qconfig: Any) -> bool:
    """Whether the weights have integers of 8 bits."""
    return weight_dtype(qconfig) in _BYTES


def op_is_int8_dynamically_quantized(qconfig: Any) -> bool:
    """Whether each result gets parameters of its own, and both it and the weights have integers of 8 bits."""
    activation, weight, is_dynamic = get_qconfig_dtypes(qconfig)
    return activation in (quint8, uint8) and weight in (qint8, int8) and is_dynamic


def get_quant_type(qconfig: Any) -> QuantType:
    """When the results and the weights are quantized."""
    if qconfig is None:
        raise AssertionError("qconfig must be provided to determine quant type")
    activation, weight, is_dynamic = get_qconfig_dtypes(qconfig)
    static = *_BYTES, *_INT32, *_FLOAT8, quint4x2, int16
    if weight in (*static, float16):
        if is_dynamic:
            return QuantType.DYNAMIC
        if activation is float16 if weight is float16 else activation in static:
            return QuantType.STATIC
        if weight is not float16:
            return QuantType.WEIGHT_ONLY
    raise Exception(  # noqa: TRY002 (PyTorch's class)
        f"Unrecognized dtype combination in get_quant_type: activation({activation}),weight({weight})"
    )


def get_swapped_custom_module_class(
    custom_module: Any, custom_module_class_mapping: dict, qconfig: Any
) -> Any:
    """The class that takes the place of the module's, of a dict for each QuantType."""
    mapping = custom_module_class_mapping.get(get_quant_type(qconfig), {})
    if type(custom_module) not in mapping:
        raise AssertionError(
            f"did not find corresponding observed module class for {type(custom_module)} in mapping: {mapping}"
        )
    return mapping[type(custom_module)]


# ---- Modules -------------------------------------------------------------------------------------------------------------


def get_combined_dict(default_dict: dict, additional_dict: dict) -> dict:
    """A new dict with the entries of both; those of the second count.

    >>> get_combined_dict({"a": 1, "b": 1}, {"b": 2})
    {'a': 1, 'b': 2}
    """
    return {**default_dict, **additional_dict}


def getattr_from_fqn(obj: Any, fqn: str) -> Any:
    """The attribute of a name with dots."""
    return reduce(getattr, fqn.split("."), obj)


def has_no_children_ignoring_parametrizations(module: Module) -> bool:
    """Whether the module holds no modules, but for its parametrizations."""
    return not module._modules.keys() - ({"parametrizations"} if is_parametrized(module) else set())


# ---- Schemes and ranges --------------------------------------------------------------------------------------------------


def is_per_tensor(qscheme: qscheme) -> bool:
    """Whether a tensor has one scale."""
    return qscheme in _PER_TENSOR


def is_per_channel(qscheme: qscheme) -> bool:
    """Whether a tensor has a scale for each channel."""
    return qscheme in SCHEMES.values() and qscheme not in _PER_TENSOR


def to_underlying_dtype(qdtype: DType) -> DType:
    """The dtype of the integers.

    >>> import weft as torch
    >>> to_underlying_dtype(torch.quint8)
    torch.uint8
    """
    if qdtype not in QUANTIZED and qdtype not in (uint8, int8, uint16, int16, int32, *_FLOAT8):
        raise AssertionError(f"Unsupported dtype: {qdtype}")
    return QUANTIZED.get(qdtype, qdtype)


def check_min_max_valid(min_val: Tensor, max_val: Tensor) -> bool:
    """Whether the range has been observed.

    Raises: AssertionError if it ends before it begins.
    """
    is_unset = min_val.numel() == 0 or max_val.numel() == 0
    if not is_unset and (min_val.dim() == 0 or max_val.dim() == 0):
        is_unset = float(min_val) == float("inf") and float(max_val) == float("-inf")
    if is_unset:
        warnings.warn(
            "must run observer before calling calculate_qparams. Returning default values.",
            stacklevel=user_level(),
        )
    elif bool((min_val > max_val).any()):
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return not is_unset


def get_qparam_dict(observer_or_fake_quant: Any) -> dict[str, Any]:
    """What an observer says of a tensor: dtype, qscheme (of quantized tensors, so an affine one), axis, scale, zero_point and bounds.

    An observer of dtypes only, such as PlaceholderObserver, has dtype, and None as qscheme.
    """
    observer = observer_or_fake_quant
    scheme = getattr(observer, "qscheme", None)
    if not scheme or not getattr(observer, "chooses_parameters", True):
        return {"qscheme": None, "dtype": observer.dtype}
    if not (is_per_tensor(scheme) or is_per_channel(scheme)):
        raise RuntimeError(f"Unrecognized qscheme: {scheme}")
    affine = {
        SCHEMES["per_tensor_symmetric"]: _PER_TENSOR[0],
        SCHEMES["per_channel_symmetric"]: SCHEMES["per_channel_affine"],
    }
    found = {"qscheme": affine.get(scheme, scheme), "dtype": observer.dtype}
    if is_per_channel(scheme):
        found["axis"] = observer.ch_axis
    found["scale"], found["zero_point"] = observer.calculate_qparams()
    bounds = ("quant_min", "quant_max")
    return found | {name: getattr(observer, name) for name in bounds if hasattr(observer, name)}


def validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
    """Raise AssertionError unless the integers go from a lesser to a greater one, and hold 0."""
    if not quant_min <= 0 <= quant_max:
        raise AssertionError(f"The integers from {quant_min} to {quant_max} must hold 0")
    if quant_min >= quant_max:
        raise AssertionError(f"quant_min must be less than quant_max, got {quant_min} and {quant_max}")


def calculate_qmin_qmax(
    quant_min: int | None,
    quant_max: int | None,
    has_customized_qrange: bool,
    dtype: DType,
    reduce_range: bool,
) -> tuple[int, int]:
    """The least and the greatest integer: those given or those of the dtype, of which `reduce_range` keeps half.

    >>> import weft as torch
    >>> calculate_qmin_qmax(None, None, False, torch.qint8, True)
    (-64, 63)
    """
    stored = QUANTIZED.get(dtype, dtype)
    if has_customized_qrange and quant_min is not None and quant_max is not None:
        bits = {int8: 8, int32: 32}.get(stored)
        if bits is not None and not 0 < quant_max - quant_min + 1 <= 2**bits:
            raise AssertionError(
                f"quantization range should be positive and not exceed the maximum bit range (={2**bits})."
            )
        return (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)
    if dtype not in (*_BYTES, *_INT32, uint16, int16):
        return 0, 15
    bounds = iinfo(stored)
    return (
        (bounds.min // 2, bounds.max // 2) if reduce_range and dtype in _BYTES else (bounds.min, bounds.max)
    )


def qparams_of_range(
    min_val: Tensor, max_val: Tensor, quant_min: int, quant_max: int, dtype: DType, eps: float,
    has_customized_qrange: bool, qscheme: qscheme,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The scales and the zero points of ranges, as observers compute them."""
    middle = 0
    if qscheme in _SYMMETRIC and dtype in (quint8, uint8):
        middle = (quant_min + quant_max) // 2 if has_customized_qrange else 128
    ends = min_val.reshape(-1), max_val.reshape(-1)
    return observed_qparams(*ends, quant_min, quant_max, qscheme, middle, eps)


def determine_qparams(
    min_val: Tensor, max_val: Tensor, quant_min: int, quant_max: int, dtype: DType, eps: Tensor,
    has_customized_qrange: bool, qscheme: qscheme = _PER_TENSOR[0],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The scales (float64) and the zero points (int64) of observed ranges; 1 and 0 if nothing has been observed."""
    if not check_min_max_valid(min_val, max_val):
        return tensor([1.0]), tensor([0])
    scale, zero_point = qparams_of_range(
        min_val, max_val, quant_min, quant_max, dtype, float(eps), has_customized_qrange, qscheme
    )
    return scale.to(float64), zero_point.to(int64)


def get_fqn_to_example_inputs(model: Module, example_inputs: tuple[Any, ...]) -> dict[str, tuple[Any, ...]]:
    """The arguments that each module of a model gets in a call, all as positional ones, defaults as well. Runs the model.

    >>> import weft as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3))
    >>> found = get_fqn_to_example_inputs(model, (torch.ones(1, 2),))
    >>> {name: [each.shape for each in inputs] for name, inputs in found.items()}
    {'': [torch.Size([1, 2])], '0': [torch.Size([1, 2])]}
    """
    found: dict[str, tuple[Any, ...]] = {}

    def noting(name: str) -> Callable:
        def note(module: Module, args: tuple, kwargs: dict[str, Any]) -> None:
            bound = inspect.signature(module.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            found[name] = tuple(bound.arguments.values())

        return note

    hooks = [
        module.register_forward_pre_hook(noting(name), with_kwargs=True)
        for name, module in model.named_modules()
    ]
    try:
        model(*example_inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return found
