"""Calls of public functions as calls of aten operators, as PyTorch makes them: for `__torch_dispatch__`.

A public function mostly has the name of its operator, and its arguments choose the overload. Functions that take their
arguments in another form than the schema, and functions that PyTorch composes of several operators, have a function here
(`_calls`). A function without an operator runs as it is, and what it calls is told.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.device import CPU, as_device, get_default_device
from ...core.dispatch import PLAIN
from ...core.dtype import DType, bfloat16, bool_, float16, float32, float64, int8, int16, int32, int64, uint8
from ...core.layout import contiguous_format
from ...core.op import Op
from ...core.overrides import modes
from ...core.return_types import return_type
from ...core.tensor import Tensor, empty
from ...ops.creation.from_data import tensor as new_tensor
from ...ops.tensor.printing import tensor_format, tensor_repr
from ..namespaces import ops
from . import aten as aten_operators
from . import dispatching
from .aten_derivatives import reshaped

aten = ops.aten
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
# Names of arguments in PyTorch's Python functions -> names in the schemas.
_NAMES = {"input": "self", "axis": "dim", "keepdims": "keepdim", "x": "self", "x1": "self", "x2": "other"}
# Arguments of Python functions that no schema has; they are None or False in the calls that are told.
_DROPPED = frozenset(
    "size_average reduce _stacklevel inplace out stable generator requires_grad weight".split()
)
# Operators whose Python functions take numbers where the schema has a tensor.
_NUMBERS = frozenset(
    f"{name}{end}"
    for name in ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide", "copy")
    for end in ("", "_")
)  # fmt: skip

_CALLS: dict[str, Callable] = {}


def _calls(*names: str) -> Callable[[Callable], Callable]:
    """A decorator: the function calls the operators of the public functions of these names."""

    def decorate(function: Callable) -> Callable:
        _CALLS.update(dict.fromkeys(names, function))
        return function

    return decorate


def _call_rows(table: dict[str, Callable]) -> None:
    """State the calls of functions that are one expression each. A key may have several names."""
    for names, function in table.items():
        _CALLS.update(dict.fromkeys(names.split(), function))


@functools.cache
def load_layers() -> None:
    """Load the calls of layers, which are built on those of this module."""
    from . import aten_layer_calls  # noqa: F401


def called(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The result of a public function, of whose operators handlers are told; PLAIN if it has none."""
    try:
        name = dispatching.paths().get(function)
    except TypeError:
        return PLAIN
    if name is None:
        return PLAIN
    own = _CALLS.get(name)
    result = by_schema(name, args, kwargs, function) if own is None else own(*args, **kwargs)
    return _public_tuple(name, result) if type(result) in (list, tuple) else result


def _public_tuple(name: str, results: Sequence[Any]) -> tuple:
    """Several results as PyTorch's Python functions give them: a named tuple if the schema of the operator names them, else a tuple."""
    fields = _fields(SYNONYMS.get(name, name), len(results))
    return return_type(name, fields)(results) if fields else tuple(results)


@functools.cache
def _fields(name: str, count: int) -> tuple[str, ...]:
    """The names of `count` results of an operator; empty if no schema names all of them."""
    if not aten_operators.overloads(name):
        return ()
    packet = getattr(aten, name)
    for overload in packet.overloads():
        names = [each.name for each in getattr(packet, overload)._schema.returns]
        if len(names) == count > 1 and all(names):
            return tuple(names)
    return ()


def by_schema(name: str, args: tuple, kwargs: dict[str, Any], function: Any = None) -> Any:
    """Call the overload of the operator `name` that the arguments fit."""
    if function is not None and (args and args[-1] is True or kwargs.get("inplace") is True):
        if _by_name(function, args, kwargs)[1].get("inplace") is True:
            name += "_"
    name = SYNONYMS.get(name, name)
    if not aten_operators.overloads(name):
        return PLAIN
    packet = getattr(aten, name)
    named = _named(kwargs)
    forms = [(args, named), (_with_list(args), named)]
    if function is not None:
        forms.append(_by_name(function, args, kwargs))
    for positional, options in forms:
        found = dispatching.resolve(packet, positional, _fitting(packet, options), name in _NUMBERS)
        if found is not None:
            overload, values = found
            if overload._schema.overload_name in aten_operators.composite(name):
                return PLAIN
            return dispatching.call_bound(overload, values)
    return PLAIN


