"""Operators in terms of simpler ones: `torch._decomp`.

`decomposition_table` has a function for each overload, with the arguments of its schema. `make_fx` and `ExportedProgram.run_decompositions`
call it in the place of the operator. The functions call operators, of which the table may have decompositions in turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..core.dtype import bfloat16, float16, float32
from ..core.tensor import Tensor
from .keys import Tag
from .namespaces import OpOverload, OpOverloadPacket, ops
from .registry.aten_derivatives import reshaped

__all__ = [
    "core_aten_decompositions",
    "decomposition_table",
    "get_decompositions",
    "register_decomposition",
]

aten = ops.aten
decomposition_table: dict[Any, Callable] = {}
Op = OpOverload | OpOverloadPacket


def register_decomposition(
    aten_op: Op | Sequence[Op],
    registry: dict | None = None,
    *,
    type: str = "post_autograd",
    unsafe: bool = False,
) -> Callable[[Callable], Callable]:
    """Decorator: the function is the decomposition of an operator, or of all of its overloads.

    registry: the table that it enters, if not `decomposition_table`.
    Raises: NotImplementedError for a `type` other than "post_autograd", because weft traces beneath autograd.
    """
    if type != "post_autograd":
        raise NotImplementedError(f"register_decomposition(type={type!r}): only 'post_autograd' is there")
    table = decomposition_table if registry is None else registry

    def register(function: Callable) -> Callable:
        for each in _overloads(aten_op):
            table[each] = function
        return function

    return register


def get_decompositions(aten_ops: Sequence[Op], type: str = "post_autograd") -> dict[OpOverload, Callable]:
    """The part of `decomposition_table` for these operators. Operators without a decomposition are left out.

    >>> import weft as torch
    >>> list(get_decompositions([torch.ops.aten.silu, torch.ops.aten.sin]))
    [<OpOverload(op='aten.silu', overload='default')>]
    """
    if type != "post_autograd":
        raise NotImplementedError(f"get_decompositions(type={type!r}): only 'post_autograd' is there")
    return {each: decomposition_table[each] for each in _overloads(aten_ops) if each in decomposition_table}


def core_aten_decompositions() -> dict[OpOverload, Callable]:
    """The decompositions of the operators that are not in PyTorch's core set."""
    return {op: function for op, function in decomposition_table.items() if Tag.core not in op.tags}


def _overloads(operators: Any) -> list[OpOverload]:
    if isinstance(operators, OpOverload):
        return [operators]
    if isinstance(operators, OpOverloadPacket):
        return [getattr(operators, name) for name in operators.overloads()]
    return [each for op in operators for each in _overloads(op)]


def _of(name: str) -> Callable[[Callable], Callable]:
    """`register_decomposition` of the overload `name`, "default" if it names none."""
    operator, _, overload = name.partition(".")
    return register_decomposition(getattr(getattr(aten, operator), overload or "default"))


def _table(rows: dict[str, Callable]) -> None:
    for name, function in rows.items():
        _of(name)(function)


# ---- Activations and their derivatives -----------------------------------------------------------------------------------


