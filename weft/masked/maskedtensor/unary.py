"""Functions of single elements: the result has the mask of the input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.layout import strided
from ...core.tensor import Tensor
from ...library.namespaces import ops
from .core import _with_mask, is_masked_tensor
from .sparse_data import on_values

__all__: list[str] = []

UNARY_NAMES = (
    "abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh bitwise_not ceil clamp "
    "clip conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 "
    "logit i0 isnan nan_to_num neg negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc "
    "sinh sqrt square tan tanh trunc"
).split()

INPLACE_UNARY_NAMES = [
    f"{name}_" for name in UNARY_NAMES if name not in ("angle", "isnan", "positive", "signbit")
]

NATIVE_UNARY_FNS = [getattr(ops.aten, name) for name in UNARY_NAMES]
NATIVE_INPLACE_UNARY_FNS = [getattr(ops.aten, name) for name in INPLACE_UNARY_NAMES]

UNARY_NAMES_UNSUPPORTED = (
    "atan2 arctan2 bitwise_left_shift bitwise_right_shift copysign float_power fmod frexp gradient imag ldexp lerp "
    "logical_not hypot igamma igammac mvlgamma nextafter polygamma real remainder true_divide xlogy"
).split()

# Parameters that may be given by name.
_PARAMETERS = frozenset("input self min max nan posinf neginf exponent eps other".split())


def _apply_native_unary(fn: Callable, *args: Any, **kwargs: Any) -> Any:
    """`fn` of a MaskedTensor and numbers.

    Raises: ValueError for keyword-only arguments; TypeError for further tensors.
    """
    if not _PARAMETERS.issuperset(kwargs):
        raise ValueError(
            "MaskedTensor unary ops require that len(kwargs) == 0. If you need support for this, please open an issue on "
            "Github."
        )
    input: Any = args[0] if args else kwargs.get("input")
    if not is_masked_tensor(input):
        raise TypeError("MaskedTensor unary ops require that the first argument is a MaskedTensor")
    others = [*args[1:], *(value for name, value in kwargs.items() if name != "input")]
    if any(isinstance(each, Tensor) for each in others):
        raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")
    if input.layout is not strided:
        return on_values(
            fn, [input, *args[1:]], {name: value for name, value in kwargs.items() if name != "input"}
        )
    result = fn(*args, **kwargs)
    return input if result is input else _with_mask(result, input._masked_mask)