# The last operand of these elementwise ops, where they have that many -> its name in the schema.
_FACTORS = {("add", 3): "alpha", ("sub", 3): "alpha", ("addcmul", 4): "value", ("addcdiv", 4): "value"}


def by_op(op: Op, args: tuple) -> Any:
    """Call the operator of an elementwise op; PLAIN if it has none."""
    factor = _FACTORS.get((op.name, len(args)))
    return by_schema(op.name, args[:-1], {factor: args[-1]}) if factor else by_schema(op.name, args, {})


def _named(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments under the names of schemas."""
    return {
        _NAMES.get(key, key): _REDUCTIONS.get(value, value) if key == "reduction" else value
        for key, value in kwargs.items()
        if not (key in _DROPPED and (value is None or value is False or value is True))
    }


def _by_name(function: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """The arguments of a Python function, all but the first by name, so that those that no schema has can be left out."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return args, _named(kwargs)
    given = dict(bound.arguments)
    if args:
        given.pop(next(iter(given)))
    return args[:1], _named(given)


def _fitting(packet: Any, named: dict[str, Any]) -> dict[str, Any]:
    """The arguments by the names of the schema, which calls its first tensor `input` where Python's function does."""
    if "self" not in named:
        return named
    schema = getattr(packet, packet.overloads()[0])._schema
    names = {each.name for each in schema.arguments}
    if "self" in names or "input" not in names:
        return named
    return {("input" if key == "self" else key): value for key, value in named.items()}


def _with_list(args: tuple) -> tuple:
    """`x.permute(0, 1)` as `x.permute([0, 1])`."""
    last = len(args)
    while last > 0 and type(args[last - 1]) is int:
        last -= 1
    return (*args[:last], list(args[last:]))


# Functions that PyTorch composes of the operator of another name.
SYNONYMS = {
    "absolute": "abs", "clip": "clamp", "clip_": "clamp_", "multiply": "mul", "multiply_": "mul_", "divide": "div",
    "divide_": "div_", "true_divide": "div", "true_divide_": "div_", "subtract": "sub", "subtract_": "sub_", "negative": "neg",
    "negative_": "neg_", "absolute_": "abs_", "concat": "cat", "concatenate": "cat", "greater": "gt", "less": "lt",
    "greater_equal": "ge", "less_equal": "le", "not_equal": "ne", "swapaxes": "transpose", "swapdims": "transpose",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "fix": "trunc", "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "__invert__": "bitwise_not",
    "__floordiv__": "floor_divide", "__rsub__": "rsub", "__lshift__": "__lshift__", "__iadd__": "add_", "__isub__": "sub_",
    "__imul__": "mul_", "__itruediv__": "div_", "__radd__": "add", "__rmul__": "mul", "__pow__": "pow", "__eq__": "eq",
    "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__add__": "add", "__sub__": "sub",
    "__mul__": "mul", "__truediv__": "div", "__neg__": "neg", "__abs__": "abs", "__mod__": "remainder", "special_expit": "sigmoid",
}  # fmt: skip


# ---- Products --------------------------------------------------------------------------------------------------------------


@_calls("linear")
def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if bias is None:
        return _matmul(input, aten.t(weight))
    if input.ndim == 2:
        return aten.addmm(bias, input, aten.t(weight))
    if input.ndim == 1 or input.is_contiguous() and input.ndim > 2:
        rows = aten.view(input, [math.prod(input.shape[:-1]), input.shape[-1]])
        result = aten.addmm(bias, rows, aten.t(weight))
        return aten.view(result, [*input.shape[:-1], weight.shape[0]])
    return aten.add(_matmul(input, aten.t(weight)), bias)


@_calls("matmul", "__matmul__", "linalg_matmul")
def _matmul(input: Tensor, other: Any) -> Any:
    if not isinstance(other, Tensor) or not isinstance(input, Tensor):
        return PLAIN
    dims = input.ndim, other.ndim
    if 0 in dims:
        return PLAIN
    if dims == (1, 1):
        return aten.dot(input, other)
    if dims == (2, 1):
        return aten.mv(input, other)
    if dims == (1, 2):
        return aten.squeeze_(aten.mm(aten.unsqueeze(input, 0), other), 0)
    if dims == (2, 2):
        return aten.mm(input, other)
    if dims[0] > 2 and dims[1] <= 2:
        rows = reshaped(input, [math.prod(input.shape[:-1]), input.shape[-1]])
        if dims[1] == 1:
            return aten._unsafe_view(aten.mv(rows, other), input.shape[:-1])
        return aten._unsafe_view(aten.mm(rows, other), [*input.shape[:-1], other.shape[-1]])
    if 1 in dims or 2 in dims:
        return PLAIN
    batch = _broadcast(input.shape[:-2], other.shape[:-2])
    (n, m), p = input.shape[-2:], other.shape[-1]
    count = math.prod(batch)
    a = reshaped(aten.expand(input, [*batch, n, m]), [count, n, m])
    b = reshaped(aten.expand(other, [*batch, m, p]), [count, m, p])
    return aten._unsafe_view(aten.bmm(a, b), [*batch, n, p])


def _broadcast(a: Sequence[int], b: Sequence[int]) -> list[int]:
    from ...core.iteration import broadcast_shapes

    return list(broadcast_shapes("matmul", tuple(a), tuple(b)))


@_calls("__rmatmul__")
def _reflected_matmul(self: Tensor, other: Any) -> Any:
    return _matmul(other, self)


# ---- Views -----------------------------------------------------------------------------------------------------------------


def _sizes(sizes: tuple) -> list[int]:
    return list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else list(sizes)


def _inferred(x: Tensor, sizes: Sequence[int]) -> list[int]:
    """Sizes without -1, if they fit the number of elements."""
    known = math.prod(size for size in sizes if size != -1)
    return [x.numel() // known if size == -1 and known else size for size in sizes]


@_calls("reshape")
def _reshape(input: Tensor, *shape: Any) -> Any:
    sizes = _inferred(input, _sizes(shape))
    return reshaped(input, sizes) if math.prod(sizes) == input.numel() else PLAIN


@_calls("flatten")
def _flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    if not input.ndim:
        return reshaped(input, [1])
    start, end = start_dim % input.ndim, end_dim % input.ndim
    if start == end:
        return input
    shape = input.shape
    return reshaped(input, [*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]])


@_calls("view")
def _view(self: Tensor, *shape: Any, **named: Any) -> Any:
    if shape and all(isinstance(each, int) for each in shape):
        return aten.view(self, list(shape))
    return by_schema("view", (self, *shape), named)


_call_rows(
    {
        "Tensor.where": lambda self, condition, other: by_schema("where", (condition, self, other), {}),
        "view_as": lambda self, other: aten.view(self, list(other.shape)),
        "expand_as": lambda self, other: aten.expand(self, list(other.shape)),
        "T": lambda self, *_: aten.permute(self, list(range(self.ndim))[::-1]),
        "mT": lambda self, *_: aten.transpose(self, -2, -1),
        "chunk": lambda input, chunks, dim=0: aten.split(input, max(1, -(-input.shape[dim] // chunks)), dim),
        "narrow": lambda input, dim, start, length: aten.slice(input, dim, int(start), int(start) + length),
    }
)


@_calls("movedim", "moveaxis")
def _movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    sources, places = (
        [each % input.ndim for each in (dims if isinstance(dims, (tuple, list)) else (dims,))]
        for dims in (source, destination)
    )
    if len(sources) != len(places):
        return PLAIN
    moved = dict(zip(places, sources, strict=True))
    rest = iter(dim for dim in range(input.ndim) if dim not in sources)
    return aten.permute(input, [moved[dim] if dim in moved else next(rest) for dim in range(input.ndim)])


@_calls("unflatten")
def _unflatten(input: Tensor, dim: Any, sizes: Any) -> Any:
    if not isinstance(dim, int) or -1 in sizes:
        return PLAIN
    shape, dim = list(input.shape), dim % input.ndim
    return aten.view(input, [*shape[:dim], *sizes, *shape[dim + 1 :]])


@_calls("tolist", "numpy")
def _values(self: Tensor, *args: Any, **named: Any) -> Any:
    if not dispatching.handling((self,)):
        return PLAIN
    raise RuntimeError(
        f"tolist() or numpy() is not supported for tensor subclasses. {type(self).__name__} defines __torch_dispatch__, so "
        "only the class knows the values"
    )


@_calls("data")
def _data(self: Tensor, *_: Any) -> Tensor:
    result = aten.detach(self)
    if result.spec.device.is_claimed:
        result._storage = empty(result.spec)._storage  # writes to it do not count as writes to `self`
    return result


@_calls("split")
def _split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> Any:
    if isinstance(split_size_or_sections, (tuple, list)):
        return aten.split_with_sizes(tensor, split_size_or_sections, dim)
    return aten.split(tensor, split_size_or_sections, dim)


@_calls("contiguous")
def _contiguous(self: Tensor, memory_format: Any = contiguous_format) -> Tensor:
    return (
        self
        if self.is_contiguous(memory_format=memory_format)
        else aten.clone(self, memory_format=memory_format)
    )


@_calls("__getitem__")
def _getitem(self: Tensor, index: Any) -> Any:
    items = list(index) if isinstance(index, tuple) else [index]
    taken = sum(each is not None and each is not Ellipsis and not isinstance(each, bool) for each in items)
    for each in items:
        if isinstance(each, Tensor) and each.dtype in (bool_, uint8):
            taken += each.ndim - 1
    result, dim = self, 0
    indices: dict[int, Any] = {}
    for each in items:
        if each is Ellipsis:
            dim += self.ndim - taken
        elif each is None:
            result = aten.unsqueeze(result, dim)
            dim += 1
        elif isinstance(each, slice):
            start, stop, step = each.indices(result.shape[dim])
            if each != slice(None):
                stop = stop if each.stop is not None else 9223372036854775807
                result = aten.slice(result, dim, start, stop, step)
            dim += 1
        elif type(each) is int:
            result = aten.select(result, dim, each)
        elif isinstance(each, Tensor):
            indices[dim] = each
            dim += each.ndim if each.dtype in (bool_, uint8) else 1
        else:
            return PLAIN
    if indices:
        places: list[Any] = []
        for dim, each in indices.items():
            places += [None] * (dim - len(places)) + [each]
        return aten.index(result, places)
    return aten.alias(self) if result is self else result


@_calls("__setitem__")
def _setitem(self: Tensor, index: Any, value: Any) -> Any:
    by_tensors = any(isinstance(each, Tensor) for each in (index if isinstance(index, tuple) else (index,)))
    if by_tensors and not isinstance(index, Tensor):
        return PLAIN
    if not isinstance(value, Tensor):
        value = _tensor(value, dtype=self.dtype)
    if by_tensors:
        aten.index_put_(self, [index], value)
        return None
    part = self if index is Ellipsis or index == slice(None) else _getitem(self, index)
    if part is PLAIN:
        return PLAIN
    if value.ndim or not part.ndim:
        aten.copy_(part, value)
    else:
        aten.fill_.Tensor(part, value)
    return None


# ---- Conversions -------------------------------------------------------------------------------------------------------------


@_calls("to")
def _to(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    from ...ops.assembly.copying import parse_to

    where, dtype, copy, memory_format = parse_to(args, kwargs)
    changed: dict[str, Any] = {}
    if dtype is not None and dtype is not self.dtype:
        changed["dtype"] = dtype
    if where is not None and where != self.device:
        changed["device"] = where
    if not changed and not copy:
        return self
    return aten._to_copy(self, **changed)


def _conversion(dtype: DType) -> Callable:
    return lambda self, **options: self if self.dtype is dtype else aten._to_copy(self, dtype=dtype)


for _name, _kind in {
    "float": float32, "double": float64, "half": float16, "bfloat16": bfloat16, "long": int64, "int": int32, "short": int16,
    "char": int8, "byte": uint8, "bool": bool_,
}.items():  # fmt: skip
    _CALLS[_name] = _conversion(_kind)


def _number(convert: Callable) -> Callable:
    return lambda self: convert(aten._local_scalar_dense(self)) if self.numel() == 1 else PLAIN


_CALLS["item"] = _number(lambda number: number)
for _name, _convert in {"__bool__": bool, "__float__": float, "__int__": int}.items():
    _CALLS[_name] = _number(_convert)


@_calls("isclose")
def _isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """PyTorch composes it, so handlers are told of the parts."""
    close = input == other
    if equal_nan:
        close = close.logical_or((input != input).logical_and(other != other))
    if not rtol and not atol:
        return close
    distance = (input - other).abs()
    near = distance <= (other * rtol).abs() + atol
    return close.logical_or(near.logical_and(distance != float("inf")))


@_calls("detach")
def _detach(self: Tensor) -> Tensor:
    return dispatching.call(aten.detach.default, (self,))


def _untold(function: Callable) -> Callable:
    """A function of whose operators handlers are not told."""

    def run(*args: Any, **kwargs: Any) -> Any:
        outer, modes.dispatch = modes.dispatch, ()
        try:
            return function(*args, **kwargs)
        finally:
            modes.dispatch = outer

    return run


_CALLS["__repr__"], _CALLS["__format__"] = _untold(tensor_repr), _untold(tensor_format)


# ---- Factories -----------------------------------------------------------------------------------------------------------------


def _factory(name: str, sized: bool) -> None:
    def function(*args: Any, **options: Any) -> Any:
        if options.get("generator") is not None or options.get("out") is not None:
            return PLAIN
        requires_grad = options.pop("requires_grad", False)
        positional = [_sizes(args)] if sized and args else list(args)
        if "size" in options:
            positional = [list(options.pop("size"))]
        named = {key: value for key, value in options.items() if value is not None}
        named.setdefault("device", get_default_device())
        named.setdefault("pin_memory", False)
        if name == "full" and isinstance(positional[-1], Tensor):
            positional[-1] = positional[-1].item()
        found = dispatching.resolve(getattr(aten, name), positional, named)
        if found is None:
            return PLAIN
        result = dispatching.call_bound(*found)
        return result.requires_grad_() if requires_grad else result

    _CALLS[name] = function


for _name in ("zeros", "ones", "empty", "rand", "randn"):
    _factory(_name, sized=True)
for _name in ("full", "arange", "eye", "linspace", "logspace", "randint", "randperm"):
    _factory(_name, sized=False)


def _like(name: str) -> None:
    def function(input: Tensor, *args: Any, **options: Any) -> Any:
        requires_grad = options.pop("requires_grad", False)
        options.pop("layout", None)
        named = {key: value for key, value in options.items() if value is not None}
        named.setdefault("pin_memory", False)
        result = getattr(aten, name)(input, *args, **named)
        return result.requires_grad_() if requires_grad else result

    _CALLS[name] = function


for _name in ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like"):
    _like(_name)


def _new(name: str) -> None:
    """A method that makes a tensor like `self`, of sizes that are one argument or several."""

    def function(self: Tensor, *sizes: Any, **options: Any) -> Any:
        requires_grad = options.pop("requires_grad", False)
        named = {key: value for key, value in options.items() if value is not None}
        size = named.pop("size", None)
        named.setdefault("pin_memory", False)
        result = getattr(aten, name)(self, _sizes(sizes) if size is None else list(size), **named)
        return result.requires_grad_() if requires_grad else result

    _CALLS[name] = function


for _name in ("new_zeros", "new_ones", "new_empty"):
    _new(_name)


@_calls("new_full")
def _new_full(self: Tensor, size: Any, fill_value: Any, **options: Any) -> Any:
    requires_grad = options.pop("requires_grad", False)
    named = {key: value for key, value in options.items() if value is not None}
    number = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    result = aten.new_full(self, [int(each) for each in size], number, **{"pin_memory": False, **named})
    return result.requires_grad_() if requires_grad else result


@_calls("tensor")
def _tensor(data: Any, **options: Any) -> Any:
    requires_grad = options.pop("requires_grad", False)
    where = options.get("device")
    if where is not None and not isinstance(data, Tensor) and as_device(where).type != "cpu":
        options["device"] = CPU  # a mode decides whether there is such a device
    outer, modes.dispatch = modes.dispatch, ()
    try:
        made = new_tensor(data, **options)
    finally:
        modes.dispatch = outer
    result = aten.lift_fresh(made)
    if where is not None and as_device(where).type != result.device.type:
        result = result.to(where)
    return result.requires_grad_() if requires_grad else result


@_calls("as_tensor")
def _as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    return PLAIN if isinstance(data, Tensor) else _tensor(data, dtype=dtype, device=device)


@_calls("new_tensor")
def _new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    dtype, device = dtype or self.dtype, device or self.device
    return _tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


# ---- Layers and losses -------------------------------------------------------------------------------------------------------------


def _normalizing(name: str) -> Callable:
    def function(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        if dim is None:
            return PLAIN
        if dtype is not None and dtype is not input.dtype:
            input = aten._to_copy(input, dtype=dtype)
        return getattr(aten, name)(input, dim, False)

    def method(input: Tensor, dim: Any = None, dtype: Any = None, **options: Any) -> Any:
        if isinstance(dtype, int):
            dtype = None
        return function(input, dim, dtype=options.get("dtype", dtype))

    return method


_CALLS["softmax"], _CALLS["log_softmax"] = _normalizing("_softmax"), _normalizing("_log_softmax")


@_calls("mse_loss")
def _mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    if weight is not None or input.shape != target.shape or size_average is not None or reduce is not None:
        return PLAIN
    return aten.mse_loss(input, target, _REDUCTIONS[reduction])


@_calls("nll_loss")
def _nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    if input.ndim > 2 or size_average is not None or reduce is not None:
        return PLAIN
    return aten.nll_loss_forward(input, target, weight, _REDUCTIONS[reduction], ignore_index)[0]


@_calls("cross_entropy")
def _cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    if (
        target.dtype.is_floating_point
        or label_smoothing
        or input.ndim > 2
        or size_average is not None
        or reduce is not None
    ):
        return PLAIN
    logarithms = aten._log_softmax(input, 1 if input.ndim > 1 else 0, False)
    return _nll_loss(logarithms, target, weight, ignore_index=ignore_index, reduction=reduction)


@_calls("layer_norm")
def _layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:  # fmt: skip
    return aten.native_layer_norm(input, list(normalized_shape), weight, bias, eps)[0]


@_calls("embedding")
def _embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    if max_norm is not None or sparse or not input.dtype.is_floating_point and weight.dtype is int64:
        return PLAIN
    place = -1 if padding_idx is None else padding_idx % weight.shape[0]
    return aten.embedding(weight, input, place, scale_grad_by_freq)


def _listed(value: Any, n: int) -> list[int]:
    return list(value) * (n if len(value) == 1 else 1) if isinstance(value, (tuple, list)) else [value] * n


def _convolution(n: int) -> Callable:
    def function(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        if isinstance(padding, str) or input.ndim != n + 2:
            return PLAIN
        return aten.convolution(
            input,
            weight,
            bias,
            _listed(stride, n),
            _listed(padding, n),
            _listed(dilation, n),
            False,
            [0] * n,
            groups,
        )

    return function


for _n in (1, 2, 3):
    _CALLS[f"conv{_n}d"] = _convolution(_n)


@_calls("dropout")
def _dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, **options: Any
) -> Any:
    training = options.get("train", training)
    if inplace:
        return PLAIN
    if not training or p == 0:
        return input
    noise = aten.empty_like(input)
    noise = aten.div_.Scalar(aten.bernoulli_.float(noise, 1 - p), 1 - p)
    return aten.mul(input, noise)


@_calls("max_pool2d")
def _max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    if return_indices or input.ndim != 4:
        return PLAIN
    return aten.max_pool2d_with_indices(
        input, _listed(kernel_size, 2), [] if stride is None else _listed(stride, 2), _listed(padding, 2),
        _listed(dilation, 2), ceil_mode,
    )[0]  # fmt: skip


# ---- Elementwise and reductions ---------------------------------------------------------------------------------------------------


_call_rows(
    {
        "__rdiv__ __rtruediv__": lambda self, other: aten.mul(aten.reciprocal(self), other),
        "__rpow__": lambda self, other: aten.pow(other, self),
        "square": lambda input: aten.pow(input, 2),
        "repeat": lambda self, *repeats: by_schema("repeat", (self, _sizes(repeats)), {}),
        "relu": lambda input, inplace=False: aten.relu_(input) if inplace else aten.relu(input),
        "relu6": lambda input, inplace=False: PLAIN if inplace else aten.hardtanh(input, 0, 6),
        "elu": lambda input, alpha=1.0, inplace=False: PLAIN if inplace else aten.elu(input, alpha),
    }
)


@_calls("pad")
def _pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    if mode != "constant":
        return PLAIN
    return aten.constant_pad_nd(input, list(pad), 0.0 if value is None else value)


@_calls("norm", "linalg_norm")
def _norm(input: Tensor, p: Any = None, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    if options or p not in (None, "fro", 2, 2.0):
        return PLAIN
    if dim is None and not keepdim:
        return aten.linalg_vector_norm(input)
    return aten.linalg_vector_norm(
        input, 2, None if dim is None else [dim] if type(dim) is int else list(dim), keepdim
    )


def _moment(name: str) -> Callable:
    def function(
        input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, **options: Any
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        named = {key: value for key, value in options.items() if key == "correction"}
        if unbiased is not None:
            named["correction"] = 1 if unbiased else 0
        if dim is None and not named:
            return getattr(aten, name).correction(input)
        named.setdefault("correction", 1)
        if keepdim:
            named["keepdim"] = True
        dims = None if dim is None else [dim] if type(dim) is int else list(dim)
        return getattr(aten, name).correction(input, dims, **named)

    return function


for _name in ("var", "std", "var_mean", "std_mean"):
    _CALLS[_name] = _moment(_name)