def _elu(x: Tensor, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Tensor:
    return aten.where(x > 0, x * scale, aten.expm1(x * input_scale) * (alpha * scale))


def _gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate == "none":
        return x * 0.5 * (1 + aten.erf(x * math.sqrt(0.5)))
    return 0.5 * x * (1 + aten.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _gelu_backward(g: Tensor, x: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate == "none":
        density = aten.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
        return g * (0.5 * (1 + aten.erf(x * math.sqrt(0.5))) + x * density)
    factor = math.sqrt(2 / math.pi)
    t = aten.tanh(factor * (x + 0.044715 * x * x * x))
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (factor * (1 + 3 * 0.044715 * x * x)))


def _log_sigmoid(x: Tensor) -> tuple[Tensor, Tensor]:
    buffer = aten.exp(-aten.abs(x))
    return aten.clamp_max(x, 0) - aten.log1p(buffer), buffer


def _softplus(x: Tensor, beta: Any = 1, threshold: Any = 20) -> Tensor:
    return aten.where(x * beta > threshold, x, aten.log1p(aten.exp(x * beta)) / beta)


def _glu(x: Tensor, dim: int = -1) -> Tensor:
    first, second = aten.split(x, x.shape[dim] // 2, dim)
    return first * aten.sigmoid(second)


_table({
    "silu": lambda x: x * aten.sigmoid(x),
    "silu_backward": lambda g, x: g * (s := aten.sigmoid(x)) * (1 + x * (1 - s)),
    "mish": lambda x: x * aten.tanh(aten.softplus(x)),
    "gelu": _gelu,
    "gelu_backward": _gelu_backward,
    "relu": lambda x: aten.clamp_min(x, 0),
    "hardtanh": lambda x, min_val=-1, max_val=1: aten.clamp(x, min_val, max_val),
    "hardsigmoid": lambda x: aten.clamp(x + 3, 0, 6) / 6,
    "hardswish": lambda x: x * aten.clamp(x + 3, 0, 6) / 6,
    "leaky_relu": lambda x, negative_slope=0.01: aten.where(x > 0, x, x * negative_slope),
    "leaky_relu_backward": lambda g, x, slope, is_result: aten.where(x > 0, g, g * slope),
    "elu": _elu,
    "softplus": _softplus,
    "log_sigmoid_forward": _log_sigmoid,
    "threshold": lambda x, threshold, value: aten.where(x <= threshold, value, x),
    "threshold_backward": lambda g, x, threshold: aten.where(x <= threshold, 0, g),
    "tanh_backward": lambda g, result: g * (1 - result * result),
    "sigmoid_backward": lambda g, result: g * (result * (1 - result)),
    "hardshrink": lambda x, lambd=0.5: aten.where(aten.abs(x) <= lambd, 0, x),
    "softshrink": lambda x, lambd=0.5: aten.where(aten.abs(x) > lambd, x - aten.sign(x) * lambd, x * 0),
    "glu": _glu,
})  # fmt: skip

# ---- Elementwise -----------------------------------------------------------------------------------------------------------


def _lerp(start: Tensor, end: Tensor, weight: Any) -> Tensor:
    return start + weight * (end - start)


def _xlogy(x: Any, y: Any) -> Tensor:
    x = x if isinstance(x, Tensor) else aten.full_like(y, x)
    logarithm = aten.log(y) if isinstance(y, Tensor) else math.log(y) if y > 0 else math.nan
    return aten.where(
        aten.isnan(y) if isinstance(y, Tensor) else x != x, math.nan, aten.where(x == 0, 0, x * logarithm)
    )


_table({
    "addcmul": lambda x, first, second, *, value=1: x + value * first * second,
    "addcdiv": lambda x, first, second, *, value=1: x + value * (first / second),
    "lerp.Scalar": _lerp,
    "lerp.Tensor": _lerp,
    "rsub.Tensor": lambda x, other, *, alpha=1: other - (x if alpha == 1 else alpha * x),
    "rsub.Scalar": lambda x, other, alpha=1: other - (x if alpha == 1 else alpha * x),
    "frac": lambda x: x - aten.trunc(x),
    "deg2rad": lambda x: x * (math.pi / 180),
    "rad2deg": lambda x: x * (180 / math.pi),
    "xlogy.Tensor": _xlogy,
    "masked_fill.Scalar": lambda x, mask, value: aten.where(mask, aten.scalar_tensor(value, dtype=x.dtype, device=x.device), x),
    "masked_fill.Tensor": lambda x, mask, value: aten.where(mask, value, x),
    "heaviside": lambda x, values: aten.where(x == 0, values, aten._to_copy(x > 0, dtype=x.dtype)),
    "zero": lambda x: aten.zeros_like(x),
})  # fmt: skip

# ---- Products --------------------------------------------------------------------------------------------------------------


def _scaled(x: Tensor, factor: Any) -> Tensor:
    return x if factor == 1 else x * factor


def _plus(x: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    product = _scaled(product, alpha)
    return product if beta == 0 else product + _scaled(x, beta)


_table({
    "addmm": lambda x, a, b, *, beta=1, alpha=1: _plus(x, aten.mm(a, b), beta, alpha),
    "addmv": lambda x, a, b, *, beta=1, alpha=1: _plus(x, aten.mv(a, b), beta, alpha),
    "addr": lambda x, a, b, *, beta=1, alpha=1: _plus(x, aten.unsqueeze(a, 1) * b, beta, alpha),
    "baddbmm": lambda x, a, b, *, beta=1, alpha=1: _plus(x, aten.bmm(a, b), beta, alpha),
    "mv": lambda a, b: aten.sum(a * b, [1]),
    "dot": lambda a, b: aten.sum(a * b),
})  # fmt: skip

# ---- Views and moves -------------------------------------------------------------------------------------------------------


def _slice_backward(g: Tensor, sizes: Sequence[int], dim: int, start: int, end: int, step: int) -> Tensor:
    zeros = aten.new_zeros(g, sizes)
    return aten.slice_scatter(zeros, g, dim, start, end, step)


def _stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return aten.cat([aten.unsqueeze(each, dim) for each in tensors], dim % (tensors[0].ndim + 1))


def _split(x: Tensor, size: int, dim: int = 0) -> Sequence[Tensor]:
    whole = x.shape[dim]
    sizes = [min(size, whole - start) for start in range(0, whole, size)] if size else [0]
    return aten.split_with_sizes(x, sizes, dim)


def _roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    if not dims:
        return reshaped(_roll(reshaped(x, [-1]), shifts, [0]), list(x.shape))
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim]
        if size:
            start = -shift % size
            x = aten.cat([aten.slice(x, dim, start), aten.slice(x, dim, 0, start)], dim)
    return x


_table({
    "t": lambda x: aten.permute(x, [1, 0]) if x.ndim == 2 else x,
    "transpose.int": lambda x, a, b: aten.permute(x, _swapped(x.ndim, a, b)),
    "stack": _stack,
    "split.Tensor": _split,
    "unbind.int": lambda x, dim=0: [aten.select(x, dim, place) for place in range(x.shape[dim])],
    "select_backward": lambda g, sizes, dim, index: aten.select_scatter(aten.new_zeros(g, sizes), g, dim, index),
    "slice_backward": _slice_backward,
    "roll": _roll,
    "trace": lambda x: aten.sum(aten.diagonal(x)),
    "_unsafe_view": lambda x, size: aten.view(x, size),
})  # fmt: skip


def _swapped(ndim: int, first: int, second: int) -> list[int]:
    dims = list(range(ndim))
    if ndim:
        dims[first], dims[second] = dims[second], dims[first]
    return dims


# ---- New tensors -----------------------------------------------------------------------------------------------------------


def _options(x: Tensor, dtype: Any, device: Any) -> dict[str, Any]:
    return {"dtype": dtype or x.dtype, "device": device or x.device}


def _new(value: Any) -> Callable:
    def made(x: Tensor, size: Sequence[int], *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None) -> Tensor:  # fmt: skip
        return aten.full(size, value, **_options(x, dtype, device))

    return made


def _like(value: Any) -> Callable:
    def made(x: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None, memory_format: Any = None) -> Tensor:  # fmt: skip
        return aten.full_like(x, value, **_options(x, dtype, device))

    return made


_table({
    "zeros_like": _like(0), "ones_like": _like(1), "new_zeros": _new(0), "new_ones": _new(1),
    "zeros": lambda size, **options: aten.full(size, 0, **{"dtype": float32, **_given(options)}),
    "ones": lambda size, **options: aten.full(size, 1, **{"dtype": float32, **_given(options)}),
})  # fmt: skip


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


# ---- Reductions and normalizations -----------------------------------------------------------------------------------------


def _wide(x: Tensor) -> Tensor:
    """In float32 at least, in which reductions of shorter floats are computed."""
    return aten._to_copy(x, dtype=float32) if x.dtype in (float16, bfloat16) else x


def _as(x: Tensor, other: Tensor) -> Tensor:
    return x if x.dtype is other.dtype else aten._to_copy(x, dtype=other.dtype)


def _softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    wide = _wide(x)
    powers = aten.exp(wide - aten.amax(wide, [dim], True))
    return _as(powers / aten.sum(powers, [dim], True), wide if half_to_float else x)


def _log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    wide = _wide(x)
    shifted = wide - aten.amax(wide, [dim], True)
    return _as(shifted - aten.log(aten.sum(aten.exp(shifted), [dim], True)), wide if half_to_float else x)


def _layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    dims = list(range(x.ndim - len(shape), x.ndim))
    wide = _wide(x)
    mean = aten.mean(wide, dims, True)
    scale = aten.rsqrt(aten.var(wide, dims, correction=0, keepdim=True) + eps)
    result = (wide - mean) * scale
    result = result if weight is None else result * weight
    return _as(result if bias is None else result + bias, x), mean, scale


def _logsumexp(x: Tensor, dim: Sequence[int], keepdim: bool = False) -> Tensor:
    largest = aten.amax(x, dim, True)
    largest = aten.where(aten.abs(largest) == math.inf, 0, largest)
    total = aten.log(aten.sum(aten.exp(x - largest), dim, keepdim))
    return total + (largest if keepdim else aten.squeeze(largest, dim))


_table({
    "_softmax": _softmax,
    "_log_softmax": _log_softmax,
    "_softmax_backward_data": lambda g, result, dim, dtype: (p := g * result) - result * aten.sum(p, [dim], True),
    "_log_softmax_backward_data": lambda g, result, dim, dtype: g - aten.exp(result) * aten.sum(g, [dim], True),
    "native_layer_norm": _layer_norm,
    "logsumexp": _logsumexp,
    "std.correction": lambda x, dim=None, *, correction=None, keepdim=False:
        aten.sqrt(aten.var(x, dim, correction=correction, keepdim=keepdim)),
    "mean.default": lambda x, *, dtype=None: aten.sum(x, dtype=dtype) / x.numel(),
})  # fmt: skip

# ---- Losses ----------------------------------------------------------------------------------------------------------------


def _reduced(loss: Tensor, reduction: int) -> Tensor:
    return aten.mean(loss) if reduction == 1 else aten.sum(loss) if reduction == 2 else loss


def _smooth_l1(x: Tensor, target: Tensor, reduction: int = 1, beta: float = 1.0) -> Tensor:
    distance = aten.abs(x - target)
    if beta:
        distance = aten.where(distance < beta, 0.5 * distance * distance / beta, distance - 0.5 * beta)
    return _reduced(distance, reduction)


def _huber(x: Tensor, target: Tensor, reduction: int = 1, delta: float = 1.0) -> Tensor:
    distance = aten.abs(x - target)
    return _reduced(
        aten.where(distance <= delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta)), reduction
    )


def _binary_cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    loss = (target - 1) * aten.clamp_min(aten.log1p(-x), -100) - target * aten.clamp_min(aten.log(x), -100)
    return _reduced(loss if weight is None else loss * weight, reduction)


_table({
    "mse_loss": lambda x, target, reduction=1: _reduced((x - target) * (x - target), reduction),
    "mse_loss_backward": lambda g, x, target, reduction: g * (x - target) * (2 / x.numel() if reduction == 1 else 2),
    "smooth_l1_loss": _smooth_l1,
    "huber_loss": _huber,
    "binary_cross_entropy": _binary_cross_entropy,
})  # fmt: skip
