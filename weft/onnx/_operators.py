"""How functions of torch are written in ONNX: one translation for each, under the function's own name.

A translation takes the arguments as the traced program passed them, and returns the name of its ONNX value, or a tuple of
names. `b` is the Builder; `b.result()` is the tensor, without its memory, that the function gave for the example inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dtype import bool_, float32, int32, int64
from ..core.tensor import Tensor
from ._builder import Builder, element_type

# Name of a function or method -> its translation.
TRANSLATIONS: dict[str, Callable[..., Any]] = {}


def translates(*names: str) -> Callable[[Callable], Callable]:
    """Decorator: the translation of the functions, methods and operators of these names."""

    def note(function: Callable) -> Callable:
        for name in names or (function.__name__,):
            TRANSLATIONS[name] = function
        return function

    return note


def _dims(value: Any) -> list[int]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _pair(value: Any, count: int) -> list[Any]:
    """One number for all dimensions, or one for each."""
    items = _dims(value)
    return items * count if len(items) == 1 else items


def _positive(dim: int, rank: int) -> int:
    return dim + rank if dim < 0 else dim


# ---- Arithmetic ---------------------------------------------------------------------------------------------------------


def _binary(kind: str) -> Callable[..., Any]:
    def translation(b: Builder, input: Any, other: Any, **_: Any) -> str:
        if not isinstance(b.result(), Tensor):  # arithmetic with sizes
            return b.op(kind, b.tensor(input, int64), b.tensor(other, int64))
        dtype = b.result().dtype
        return b.op(kind, b.tensor(input, dtype), b.tensor(other, dtype))

    return translation


for _kind, _names in {
    "Mul": "mul multiply __mul__ __rmul__ mul_ __imul__ imul",
    "Pow": "pow __pow__ float_power pow_",
    "Max": "maximum fmax",
    "Min": "minimum fmin",
}.items():
    translates(*_names.split())(_binary(_kind))


@translates("add", "add_", "__add__", "__radd__", "iadd", "__iadd__")
def add(b: Builder, input: Any, other: Any, *, alpha: Any = 1) -> str:
    return _scaled(b, "Add", input, other, alpha)


@translates("sub", "sub_", "subtract", "__sub__", "isub", "__isub__")
def sub(b: Builder, input: Any, other: Any, *, alpha: Any = 1) -> str:
    return _scaled(b, "Sub", input, other, alpha)


@translates("rsub", "__rsub__")
def rsub(b: Builder, input: Any, other: Any, *, alpha: Any = 1) -> str:
    return _scaled(b, "Sub", other, input, alpha)


def _scaled(b: Builder, kind: str, input: Any, other: Any, alpha: Any) -> str:
    dtype = b.result().dtype if isinstance(b.result(), Tensor) else int64
    second = b.tensor(other, dtype)
    if alpha != 1:
        second = b.op("Mul", second, b.constant(alpha, dtype))
    return b.op(kind, b.tensor(input, dtype), second)


@translates("div", "div_", "divide", "true_divide", "truediv", "__truediv__", "itruediv", "__itruediv__")
def div(b: Builder, input: Any, other: Any, *, rounding_mode: str | None = None) -> str:
    dtype = b.result().dtype
    if rounding_mode == "floor":
        return floor_divide(b, input, other)
    quotient = b.op("Div", b.tensor(input, dtype), b.tensor(other, dtype))
    if rounding_mode is None or not dtype.is_floating_point:
        return quotient  # ONNX divides integers towards zero
    return b.op("Mul", b.op("Sign", quotient), b.op("Floor", b.op("Abs", quotient)))


@translates("reciprocal_div", "__rtruediv__", "rtruediv")
def rdiv(b: Builder, input: Any, other: Any) -> str:
    return div(b, other, input)


@translates("floor_divide", "floordiv", "__floordiv__")
def floor_divide(b: Builder, input: Any, other: Any) -> str:
    dtype = b.result().dtype if isinstance(b.result(), Tensor) else int64
    first, second = b.tensor(input, dtype), b.tensor(other, dtype)
    if dtype.is_floating_point:
        return b.op("Floor", b.op("Div", first, second))
    # ONNX divides integers towards zero: subtract the remainder first, whose sign is that of the divisor.
    return b.op("Div", b.op("Sub", first, b.op("Mod", first, second)), second)


@translates("remainder", "mod", "__mod__")
def remainder(b: Builder, input: Any, other: Any) -> str:
    dtype = b.result().dtype if isinstance(b.result(), Tensor) else int64
    first, second = b.tensor(input, dtype), b.tensor(other, dtype)
    if not dtype.is_floating_point:
        return b.op("Mod", first, second)
    return b.op("Sub", first, b.op("Mul", b.op("Floor", b.op("Div", first, second)), second))


@translates("fmod")
def fmod(b: Builder, input: Any, other: Any) -> str:
    dtype = b.result().dtype
    return b.op("Mod", b.tensor(input, dtype), b.tensor(other, dtype), fmod=1)


@translates("addcmul")
def addcmul(b: Builder, input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> str:
    dtype = b.result().dtype
    product = b.op(
        "Mul", b.op("Mul", b.tensor(tensor1, dtype), b.tensor(tensor2, dtype)), b.constant(value, dtype)
    )
    return b.op("Add", b.tensor(input, dtype), product)


@translates("lerp")
def lerp(b: Builder, input: Any, end: Any, weight: Any) -> str:
    dtype = b.result().dtype
    first = b.tensor(input, dtype)
    return b.op("Add", first, b.op("Mul", b.tensor(weight, dtype), b.op("Sub", b.tensor(end, dtype), first)))


# ---- Functions of one element -------------------------------------------------------------------------------------------


def _unary(kind: str, **attributes: Any) -> Callable[..., Any]:
    def translation(b: Builder, input: Any, inplace: bool = False, **_: Any) -> str:
        return b.op(kind, b.tensor(input, b.result().dtype), **attributes)

    return translation


for _kind, _names in {
    "Abs": "abs absolute abs_",
    "Acos": "acos arccos",
    "Acosh": "acosh arccosh",
    "Asin": "asin arcsin",
    "Asinh": "asinh arcsinh",
    "Atan": "atan arctan",
    "Atanh": "atanh arctanh",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp exp_",
    "Floor": "floor",
    "Log": "log",
    "Neg": "neg negative __neg__",
    "Reciprocal": "reciprocal",
    "Relu": "relu relu_",
    "Round": "round",
    "Sigmoid": "sigmoid sigmoid_",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Softsign": "softsign",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh tanh_",
    "Mish": "mish",
    "HardSwish": "hardswish",
}.items():
    translates(*_names.split())(_unary(_kind))

translates("identity", "clone", "contiguous", "detach", "alias", "positive", "dropout", "alpha_dropout", "feature_alpha_dropout",
           "dropout1d", "dropout2d", "dropout3d", "dropout_", "requires_grad_", "cpu", "lift_fresh", "resolve_conj", "resolve_neg")(
    lambda b, input, *_, **__: b.op("Identity", b.tensor(input))
)  # fmt: skip


@translates("rsqrt")
def rsqrt(b: Builder, input: Any) -> str:
    return b.op("Reciprocal", b.op("Sqrt", b.tensor(input, b.result().dtype)))


@translates("square")
def square(b: Builder, input: Any) -> str:
    value = b.tensor(input, b.result().dtype)
    return b.op("Mul", value, value)


def _after(base: str, of: Callable[[Builder, str, Any], str]) -> None:
    TRANSLATIONS[base] = lambda b, input, **_: of(b, b.tensor(input, b.result().dtype), b.result().dtype)


_after("log2", lambda b, x, t: b.op("Div", b.op("Log", x), b.constant(math.log(2), t)))
_after("log10", lambda b, x, t: b.op("Div", b.op("Log", x), b.constant(math.log(10), t)))
_after("log1p", lambda b, x, t: b.op("Log", b.op("Add", x, b.constant(1, t))))
_after("expm1", lambda b, x, t: b.op("Sub", b.op("Exp", x), b.constant(1, t)))
_after("exp2", lambda b, x, t: b.op("Pow", b.constant(2, t), x))
_after("erfc", lambda b, x, t: b.op("Sub", b.constant(1, t), b.op("Erf", x)))
_after("trunc", lambda b, x, t: b.op("Mul", b.op("Sign", x), b.op("Floor", b.op("Abs", x))))
_after("frac", lambda b, x, t: b.op("Sub", x, b.op("Mul", b.op("Sign", x), b.op("Floor", b.op("Abs", x)))))
_after("logsigmoid", lambda b, x, t: b.op("Neg", b.op("Softplus", b.op("Neg", x))))
_after("tanhshrink", lambda b, x, t: b.op("Sub", x, b.op("Tanh", x)))


@translates("relu6")
def relu6(b: Builder, input: Any, inplace: bool = False) -> str:
    return clamp(b, input, 0, 6)


@translates("hardtanh")
def hardtanh(
    b: Builder, input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> str:
    return clamp(b, input, min_val, max_val)


@translates("clamp", "clip", "clamp_")
def clamp(b: Builder, input: Any, min: Any = None, max: Any = None) -> str:
    dtype = b.result().dtype
    value = b.tensor(input, dtype)
    if b.is_tensor(min) or b.is_tensor(max):
        value = value if min is None else b.op("Max", value, b.tensor(min, dtype))
        return value if max is None else b.op("Min", value, b.tensor(max, dtype))
    return b.op("Clip", value, b.tensor(min, dtype), b.tensor(max, dtype))


@translates("clamp_min", "clamp_min_")
def clamp_min(b: Builder, input: Any, min: Any) -> str:
    return clamp(b, input, min=min)


@translates("clamp_max", "clamp_max_")
def clamp_max(b: Builder, input: Any, max: Any) -> str:
    return clamp(b, input, max=max)


@translates("silu")
def silu(b: Builder, input: Any, inplace: bool = False) -> str:
    value = b.tensor(input)
    return b.op("Mul", value, b.op("Sigmoid", value))


@translates("gelu")
def gelu(b: Builder, input: Any, approximate: str = "none") -> str:
    value, dtype = b.tensor(input), b.result().dtype
    if b.opset >= 20:
        return b.op("Gelu", value, approximate=approximate)
    half = b.op("Mul", value, b.constant(0.5, dtype))
    if approximate == "none":
        inner = b.op("Erf", b.op("Mul", value, b.constant(math.sqrt(0.5), dtype)))
    else:
        cube = b.op("Mul", b.op("Mul", b.op("Mul", value, value), value), b.constant(0.044715, dtype))
        inner = b.op("Tanh", b.op("Mul", b.op("Add", value, cube), b.constant(math.sqrt(2 / math.pi), dtype)))
    return b.op("Mul", half, b.op("Add", inner, b.constant(1, dtype)))


@translates("leaky_relu", "leaky_relu_")
def leaky_relu(b: Builder, input: Any, negative_slope: float = 0.01, inplace: bool = False) -> str:
    return b.op("LeakyRelu", b.tensor(input), alpha=float(negative_slope))


@translates("elu", "elu_")
def elu(b: Builder, input: Any, alpha: float = 1.0, inplace: bool = False) -> str:
    return b.op("Elu", b.tensor(input), alpha=float(alpha))


@translates("selu")
def selu(b: Builder, input: Any, inplace: bool = False) -> str:
    return b.op("Selu", b.tensor(input))


@translates("celu")
def celu(b: Builder, input: Any, alpha: float = 1.0, inplace: bool = False) -> str:
    return b.op("Celu", b.tensor(input), alpha=float(alpha))


@translates("prelu")
def prelu(b: Builder, input: Any, weight: Any) -> str:
    slope, rank = b.tensor(weight), b.meta(input).dim()
    if rank > 2 and b.meta(weight).numel() > 1:  # one slope for each channel, which is dimension 1
        slope = b.reshape(slope, [-1] + [1] * (rank - 2))
    return b.op("PRelu", b.tensor(input), slope)


@translates("hardsigmoid")
def hardsigmoid(b: Builder, input: Any, inplace: bool = False) -> str:
    return b.op("HardSigmoid", b.tensor(input), alpha=1 / 6, beta=0.5)


@translates("softplus")
def softplus(b: Builder, input: Any, beta: float = 1, threshold: float = 20) -> str:
    value, dtype = b.tensor(input), b.result().dtype
    scaled = b.op("Mul", value, b.constant(beta, dtype))
    smooth = b.op("Div", b.op("Softplus", scaled), b.constant(beta, dtype))
    return b.op("Where", b.op("Greater", scaled, b.constant(threshold, dtype)), value, smooth)


@translates("threshold")
def threshold(b: Builder, input: Any, threshold: float, value: float, inplace: bool = False) -> str:
    x, dtype = b.tensor(input), b.result().dtype
    return b.op("Where", b.op("Greater", x, b.constant(threshold, dtype)), x, b.constant(value, dtype))


@translates("glu")
def glu(b: Builder, input: Any, dim: int = -1) -> str:
    first, second = b.op("Split", b.tensor(input), axis=dim, num_outputs=2, outputs=2)
    return b.op("Mul", first, b.op("Sigmoid", second))


# ---- Comparison and choice ----------------------------------------------------------------------------------------------


def _comparison(kind: str, negated: bool = False) -> Callable[..., Any]:
    def translation(b: Builder, input: Any, other: Any) -> str:
        dtype = _common_dtype(input, other, b)
        found = b.op(kind, b.tensor(input, dtype), b.tensor(other, dtype))
        return b.op("Not", found) if negated else found

    return translation


def _common_dtype(first: Any, second: Any, b: Builder) -> Any:
    from .. import result_type

    return result_type(b.meta(first), b.meta(second))


for _kind, _names in {
    "Equal": "eq __eq__",
    "Greater": "gt greater __gt__",
    "Less": "lt less __lt__",
    "GreaterOrEqual": "ge greater_equal __ge__",
    "LessOrEqual": "le less_equal __le__",
}.items():
    translates(*_names.split())(_comparison(_kind))
translates("ne", "not_equal", "__ne__")(_comparison("Equal", negated=True))


def _logical(kind: str, bits: str | None = None) -> Callable[..., Any]:
    def translation(b: Builder, input: Any, other: Any) -> str:
        dtype = b.result().dtype
        if bits is not None and dtype != bool_:
            return b.op(bits, b.tensor(input, dtype), b.tensor(other, dtype))
        return b.op(kind, b.tensor(input, bool_), b.tensor(other, bool_))

    return translation


translates("logical_and")(_logical("And"))
translates("logical_or")(_logical("Or"))
translates("logical_xor")(_logical("Xor"))
translates("and_", "bitwise_and", "__and__")(_logical("And", "BitwiseAnd"))
translates("or_", "bitwise_or", "__or__")(_logical("Or", "BitwiseOr"))
translates("xor", "bitwise_xor", "__xor__")(_logical("Xor", "BitwiseXor"))


@translates("logical_not", "bitwise_not", "invert", "__invert__")
def logical_not(b: Builder, input: Any) -> str:
    if b.result().dtype != bool_:
        return b.op("BitwiseNot", b.tensor(input))
    return b.op("Not", b.tensor(input, bool_))


@translates("isnan")
def isnan(b: Builder, input: Any) -> str:
    return b.op("IsNaN", b.tensor(input))


@translates("isinf")
def isinf(b: Builder, input: Any) -> str:
    return b.op("IsInf", b.tensor(input))


@translates("where")
def where(b: Builder, condition: Any, input: Any, other: Any) -> str:
    dtype = b.result().dtype
    return b.op("Where", b.tensor(condition, bool_), b.tensor(input, dtype), b.tensor(other, dtype))


@translates("masked_fill", "masked_fill_")
def masked_fill(b: Builder, input: Any, mask: Any, value: Any) -> str:
    dtype = b.result().dtype
    return b.op("Where", b.tensor(mask, bool_), b.tensor(value, dtype), b.tensor(input, dtype))


@translates("tril", "tril_")
def tril(b: Builder, input: Any, diagonal: Any = 0) -> str:
    return b.op("Trilu", b.tensor(input), b.tensor(diagonal, int64), upper=0)


@translates("triu", "triu_")
def triu(b: Builder, input: Any, diagonal: Any = 0) -> str:
    return b.op("Trilu", b.tensor(input), b.tensor(diagonal, int64), upper=1)


# ---- Types and creation -------------------------------------------------------------------------------------------------


@translates("to", "type", "float", "double", "half", "long", "int", "bool", "bfloat16", "type_as", "_to_copy")
def to(b: Builder, input: Any, *_: Any, **__: Any) -> str:
    return b.op("Cast", b.tensor(input), to=element_type(b.result().dtype))


def _filled(b: Builder, sizes: list[Any], value: Any) -> str:
    return b.op("Expand", b.tensor(value, b.result().dtype), b.ints(sizes))


def _given_sizes(sizes: tuple) -> list[Any]:
    return list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else list(sizes)


@translates("zeros", "empty", "ones", "full")
def created(b: Builder, *sizes: Any, **options: Any) -> str:
    name = b.called()
    if name == "full":
        return _filled(b, list(sizes[0]), sizes[1] if len(sizes) > 1 else options["fill_value"])
    return _filled(b, _given_sizes(sizes), 1 if name == "ones" else 0)


@translates("new_zeros", "new_empty", "new_ones", "new_full")
def created_like(b: Builder, input: Any, *sizes: Any, **options: Any) -> str:
    name = b.called()
    if name == "new_full":
        return _filled(b, list(sizes[0]), sizes[1] if len(sizes) > 1 else options["fill_value"])
    return _filled(b, _given_sizes(sizes), 1 if name == "new_ones" else 0)


def _like(value: Any) -> Callable[..., Any]:
    return lambda b, input, *given, **__: _filled(b, b.sizes_of(input), given[0] if value is None else value)


translates("zeros_like", "empty_like", "zero_")(_like(0))
translates("ones_like")(_like(1))
translates("full_like", "fill_")(_like(None))


@translates("arange")
def arange(b: Builder, *bounds: Any, **_: Any) -> str:
    dtype = b.result().dtype
    start, end, step = {1: (0, *bounds, 1), 2: (*bounds, 1), 3: bounds}[len(bounds)]
    return b.op("Range", b.tensor(start, dtype), b.tensor(end, dtype), b.tensor(step, dtype))


# ---- Products -----------------------------------------------------------------------------------------------------------


@translates("matmul", "mm", "bmm", "mv", "dot", "__matmul__")
def matmul(b: Builder, input: Any, other: Any) -> str:
    return b.op("MatMul", b.tensor(input), b.tensor(other))


@translates("linear")
def linear(b: Builder, input: Any, weight: Any, bias: Any = None) -> str:
    transposed = b.op("Transpose", b.tensor(weight), perm=[1, 0])
    product = b.op("MatMul", b.tensor(input), transposed)
    return product if bias is None else b.op("Add", product, b.tensor(bias))


@translates("addmm")
def addmm(b: Builder, input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> str:
    return b.op("Gemm", b.tensor(mat1), b.tensor(mat2), b.tensor(input), alpha=float(alpha), beta=float(beta))


@translates("baddbmm")
def baddbmm(b: Builder, input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> str:
    dtype = b.result().dtype
    product = b.op("Mul", b.op("MatMul", b.tensor(batch1), b.tensor(batch2)), b.constant(alpha, dtype))
    return b.op("Add", b.op("Mul", b.tensor(input), b.constant(beta, dtype)), product)


@translates("einsum")
def einsum(b: Builder, equation: str, *operands: Any) -> str:
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    return b.op("Einsum", *(b.tensor(each) for each in operands), equation=equation)


# ---- Shapes -------------------------------------------------------------------------------------------------------------


@translates("view", "reshape", "view_copy", "_unsafe_view")
def reshape(b: Builder, input: Any, *shape: Any) -> str:
    return b.reshape(b.tensor(input), _given_sizes(shape))


@translates("flatten")
def flatten(b: Builder, input: Any, start_dim: int = 0, end_dim: int = -1) -> str:
    rank = b.meta(input).dim()
    if rank == 0:
        return b.reshape(b.tensor(input), [1])
    start, end = _positive(start_dim, rank), _positive(end_dim, rank)
    sizes = b.sizes_of(input)
    return b.reshape(b.tensor(input), [*sizes[:start], -1, *sizes[end + 1 :]])


@translates("unflatten")
def unflatten(b: Builder, input: Any, dim: int, sizes: Any) -> str:
    dim = _positive(dim, b.meta(input).dim())
    own = b.sizes_of(input)
    return b.reshape(b.tensor(input), [*own[:dim], *sizes, *own[dim + 1 :]])


@translates("transpose", "swapaxes", "swapdims")
def transpose(b: Builder, input: Any, dim0: int, dim1: int) -> str:
    order = list(range(b.meta(input).dim()))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return b.op("Transpose", b.tensor(input), perm=order)


@translates("t")
def t(b: Builder, input: Any) -> str:
    return (
        b.op("Transpose", b.tensor(input)) if b.meta(input).dim() == 2 else b.op("Identity", b.tensor(input))
    )


@translates("permute")
def permute(b: Builder, input: Any, *dims: Any) -> str:
    rank = b.meta(input).dim()
    return b.op("Transpose", b.tensor(input), perm=[_positive(each, rank) for each in _given_sizes(dims)])


@translates("movedim", "moveaxis")
def movedim(b: Builder, input: Any, source: Any, destination: Any) -> str:
    rank = b.meta(input).dim()
    moved = dict(
        zip([_positive(d, rank) for d in _dims(destination)], [_positive(d, rank) for d in _dims(source)])
    )
    rest = iter([dim for dim in range(rank) if dim not in moved.values()])
    return b.op(
        "Transpose", b.tensor(input), perm=[moved[d] if d in moved else next(rest) for d in range(rank)]
    )


@translates("squeeze")
def squeeze(b: Builder, input: Any, dim: Any = None) -> str:
    shape = b.meta(input).shape
    dims = range(len(shape)) if dim is None else [_positive(each, len(shape)) for each in _dims(dim)]
    ones = [each for each in dims if shape[each] == 1]
    return b.op("Squeeze", b.tensor(input), b.axes(*ones)) if ones else b.op("Identity", b.tensor(input))


@translates("unsqueeze", "unsqueeze_")
def unsqueeze(b: Builder, input: Any, dim: int) -> str:
    return b.op("Unsqueeze", b.tensor(input), b.axes(dim))


@translates("expand", "broadcast_to", "expand_as", "view_as", "reshape_as")
def expand(b: Builder, input: Any, *sizes: Any) -> str:
    name = b.called()
    if name.endswith("_as"):
        wanted = b.sizes_of(sizes[0])
        return (
            b.reshape(b.tensor(input), wanted)
            if name != "expand_as"
            else b.op("Expand", b.tensor(input), b.ints(wanted))
        )
    wanted = [1 if isinstance(each, int) and each == -1 else each for each in _given_sizes(sizes)]
    return b.op("Expand", b.tensor(input), b.ints(wanted))


@translates("repeat", "tile")
def repeat(b: Builder, input: Any, *counts: Any) -> str:
    wanted = _given_sizes(counts)
    value, rank = b.tensor(input), b.meta(input).dim()
    if len(wanted) > rank:
        value = b.reshape(value, [1] * (len(wanted) - rank) + b.sizes_of(input))
    return b.op("Tile", value, b.ints([1] * (rank - len(wanted)) + wanted))


@translates("cat", "concat", "concatenate")
def cat(b: Builder, tensors: Any, dim: int = 0) -> str:
    dtype = b.result().dtype
    return b.op("Concat", *(b.tensor(each, dtype) for each in tensors), axis=dim)


@translates("stack")
def stack(b: Builder, tensors: Any, dim: int = 0) -> str:
    dtype = b.result().dtype
    rank = b.result().dim()
    axis = _positive(dim, rank)
    parts = [b.op("Unsqueeze", b.tensor(each, dtype), b.axes(axis)) for each in tensors]
    return b.op("Concat", *parts, axis=axis)


@translates("chunk", "split", "split_with_sizes", "tensor_split")
def split(b: Builder, input: Any, *_: Any, **options: Any) -> tuple:
    dim = options.get("dim", _[1] if len(_) > 1 else 0)
    sizes = [each.shape[dim] for each in b.result()]
    if dim % b.meta(input).dim() in (input.meta.get("dynamic") or ()):
        raise NotImplementedError("splitting a dynamic dimension")
    if len(sizes) == 1:
        return (b.op("Identity", b.tensor(input)),)
    return b.op("Split", b.tensor(input), b.ints(sizes), axis=dim, outputs=len(sizes))


@translates("unbind")
def unbind(b: Builder, input: Any, dim: int = 0) -> tuple:
    return tuple(
        b.op("Gather", b.tensor(input), b.constant(i, np.int64), axis=dim) for i in range(len(b.result()))
    )


@translates("select")
def select(b: Builder, input: Any, dim: int, index: Any) -> str:
    return b.op("Gather", b.tensor(input), b.tensor(index, int64), axis=dim)


@translates("narrow")
def narrow(b: Builder, input: Any, dim: int, start: Any, length: Any) -> str:
    first = b.int_vector(start)
    end = b.op("Add", first, b.int_vector(length))
    return b.op("Slice", b.tensor(input), first, end, b.axes(dim))


_END = 2**63 - 1


@translates("getitem", "__getitem__")
def getitem(b: Builder, input: Any, index: Any) -> Any:
    if not b.is_tensor(input):  # an item of a tuple of results
        return b.values[input][index]
    value, known = b.tensor(input), b.meta(input)
    items = list(index) if isinstance(index, tuple) else [index]
    used = sum(1 for each in items if each is not None and each is not ...)
    if ... in [each if not b.is_tensor(each) else 0 for each in items]:
        place = next(i for i, each in enumerate(items) if each is ...)
        items[place : place + 1] = [slice(None)] * (known.dim() - used)
    dim, rank, tensors = 0, known.dim(), []
    for each in items:
        if each is None:
            value, rank, dim = b.op("Unsqueeze", value, b.axes(dim)), rank + 1, dim + 1
        elif isinstance(each, slice):
            value, dim = _sliced(b, value, each, dim), dim + 1
        elif b.is_tensor(each):
            tensors.append((dim, each))
            dim += 1
        else:
            value, rank = b.op("Gather", value, b.tensor(each, int64), axis=dim), rank - 1
    return _indexed(b, value, tensors, rank) if tensors else (b.op("Identity", value) if not items else value)


def _sliced(b: Builder, value: str, part: slice, dim: int) -> str:
    if part == slice(None):
        return value
    step = 1 if part.step is None else part.step
    start, stop = part.start or 0, _END if part.stop is None else part.stop
    return b.op("Slice", value, b.int_vector(start), b.int_vector(stop), b.axes(dim), b.int_vector(step))


def _indexed(b: Builder, value: str, tensors: list[tuple[int, Any]], rank: int) -> str:
    """Indexing by tensors: by one, or by several for the first dimensions."""
    if len(tensors) == 1:
        dim, index = tensors[0]
        if b.meta(index).dtype == bool_:
            if dim or b.meta(index).dim() != 1:
                raise NotImplementedError("a mask that is not for dimension 0")
            return b.op("Compress", value, b.tensor(index), axis=0)
        return b.op("Gather", value, b.tensor(index, int64), axis=dim)
    if [dim for dim, _ in tensors] != list(range(len(tensors))):
        raise NotImplementedError("index tensors for other than the first dimensions")
    indices = [b.tensor(each, int64) for _, each in tensors]
    shape = b.op("Shape", indices[0])
    for each in indices[1:]:
        shape = b.op("Max", shape, b.op("Shape", each))
    columns = [b.op("Unsqueeze", b.op("Expand", each, shape), b.axes(-1)) for each in indices]
    return b.op("GatherND", value, b.op("Concat", *columns, axis=-1))


@translates("index_select")
def index_select(b: Builder, input: Any, dim: int, index: Any) -> str:
    return b.op("Gather", b.tensor(input), b.tensor(index, int64), axis=dim)


@translates("gather", "take_along_dim")
def gather(b: Builder, input: Any, dim: int, index: Any, **_: Any) -> str:
    return b.op("GatherElements", b.tensor(input), b.tensor(index, int64), axis=dim)


@translates("scatter")
def scatter(b: Builder, input: Any, dim: int, index: Any, src: Any) -> str:
    dtype = b.result().dtype
    positions = b.tensor(index, int64)
    source = b.tensor(src, dtype)
    if not b.is_tensor(src):
        source = b.op("Expand", source, b.op("Shape", positions))
    return b.op("ScatterElements", b.tensor(input), positions, source, axis=dim)


@translates("scatter_add")
def scatter_add(b: Builder, input: Any, dim: int, index: Any, src: Any) -> str:
    return b.op(
        "ScatterElements", b.tensor(input), b.tensor(index, int64), b.tensor(src), axis=dim, reduction="add"
    )


@translates("size")
def size(b: Builder, input: Any, dim: int) -> Any:
    return b.tensor(b.size_of(input, dim), int64)


@translates("numel", "nelement")
def numel(b: Builder, input: Any) -> str:
    return b.op("Size", b.tensor(input))


@translates("flip")
def flip(b: Builder, input: Any, *dims: Any) -> str:
    wanted = _given_sizes(dims)
    ends = b.constant([-_END] * len(wanted), np.int64)
    minus = b.constant([-1] * len(wanted), np.int64)
    return b.op("Slice", b.tensor(input), minus, ends, b.axes(*wanted), minus)


@translates("roll")
def roll(b: Builder, input: Any, shifts: Any, dims: Any = None) -> str:
    value = b.tensor(input)
    if dims is None:
        raise NotImplementedError("roll of a flattened tensor")
    for shift, dim in zip(_dims(shifts), _dims(dims), strict=True):
        first = b.op("Slice", value, b.axes(-shift), b.axes(_END), b.axes(dim))
        second = b.op("Slice", value, b.axes(0), b.axes(-shift), b.axes(dim))
        value = b.op("Concat", first, second, axis=dim) if shift else value
    return value


@translates("pad")
def pad(b: Builder, input: Any, pad: Any, mode: str = "constant", value: Any = None) -> str:
    kinds = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    rank = b.meta(input).dim()
    before = [0] * rank
    after = [0] * rank
    for place in range(len(pad) // 2):
        before[rank - 1 - place], after[rank - 1 - place] = pad[2 * place], pad[2 * place + 1]
    fill = b.constant(value or 0, b.result().dtype) if mode == "constant" else ""
    return b.op("Pad", b.tensor(input), b.ints([*before, *after]), fill, mode=kinds[mode])


@translates("pixel_shuffle")
def pixel_shuffle(b: Builder, input: Any, upscale_factor: int) -> str:
    return b.op("DepthToSpace", b.tensor(input), blocksize=upscale_factor, mode="CRD")


# ---- Reductions ---------------------------------------------------------------------------------------------------------


def _reduction(kind: str) -> Callable[..., Any]:
    def translation(
        b: Builder, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
    ) -> str:
        axes = "" if dim is None or dim == () or dim == [] else b.axes(*_dims(dim))
        return b.op(kind, b.tensor(input, b.result().dtype), axes, keepdims=int(keepdim))

    return translation


for _kind, _names in {"ReduceSum": "sum", "ReduceMean": "mean", "ReduceMax": "amax", "ReduceMin": "amin",
                      "ReduceLogSumExp": "logsumexp"}.items():  # fmt: skip
    translates(_names)(_reduction(_kind))


@translates("prod")
def prod(b: Builder, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> str:
    return _reduction("ReduceProd")(b, input, dim, keepdim)


def _extremum(kind: str, argument: str, pointwise: str) -> Callable[..., Any]:
    def translation(b: Builder, input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if b.is_tensor(dim):
            return _binary(pointwise)(b, input, dim)
        if dim is None:
            return b.op(kind, b.tensor(input), keepdims=0)
        values = b.op(kind, b.tensor(input), b.axes(dim), keepdims=int(keepdim))
        return values, b.op(argument, b.tensor(input), axis=dim, keepdims=int(keepdim))

    return translation


translates("max")(_extremum("ReduceMax", "ArgMax", "Max"))
translates("min")(_extremum("ReduceMin", "ArgMin", "Min"))


def _argument(kind: str) -> Callable[..., Any]:
    def translation(b: Builder, input: Any, dim: Any = None, keepdim: bool = False) -> str:
        if dim is None:
            return b.op(kind, b.reshape(b.tensor(input), [-1]), axis=0, keepdims=0)
        return b.op(kind, b.tensor(input), axis=dim, keepdims=int(keepdim))

    return translation


translates("argmax")(_argument("ArgMax"))
translates("argmin")(_argument("ArgMin"))


@translates("var", "std")
def var(
    b: Builder,
    input: Any,
    dim: Any = None,
    unbiased: Any = True,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> str:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    less = (1 if unbiased else 0) if correction is None else correction
    value, dtype = b.tensor(input), b.result().dtype
    known = b.meta(input)
    dims = list(range(known.dim())) if dim is None else [_positive(each, known.dim()) for each in _dims(dim)]
    axes = b.axes(*dims)
    away = b.op("Sub", value, b.op("ReduceMean", value, axes, keepdims=1))
    total = b.op("ReduceSum", b.op("Mul", away, away), axes, keepdims=int(keepdim))
    count = b.tensor(1, dtype)
    for each in dims:
        count = b.op("Mul", count, b.cast(b.tensor(b.size_of(input, each), int64), dtype))
    found = b.op("Div", total, b.op("Sub", count, b.constant(less, dtype)))
    name = b.called()
    return b.op("Sqrt", found) if name == "std" else found


@translates("norm", "vector_norm")
def norm(b: Builder, input: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, **_: Any) -> str:
    kinds = {1: "ReduceL1", 2: "ReduceL2", None: "ReduceL2", "fro": "ReduceL2"}
    if p not in kinds:
        raise NotImplementedError(f"a norm with p={p}")
    return b.op(kinds[p], b.tensor(input), "" if dim is None else b.axes(*_dims(dim)), keepdims=int(keepdim))


@translates("normalize")
def normalize(
    b: Builder, input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None
) -> str:
    size = norm(b, input, int(p), dim, True)
    return b.op("Div", b.tensor(input), b.op("Max", size, b.constant(eps, b.result().dtype)))


@translates("any", "all")
def any_all(b: Builder, input: Any, dim: Any = None, keepdim: bool = False) -> str:
    name = b.called()
    counted = b.op("Cast", b.tensor(input, bool_), to=element_type(int32))
    kind = "ReduceMax" if name == "any" else "ReduceMin"
    found = b.op(kind, counted, "" if dim is None else b.axes(*_dims(dim)), keepdims=int(keepdim))
    return b.cast(found, bool_)


@translates("cumsum")
def cumsum(b: Builder, input: Any, dim: int, *, dtype: Any = None) -> str:
    return b.op("CumSum", b.tensor(input, b.result().dtype), b.constant(dim, np.int64))


@translates("topk")
def topk(b: Builder, input: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple:
    return b.op(
        "TopK",
        b.tensor(input),
        b.int_vector(k),
        axis=dim,
        largest=int(largest),
        sorted=int(sorted),
        outputs=2,
    )


@translates("sort")
def sort(b: Builder, input: Any, dim: int = -1, descending: bool = False, **_: Any) -> tuple:
    count = b.int_vector(b.size_of(input, dim))
    return b.op("TopK", b.tensor(input), count, axis=dim, largest=int(descending), sorted=1, outputs=2)


@translates("argsort")
def argsort(b: Builder, input: Any, dim: int = -1, descending: bool = False, **_: Any) -> str:
    return sort(b, input, dim, descending)[1]


@translates("softmax")
def softmax(b: Builder, input: Any, dim: int = -1, *_: Any, **__: Any) -> str:
    return b.op("Softmax", b.tensor(input, b.result().dtype), axis=-1 if dim is None else dim)


@translates("log_softmax")
def log_softmax(b: Builder, input: Any, dim: int = -1, *_: Any, **__: Any) -> str:
    return b.op("LogSoftmax", b.tensor(input, b.result().dtype), axis=-1 if dim is None else dim)


# ---- Layers -------------------------------------------------------------------------------------------------------------


@translates("embedding")
def embedding(b: Builder, input: Any, weight: Any, *_: Any, **__: Any) -> str:
    return b.op("Gather", b.tensor(weight), b.tensor(input, int64), axis=0)


@translates("one_hot")
def one_hot(b: Builder, tensor: Any, num_classes: int = -1) -> str:
    return b.op(
        "OneHot",
        b.tensor(tensor),
        b.constant(b.result().shape[-1], np.int64),
        b.constant([0, 1], np.int64),
        axis=-1,
    )


def _same_padding(sizes: list[int], dilation: list[int]) -> list[int]:
    total = [d * (k - 1) for k, d in zip(sizes, dilation)]
    return [each // 2 for each in total] + [each - each // 2 for each in total]


@translates("conv1d", "conv2d", "conv3d")
def conv(
    b: Builder,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> str:
    count = b.meta(weight).dim() - 2
    dilations = _pair(dilation, count)
    if padding == "same":
        pads = _same_padding(list(b.meta(weight).shape[2:]), dilations)
    else:
        pads = _pair(0 if padding == "valid" else padding, count) * 2
    value, batched = b.tensor(input), b.meta(input).dim() == count + 2
    value = value if batched else b.op("Unsqueeze", value, b.axes(0))
    found = b.op("Conv", value, b.tensor(weight), b.tensor(bias), strides=_pair(stride, count), pads=pads,
                 dilations=dilations, group=groups)  # fmt: skip
    return found if batched else b.op("Squeeze", found, b.axes(0))


@translates("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(
    b: Builder, input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> str:  # fmt: skip
    count = b.meta(weight).dim() - 2
    return b.op("ConvTranspose", b.tensor(input), b.tensor(weight), b.tensor(bias), strides=_pair(stride, count),
                pads=_pair(padding, count) * 2, output_padding=_pair(output_padding, count), group=groups,
                dilations=_pair(dilation, count))  # fmt: skip


@translates("max_pool1d", "max_pool2d", "max_pool3d", "boolean_dispatch")
def max_pool(
    b: Builder, input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> str:  # fmt: skip
    count = _pooled_dims(b)
    kernel = _pair(kernel_size, count)
    return b.op("MaxPool", b.tensor(input), kernel_shape=kernel, strides=_pair(stride, count) if stride else kernel,
                pads=_pair(padding, count) * 2, dilations=_pair(dilation, count), ceil_mode=int(ceil_mode))  # fmt: skip


def _pooled_dims(b: Builder) -> int:
    name = b.called()
    return int(name[-2]) if name.endswith("d") else b.result().dim() - 2


@translates("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    b: Builder, input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> str:  # fmt: skip
    if divisor_override is not None:
        raise NotImplementedError("average pooling with divisor_override")
    count = b.result().dim() - 2
    kernel = _pair(kernel_size, count)
    return b.op("AveragePool", b.tensor(input), kernel_shape=kernel, strides=_pair(stride, count) if stride else kernel,
                pads=_pair(padding, count) * 2, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad))  # fmt: skip


def _adaptive(kind: str, whole: str) -> Callable[..., Any]:
    def translation(b: Builder, input: Any, output_size: Any, return_indices: bool = False) -> str:
        known, result = b.meta(input), b.result()
        count = int(b.called()[-2])  # adaptive_avg_pool2d
        sizes, wanted = known.shape[-count:], result.shape[-count:]
        if all(each == 1 for each in wanted):
            return b.op(whole, b.tensor(input), b.axes(*range(-count, 0)), keepdims=1)
        if any(size % want for size, want in zip(sizes, wanted)):
            raise NotImplementedError(
                f"adaptive pooling from {list(sizes)} to {list(wanted)}: the windows differ in size"
            )
        kernel = [size // want for size, want in zip(sizes, wanted)]
        return b.op(kind, b.tensor(input), kernel_shape=kernel, strides=kernel)

    return translation


translates("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")(
    _adaptive("AveragePool", "ReduceMean")
)
translates("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")(
    _adaptive("MaxPool", "ReduceMax")
)


@translates("batch_norm")
def batch_norm(
    b: Builder, input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5, *_: Any,
) -> str:  # fmt: skip
    if training:
        raise NotImplementedError("batch_norm in training mode: call model.eval() before exporting")
    channels, dtype = b.meta(running_mean).shape[0], b.meta(running_mean).dtype
    scale = b.tensor(weight) or b.constant([1.0] * channels, dtype)
    shift = b.tensor(bias) or b.constant([0.0] * channels, dtype)
    return b.op(
        "BatchNormalization",
        b.tensor(input),
        scale,
        shift,
        b.tensor(running_mean),
        b.tensor(running_var),
        epsilon=eps,
    )


@translates("layer_norm")
def layer_norm(
    b: Builder, input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> str:
    shape = list(normalized_shape)
    scale = b.tensor(weight) or b.constant(np.ones(shape), b.result().dtype)
    return b.op("LayerNormalization", b.tensor(input), scale, b.tensor(bias), axis=-len(shape), epsilon=eps)


@translates("rms_norm")
def rms_norm(b: Builder, input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> str:
    from .. import finfo

    value, dtype = b.tensor(input), b.result().dtype
    axes = b.axes(*range(-len(list(normalized_shape)), 0))
    mean = b.op("ReduceMean", b.op("Mul", value, value), axes, keepdims=1)
    eps = finfo(dtype).eps if eps is None else eps
    found = b.op("Div", value, b.op("Sqrt", b.op("Add", mean, b.constant(eps, dtype))))
    return found if weight is None else b.op("Mul", found, b.tensor(weight))


@translates("group_norm")
def group_norm(
    b: Builder, input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> str:
    known, dtype = b.meta(input), b.result().dtype
    sizes = b.sizes_of(input)
    grouped = b.reshape(b.tensor(input), [sizes[0], num_groups, -1])
    ones = b.constant([1.0] * num_groups, dtype)
    zeros = b.constant([0.0] * num_groups, dtype)
    found = b.reshape(b.op("InstanceNormalization", grouped, ones, zeros, epsilon=eps), sizes)
    return _affine(b, found, weight, bias, known.dim())


def _affine(b: Builder, value: str, weight: Any, bias: Any, rank: int) -> str:
    """Scale and shift each channel, which is dimension 1."""
    shape = [-1] + [1] * (rank - 2)
    value = value if weight is None else b.op("Mul", value, b.reshape(b.tensor(weight), shape))
    return value if bias is None else b.op("Add", value, b.reshape(b.tensor(bias), shape))


@translates("instance_norm")
def instance_norm(
    b: Builder, input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> str:  # fmt: skip
    if not use_input_stats:
        return batch_norm(b, input, running_mean, running_var, weight, bias, False, momentum, eps)
    channels, dtype = b.meta(input).shape[1], b.result().dtype
    scale = b.tensor(weight) or b.constant([1.0] * channels, dtype)
    shift = b.tensor(bias) or b.constant([0.0] * channels, dtype)
    return b.op("InstanceNormalization", b.tensor(input), scale, shift, epsilon=eps)


@translates("scaled_dot_product_attention")
def attention(
    b: Builder, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: Any = None, enable_gqa: bool = False,
) -> str:  # fmt: skip
    dtype = b.result().dtype
    heads_q, heads_k = b.meta(query).shape[-3:-2], b.meta(key).shape[-3:-2]
    keys, values = b.tensor(key), b.tensor(value)
    if enable_gqa and heads_q != heads_k:
        keys, values = (
            _repeated_heads(b, name, of, heads_q[0]) for name, of in ((keys, key), (values, value))
        )
    rank = b.meta(key).dim()
    order = [*range(rank - 2), rank - 1, rank - 2]
    factor = 1 / math.sqrt(b.meta(query).shape[-1]) if scale is None else scale
    scores = b.op(
        "Mul", b.op("MatMul", b.tensor(query), b.op("Transpose", keys, perm=order)), b.constant(factor, dtype)
    )
    if is_causal:
        whole = b.op("Expand", b.constant(1, np.int64), b.ints([b.size_of(query, -2), b.size_of(key, -2)]))
        allowed = b.cast(b.op("Trilu", whole, b.constant(0, np.int64), upper=0), bool_)
        scores = b.op("Where", allowed, scores, b.constant(-math.inf, dtype))
    if attn_mask is not None:
        if b.meta(attn_mask).dtype == bool_:
            scores = b.op("Where", b.tensor(attn_mask), scores, b.constant(-math.inf, dtype))
        else:
            scores = b.op("Add", scores, b.tensor(attn_mask, dtype))
    return b.op("MatMul", b.op("Softmax", scores, axis=-1), values)


def _repeated_heads(b: Builder, name: str, of: Any, heads: int) -> str:
    sizes = b.sizes_of(of)
    times = heads // b.meta(of).shape[-3]
    wide = b.op("Unsqueeze", name, b.axes(-3))
    wide = b.op("Expand", wide, b.ints([*sizes[:-2], times, *sizes[-2:]]))
    return b.reshape(wide, [*sizes[:-3], heads, *sizes[-2:]])


@translates("multi_head_attention_forward")
def multi_head_attention(
    b: Builder, query: Any, key: Any, value: Any, embed_dim: int, num_heads: int, in_proj_weight: Any, in_proj_bias: Any,
    bias_k: Any, bias_v: Any, add_zero_attn: bool, dropout_p: float, out_proj_weight: Any, out_proj_bias: Any,
    training: bool = True, key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None, v_proj_weight: Any = None,
    static_k: Any = None, static_v: Any = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple:  # fmt: skip
    if (
        bias_k is not None
        or add_zero_attn
        or use_separate_proj_weight
        or static_k is not None
        or b.meta(query).dim() != 3
    ):
        raise NotImplementedError(
            "multi_head_attention_forward with bias_kv, zero attention, separate weights or without a batch"
        )
    dtype, head = b.result()[0].dtype, embed_dim // num_heads
    length, batch, source = b.size_of(query, 0), b.size_of(query, 1), b.size_of(key, 0)
    weights = b.op("Split", b.tensor(in_proj_weight), axis=0, num_outputs=3, outputs=3)
    biases = (
        ("", "", "")
        if in_proj_bias is None
        else b.op("Split", b.tensor(in_proj_bias), axis=0, num_outputs=3, outputs=3)
    )

    def projected(of: Any, weight: str, bias: str, size: Any) -> str:  # [L, N, E] -> [N, heads, L, head]
        product = b.op("MatMul", b.tensor(of), b.op("Transpose", weight, perm=[1, 0]))
        product = b.op("Add", product, bias) if bias else product
        return b.op("Transpose", b.reshape(product, [size, batch, num_heads, head]), perm=[1, 2, 0, 3])

    q, k, v = (
        projected(of, weight, bias, size)
        for of, weight, bias, size in zip((query, key, value), weights, biases, (length, source, source))
    )
    scores = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.op("Mul", scores, b.constant(1 / math.sqrt(head), dtype))
    if attn_mask is not None:
        mask = b.tensor(attn_mask)
        if b.meta(attn_mask).dim() == 3:
            mask = b.reshape(mask, [batch, num_heads, length, source])
        scores = _masked(b, scores, mask, b.meta(attn_mask).dtype, dtype)
    if key_padding_mask is not None:
        mask = b.reshape(b.tensor(key_padding_mask), [batch, 1, 1, source])
        scores = _masked(b, scores, mask, b.meta(key_padding_mask).dtype, dtype)
    attention_weights = b.op("Softmax", scores, axis=-1)
    joined = b.op("Transpose", b.op("MatMul", attention_weights, v), perm=[2, 0, 1, 3])
    joined = b.reshape(joined, [length, batch, embed_dim])
    out = b.op("MatMul", joined, b.op("Transpose", b.tensor(out_proj_weight), perm=[1, 0]))
    out = out if out_proj_bias is None else b.op("Add", out, b.tensor(out_proj_bias))
    if not need_weights:
        return out, None
    if average_attn_weights:
        attention_weights = b.op("ReduceMean", attention_weights, b.axes(1), keepdims=0)
    return out, attention_weights


def _masked(b: Builder, scores: str, mask: str, kind: Any, dtype: Any) -> str:
    """Scores without those where the mask is True, or with a mask of numbers added."""
    if kind == bool_:
        return b.op("Where", mask, b.constant(-math.inf, dtype), scores)
    return b.op("Add", scores, mask)


@translates("interpolate", "upsample")
def interpolate(
    b: Builder, input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
    recompute_scale_factor: Any = None, antialias: bool = False,
) -> str:  # fmt: skip
    kinds = {
        "nearest": "nearest",
        "bilinear": "linear",
        "linear": "linear",
        "trilinear": "linear",
        "bicubic": "cubic",
    }
    if mode not in kinds:
        raise NotImplementedError(f"interpolate with mode={mode!r}")
    count = b.meta(input).dim() - 2
    places = "asymmetric" if mode == "nearest" else ("align_corners" if align_corners else "half_pixel")
    options: dict[str, Any] = {"mode": kinds[mode], "coordinate_transformation_mode": places, "nearest_mode": "floor",
               "cubic_coeff_a": -0.75, "antialias": int(antialias)}  # fmt: skip
    if size is not None:
        sizes = b.ints([*b.sizes_of(input)[:2], *_pair(size, count)])
        return b.op("Resize", b.tensor(input), "", "", sizes, **options)
    scales = b.constant([1.0, 1.0, *(float(each) for each in _pair(scale_factor, count))], np.float32)
    return b.op("Resize", b.tensor(input), "", scales, **options)


@translates("grid_sample", "grid_sampler")
def grid_sample(
    b: Builder,
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: Any = None,
) -> str:
    kinds = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
    names = kinds if b.opset >= 20 else {each: each for each in kinds}
    return b.op("GridSample", b.tensor(input), b.tensor(grid), mode=names[mode], padding_mode=padding_mode,
                align_corners=int(bool(align_corners)))  # fmt: skip


# ---- Recurrent layers ---------------------------------------------------------------------------------------------------

# The order of the gates in ONNX, as places in PyTorch's order.
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def _recurrent(kind: str, **attributes: Any) -> Callable[..., Any]:
    def translation(
        b: Builder, input: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float, train: bool,
        bidirectional: bool, batch_first: bool,
    ) -> tuple:  # fmt: skip
        states = list(hx) if kind == "LSTM" else [hx]
        directions = 2 if bidirectional else 1
        per_layer = len(params) // num_layers // directions
        value = b.tensor(input)
        value = b.op("Transpose", value, perm=[1, 0, 2]) if batch_first else value
        ends: list[list[str]] = [[] for _ in states]
        for layer in range(num_layers):
            rows = [params[(layer * directions + d) * per_layer :][:per_layer] for d in range(directions)]
            inputs = [_stacked(b, [row[place] for row in rows], _GATES[kind]) for place in (0, 1)]
            bias = ""
            if has_biases:
                parts = [_stacked(b, [row[place] for row in rows], _GATES[kind]) for place in (2, 3)]
                bias = b.op("Concat", *parts, axis=1)
            first = b.axes(layer * directions)
            initial = [
                b.op("Slice", b.tensor(state), first, b.axes((layer + 1) * directions), b.axes(0))
                for state in states
            ]
            hidden = b.meta(rows[0][1]).shape[1]
            options = {**attributes, "linear_before_reset": 1} if kind == "GRU" else dict(attributes)
            if "activations" in options:
                options["activations"] = options["activations"] * directions
            outputs = b.op(kind, value, *inputs, bias, "", *initial, hidden_size=hidden, outputs=1 + len(states),
                           direction="bidirectional" if bidirectional else "forward", **options)  # fmt: skip
            # [time, directions, batch, hidden] -> [time, batch, directions * hidden]
            joined = b.op("Transpose", outputs[0], perm=[0, 2, 1, 3])
            value = b.op("Reshape", joined, b.constant([0, 0, directions * hidden], np.int64))
            for end, each in zip(ends, outputs[1:]):
                end.append(each)
        value = b.op("Transpose", value, perm=[1, 0, 2]) if batch_first else value
        return value, *(end[0] if len(end) == 1 else b.op("Concat", *end, axis=0) for end in ends)

    return translation


def _stacked(b: Builder, tensors: list[Any], order: tuple[int, ...]) -> str:
    """Parameters of both directions, with the gates in ONNX's order."""
    found = []
    for each in tensors:
        gates = (
            b.op("Split", b.tensor(each), axis=0, num_outputs=len(order), outputs=len(order))
            if len(order) > 1
            else None
        )
        name = b.tensor(each) if gates is None else b.op("Concat", *(gates[place] for place in order), axis=0)
        found.append(b.op("Unsqueeze", name, b.axes(0)))
    return found[0] if len(found) == 1 else b.op("Concat", *found, axis=0)


translates("lstm")(_recurrent("LSTM"))
translates("gru")(_recurrent("GRU"))
translates("rnn_tanh")(_recurrent("RNN", activations=["Tanh"]))
translates("rnn_relu")(_recurrent("RNN", activations=["Relu"]))

__all__ = ["TRANSLATIONS", "float32", "translates"]
