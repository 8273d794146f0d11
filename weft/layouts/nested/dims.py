"""Functions along dims. Dim d of a nested tensor is dim d - 1 of its components, and of the values of a jagged one.

    keeping     the result has the sizes of the input                    softmax, cumsum, sort
    reducing    the dims are gone, or have size 1                        sum, amax, var
    reshaping   the dims of each component are others                    transpose, unsqueeze, chunk, select

Where no ragged dim takes part, a function of a jagged tensor runs once, on the values. Else it runs on each component.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.dtype import DType, bool_
from ...core.grad_mode import mode
from ...core.limits import finfo, iinfo
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ..parts import values_of
from .elementwise import by_rows, plain_function
from .ragged_size import RaggedSize
from .rules import NESTED
from .tensors import (
    Piece,
    components,
    concatenated,
    contiguous,
    detach,
    dim_of,
    fills_values,
    is_jagged,
    is_nested,
    jagged,
    joined,
    like,
    offsets_for,
    pieces_of,
    ragged_dim_of,
    strided,
)

arange, cat, stack = FUNCTIONS["arange"], FUNCTIONS["cat"], FUNCTIONS["stack"]
rule = NESTED.rule


def _own_dim(x: Tensor, dim: int, name: str) -> int:
    """Return a dim of the components, as a dim of the nested tensor.

    Raises: RuntimeError for the batch dim.
    """
    dim = dim_of(dim, x.dim(), name)
    if dim == 0:
        raise RuntimeError(
            f"{name}(): not supported for nested tensors on dim=0: write [f(each) for each in x.unbind()], or use "
            "torch.nested.to_padded_tensor"
        )
    return dim


def _collected(results: Sequence[Any], collect: Callable[[list[Tensor]], Tensor]) -> Any:
    """Results of components, collected; where each is a tuple, a tuple of collected ones."""
    if isinstance(results[0], (tuple, list)):
        if len({len(each) for each in results}) > 1:
            raise RuntimeError(
                f"the components give different numbers of tensors, {[len(each) for each in results]}: write "
                "[f(each) for each in x.unbind()]"
            )
        kind: Any = type(results[0])
        return getattr(kind, "_make", kind)(_collected(each, collect) for each in zip(*results, strict=True))
    return collect(list(results))


def _of_each(result: Any, function: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(result, (tuple, list)):
        kind: Any = type(result)
        return getattr(kind, "_make", kind)(_of_each(each, function) for each in result)
    return function(result)


# ---- Keeping ----------------------------------------------------------------------------------------------------------


def _keeping(name: str, default: int | None = None, rows: bool = False) -> None:
    """rows: whether the last dim of strided tensors is treated in one call, for functions with one result."""
    function = plain_function(name)

    def keep(input: Tensor, dim: int | None = default, *args: Any, **kwargs: Any) -> Any:
        if dim is None:
            raise RuntimeError(f"{name}: give the dim of a nested tensor")
        dim = _own_dim(input, dim, name)
        if is_jagged(input) and dim != ragged_dim_of(input):
            result = function(values_of(input), dim - 1, *args, **kwargs)
            return _of_each(result, lambda values: like(input, values))
        if rows and not is_jagged(input) and dim == input.dim() - 1 and isinstance(input.shape[-1], int):
            return by_rows(input, lambda values: function(values, -1, *args, **kwargs), 1, name)
        results = [function(each, dim - 1, *args, **kwargs) for each in components(input)]
        return _collected(results, lambda tensors: joined(input, tensors))

    rule(name)(keep)


for _name in "softmax log_softmax cumsum cumprod logcumsumexp nn.functional.softmax nn.functional.log_softmax nn.functional.softmin".split():
    _keeping(_name, rows=True)
for _name in "cummax cummin".split():
    _keeping(_name)
for _name in "sort argsort".split():
    _keeping(_name, -1)


# ---- Reducing -----------------------------------------------------------------------------------------------------------


# Where these reduce an empty component, they give the limit of the dtype, and the index 0, as in PyTorch.
_EXTREMA = {"amax": "min", "max": "min", "argmax": "min", "amin": "max", "min": "max", "argmin": "max"}


def _reducing(name: str, *parameters: str) -> None:
    """parameters: the names of the arguments that may be given by position."""
    function = plain_function(name)

    def reduce(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        if args and is_nested(args[0]):  # max(x, y)
            return FUNCTIONS[f"{name}imum"](input, *args)
        if args and isinstance(args[0], bool):  # var(x, unbiased)
            args = (None, *args)
        if len(args) > len(parameters):
            raise TypeError(
                f"{name}() takes at most {len(parameters) + 1} arguments, but {len(args) + 1} were given"
            )
        kwargs.update(zip(parameters, args))
        dims: Any = kwargs.pop("dim", -1 if name == "mode" else None)
        if dims is None or dims == () or dims == []:
            return function(_all_values(input), **kwargs)
        chosen = {dim_of(dim, input.dim(), name) for dim in ((dims,) if isinstance(dims, int) else dims)}
        shifted: Any = sorted(dim - 1 for dim in chosen - {0})
        if isinstance(dims, int) and shifted:
            shifted = shifted[0]

        def call(values: Tensor) -> Any:
            if name in _EXTREMA and not all(values.shape[dim - 1] for dim in chosen - {0}):
                values = _limit(values, chosen, _EXTREMA[name])
            return function(values, dim=shifted, **kwargs)

        keepdim = bool(kwargs.get("keepdim"))
        if is_jagged(input):
            return _reduced_jagged(name, input, call, chosen, keepdim)
        return _reduced_strided(name, input, call, chosen, keepdim)

    rule(name)(reduce)


def _limit(component: Tensor, dims: set[int], end: str) -> Tensor:
    """Return one element along each of the dims, the least or the greatest, for a component without elements."""
    sizes = [1 if dim in dims else size for dim, size in enumerate(component.shape, 1)]
    if component.dtype is bool_:
        return component.new_full(sizes, end == "max")
    limits: Any = finfo if component.dtype.is_floating_point else iinfo
    return component.new_full(sizes, getattr(limits(component.dtype), end))


def _all_values(x: Tensor) -> Tensor:
    return values_of(x) if is_jagged(x) and fills_values(x) else values_of(contiguous(x))


def _reduced_strided(name: str, x: Tensor, call: Callable, dims: set[int], keepdim: bool) -> Any:
    if 0 in dims or name == "sum" and dims != {x.dim() - 1}:
        raise RuntimeError(
            f"{name}: NestedTensor can only be reduced across the last dimension, got dimension {min(dims)} instead: make it with "
            "layout=torch.jagged to reduce others"
        )
    if name == "sum" and not keepdim:
        raise RuntimeError(
            f"{name}: NestedTensor always requires keepdim=True, unless it is made with layout=torch.jagged"
        )
    collect = stack if len(dims) == x.dim() - 1 and not keepdim else lambda tensors: joined(x, tensors)
    return _collected([call(each) for each in components(x)], collect)


def _reduced_jagged(name: str, x: Tensor, call: Callable, dims: set[int], keepdim: bool) -> Any:
    ragged = ragged_dim_of(x)
    if 0 in dims:
        if ragged not in dims:
            raise RuntimeError(
                f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors: "
                "the components have different sizes there"
            )
        return _of_each(call(_all_values(x)), lambda result: result.unsqueeze(0) if keepdim else result)
    if ragged in dims:
        return _collected([call(each) for each in components(x)], stack)
    place = ragged if keepdim else ragged - sum(dim < ragged for dim in dims)
    return _of_each(call(values_of(x)), lambda values: like(x, values, place))


for _name in (
    "sum nansum mean nanmean prod all any amax amin aminmax max min argmax argmin median nanmedian mode logsumexp count_nonzero"
).split():
    _reducing(_name, "dim", "keepdim")
for _name in "std var std_mean var_mean".split():
    _reducing(_name, "dim", "unbiased", "keepdim")
_reducing("norm", "p", "dim", "keepdim", "dtype")
_reducing("linalg.vector_norm", "ord", "dim", "keepdim")


# ---- Reshaping -----------------------------------------------------------------------------------------------------------


def permuted(x: Tensor, order: Sequence[int]) -> Tensor:
    """A view with the dims in this order; the batch dim stays the first."""
    inner = [dim - 1 for dim in order[1:]]
    if is_jagged(x):
        return like(x, values_of(x).permute(inner), list(order).index(ragged_dim_of(x)))
    pieces = [
        Piece(tuple(each.size[k] for k in inner), tuple(each.stride[k] for k in inner), each.offset)
        for each in pieces_of(x)
    ]
    return strided(values_of(x), pieces)


@rule("transpose", "swapdims")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    first, second = dim_of(dim0, input.dim(), "transpose"), dim_of(dim1, input.dim(), "transpose")
    if first == second:
        return input
    if 0 in (first, second):
        if is_jagged(input):
            raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed: it is the dim of the components")
    order = list(range(input.dim()))
    order[first], order[second] = second, first
    return permuted(input, order)


@rule("swapaxes")
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    return transpose(input, axis0, axis1)


@rule("mT")
def matrix_transpose(self: Tensor) -> Tensor:
    return transpose(self, -2, -1)


@rule("permute")
def permute(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    given = (
        dims if dims is not None else order[0] if len(order) == 1 and not isinstance(order[0], int) else order
    )
    if len(given) != input.dim():
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({input.dim()}) does not match the length of the desired ordering "
            f"of dimensions ({len(given)})."
        )
    found = [dim_of(dim, input.dim(), "permute") for dim in given]
    if len(set(found)) < len(found):
        raise ValueError("permute(): duplicate dims are not allowed.")
    if found[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension of a nested tensor")
    return permuted(input, found)


@rule("T", "H", "t")
def reversed_dims(self: Tensor) -> Tensor:
    return permute(self, list(range(self.dim()))[::-1])


@rule("movedim", "moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    source, destination = ((dims,) if isinstance(dims, int) else dims for dims in (source, destination))
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number of dims as "
            f"destination ({list(destination)} dims)"
        )
    places = [dim_of(dim, input.dim(), "movedim") for dim in destination]
    moved = [dim_of(dim, input.dim(), "movedim") for dim in source]
    order = [dim for dim in range(input.dim()) if dim not in moved]
    for place, dim in sorted(zip(places, moved, strict=True)):
        order.insert(place, dim)
    return permute(input, order)


def _ragged(x: Tensor) -> int:
    """Return the dim of the ragged sizes; 0, which is none, of a strided tensor."""
    return ragged_dim_of(x) if is_jagged(x) else 0


def _reshaped(x: Tensor, function: Callable[[Tensor], Any], ragged_dim: int | None = None) -> Any:
    """Apply `function` to the values, or to each component of a strided tensor, whose sizes it changes.

    ragged_dim: of the result, unless it is that of `x`.
    """
    if is_jagged(x):
        place = ragged_dim_of(x) if ragged_dim is None else ragged_dim
        return _of_each(function(values_of(x)), lambda values: like(x, values, place))
    return _collected([function(each) for each in components(x)], lambda tensors: joined(x, tensors))


@rule("unsqueeze")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    dim = dim_of(dim, input.dim() + 1, "unsqueeze")
    if dim == 0:
        raise RuntimeError(
            "unsqueeze(): not supported for nested tensors on dim=0, which is the dim of the components"
        )
    place = _ragged(input)
    return _reshaped(input, lambda values: values.unsqueeze(dim - 1), place + (dim <= place))


@rule("squeeze")
def squeeze(input: Tensor, *dims: Any, dim: Any = None) -> Tensor:
    given = dims[0] if dims else dim
    if given is None:
        raise RuntimeError("squeeze(): give the dim of a nested tensor")
    chosen = [_own_dim(input, each, "squeeze") for each in ((given,) if isinstance(given, int) else given)]
    place = _ragged(input)
    gone = [each for each in chosen if input.shape[each] == 1 and each != place]
    return _reshaped(
        input,
        lambda values: values.squeeze([each - 1 for each in gone]),
        place - sum(each < place for each in gone),
    )


@rule("unflatten")
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    dim = _own_dim(input, dim, "unflatten")
    place = _ragged(input)
    if dim == place:
        raise RuntimeError("unflatten(): not supported for nested tensors on the ragged dim")
    after = place + (len(sizes) - 1 if dim < place else 0)
    return _reshaped(input, lambda values: values.unflatten(dim - 1, sizes), after)


@rule("flatten")
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    start, end = _own_dim(input, start_dim, "flatten"), _own_dim(input, end_dim, "flatten")
    place = _ragged(input)
    if start < end and start <= place <= end:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    return _reshaped(
        input, lambda values: values.flatten(start - 1, end - 1), place - (end - start if end < place else 0)
    )


def _sizes(given: tuple, named: Any) -> tuple:
    return (
        tuple(named)
        if named is not None
        else tuple(given[0])
        if len(given) == 1 and isinstance(given[0], (tuple, list))
        else given
    )


@rule("view", "reshape")
def reshape(
    input: Tensor, *sizes: Any, shape: Any = None, size: Any = None, dtype: DType | None = None
) -> Tensor:
    """The sizes of the components may change, but not that of a ragged dim, for which -1 stands."""
    if dtype is not None or len(sizes) == 1 and isinstance(sizes[0], DType):
        raise NotImplementedError(
            "view: a nested tensor is not viewed with another dtype: write x.values().view(dtype)"
        )
    wanted = _sizes(sizes, shape if shape is not None else size)
    count = input.shape[0]
    if not wanted or wanted[0] not in (count, -1):
        raise RuntimeError(
            f"view: the first size must be that of the nested tensor, {count}, but got {wanted}"
        )
    if not is_jagged(input):
        inner = [_inherited(each, place, input) for place, each in enumerate(wanted) if place]
        return _reshaped(input, lambda values: values.reshape(_filled(inner, values)), 0)
    place, dim = _place_of_ragged(wanted, input), ragged_dim_of(input) - 1
    values = values_of(input)
    inner = [values.shape[dim] if k == place else each for k, each in enumerate(wanted)][1:]
    before = inner[: place - 1]
    if -1 not in before and math.prod(before) != math.prod(values.shape[:dim]):
        raise RuntimeError(f"view: cannot view the nested tensor of size {tuple(input.shape)} as {wanted}")
    return like(input, values.reshape(inner), place)


@rule("view_as", "reshape_as")
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    return reshape(self, *other.shape)


def _inherited(size: Any, place: int, x: Tensor) -> Any:
    """The size of a dim of all components; None for the size that each has there."""
    if isinstance(size, RaggedSize) or size == -1 and place < x.dim() and not isinstance(x.shape[place], int):
        return None
    return size


def _filled(sizes: list, component: Tensor) -> list[int]:
    return [component.shape[place] if size is None else size for place, size in enumerate(sizes)]


def _place_of_ragged(sizes: tuple, x: Tensor) -> int:
    """Return the position of the ragged size, or else of -1."""
    ragged: Any = x.shape[ragged_dim_of(x)]
    for wanted in (ragged, -1):
        if wanted in sizes[1:]:
            return sizes.index(wanted, 1)
    raise RuntimeError(
        f"view: cannot view the nested tensor of size {tuple(x.shape)} as {sizes}, which has no ragged dim"
    )


@rule("expand")
def expand(self: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    wanted, own = _sizes(sizes, size), tuple(self.shape)
    fits = len(wanted) == len(own) and all(w in (o, -1) or o == 1 for w, o in zip(wanted, own, strict=True))
    if not is_jagged(self) or not fits:
        raise RuntimeError(f"expand(): cannot expand shape {own} -> {list(wanted)}")
    place = ragged_dim_of(self)
    inner = [-1 if k == place else each for k, each in enumerate(wanted)][1:]
    return like(self, values_of(self).expand(inner))


@rule("expand_as")
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    if is_nested(self) and is_jagged(self):
        return expand(self, other.shape)
    if not is_nested(other):
        raise RuntimeError(f"expand_as(): cannot expand {tuple(self.shape)} as {tuple(other.shape)}")
    own: Any = components(self) if is_nested(self) else self.expand(len(other), *self.shape[1:]).unbind()
    return joined(other, [a.expand_as(b) for a, b in zip(own, components(other), strict=True)])


def _splitting(name: str) -> None:
    function = plain_function(name)
    bind = inspect.signature(function).bind

    def split(*args: Any, **kwargs: Any) -> Any:
        input, *how = (bound := bind(*args, **kwargs)).arguments.values()
        dim = dim_of(bound.arguments.get("dim", 0), input.dim(), name)
        bound.arguments["dim"] = max(dim - 1, 0)

        def pieces(values: Tensor) -> Any:
            return function(values, *bound.args[1:], **bound.kwargs)

        if dim == 0:
            places = pieces(arange(input.shape[0]))
            return tuple(selected(input, each.tolist()) for each in places)
        if dim == _ragged(input):
            raise RuntimeError(f"{name}(): not supported for nested tensors on the ragged dim")
        size = input.shape[dim]
        if (
            name == "chunk"
            and not is_jagged(input)
            and how[0] > 0
            and (type(size) is not int or size % how[0])
        ):
            raise RuntimeError(
                f"Chunk for nested tensors is only supported for dims divisible by chunks, got: {size} % {how[0]} != 0"
            )
        return _reshaped(input, pieces)

    rule(name)(split)


for _name in "chunk split split_with_sizes tensor_split".split():
    _splitting(_name)


@rule("narrow")
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    dim = dim_of(dim, input.dim(), "narrow")
    if dim == 0:
        count = input.shape[0]
        if not 0 <= start <= start + length <= count:
            raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({count}).")
        return selected(input, range(start, start + length))
    if dim == _ragged(input):
        raise RuntimeError(
            "narrow(): not supported for nested tensors on the ragged dim: use torch.nested.narrow"
        )
    return _reshaped(input, lambda values: values.narrow(dim - 1, start, length))


def selected(x: Tensor, positions: Sequence[int]) -> Tensor:
    """Return a nested tensor of some of the components."""
    if not is_jagged(x):
        return strided(values_of(x), [pieces_of(x)[k] for k in positions])
    parts = components(x)
    if not positions:
        none = values_of(x).narrow(ragged_dim_of(x) - 1, 0, 0)
        return jagged(none, offsets_for((), none.device), None, ragged_dim_of(x))
    return concatenated([parts[k] for k in positions], ragged_dim_of(x))


@rule("select")
def select(input: Tensor, dim: int, index: int) -> Tensor:
    dim = dim_of(dim, input.dim(), "select")
    if dim == 0:
        return components(input)[_chosen(input, index)]
    place = _ragged(input)
    if dim == place:
        return stack([each.select(dim - 1, index) for each in components(input)])
    return _reshaped(input, lambda values: values.select(dim - 1, index), place - (dim < place))


def _items(x: Tensor, index: Any) -> list[Any]:
    """The parts of an index, `...` replaced by slices of the dims that it stands for.

    Raises: IndexError for too many; NotImplementedError for what nested tensors are not indexed by.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    count = sum(each is not None and each is not ... for each in items)
    if count > x.dim():
        raise IndexError(f"too many indices for a nested tensor of dimension {x.dim()}")
    place = next((place for place, each in enumerate(items) if each is ...), None)
    if place is not None:
        items[place : place + 1] = [slice(None)] * (x.dim() - count)
    lists = [each for each in items if isinstance(each, (list, Tensor))]
    if len(lists) > 1 or not all(
        each is None or isinstance(each, (int, slice, list, Tensor)) and not is_nested(each) for each in items
    ):
        raise NotImplementedError(
            "nested tensors are indexed by ints, slices, None, one list or tensor of positions, or a nested mask: use x.unbind() for "
            "other indices"
        )
    return items or [slice(None)]


def _chosen(x: Tensor, item: Any) -> Any:
    """Return the position of a component, or a list of positions."""
    if item is None or isinstance(item, bool):
        unsqueeze(x, 0)  # raises the error
    if isinstance(item, int):
        if not -x.shape[0] <= item < x.shape[0]:
            raise IndexError(f"index {item} is out of bounds for dimension 0 with size {x.shape[0]}")
        return item % x.shape[0]
    return arange(x.shape[0])[item].tolist()


@rule("__getitem__")
def getitem(self: Tensor, index: Any) -> Tensor:
    """Components, parts of each component, or the elements of each where a nested mask is True."""
    if is_nested(index):
        return joined(self, [a[b] for a, b in zip(components(self), components(index), strict=True)], 1)
    first, *rest = _items(self, index)
    chosen = _chosen(self, first)
    if isinstance(chosen, int):
        return select(self, 0, chosen)[tuple(rest)]
    result = self if chosen == list(range(self.shape[0])) else selected(self, chosen)
    dim = 1
    for place, each in enumerate(rest):
        if isinstance(each, int) and not isinstance(each, bool):
            result = select(result, dim, each)
            if not is_nested(result):
                return result[(slice(None),) * dim + tuple(rest[place + 1 :])]
            continue
        if each is None:
            result = unsqueeze(result, dim)
        elif not isinstance(each, slice) or each != slice(None):
            result = _sliced(result, dim, each)
        dim += 1
    return result


@rule("__setitem__")
def setitem(self: Tensor, index: Any, value: Any) -> None:
    """Write into components. A value that is nested, or has a dim more than a component, has one for each."""
    if self.requires_grad and mode.enabled:
        raise RuntimeError("__setitem__: write with torch.no_grad() into a nested tensor that requires grad")
    targets = components(detach(self))
    places: list[int]
    indices: list[Any]
    if is_nested(index):
        places, indices = list(range(len(targets))), components(index)
    else:
        first, *rest = _items(self, index)
        chosen = _chosen(self, first)
        places = [chosen] if isinstance(chosen, int) else chosen
        indices = [tuple(rest)] * len(places)
        if isinstance(chosen, int) and isinstance(value, Tensor) and not is_nested(value):
            value = value.unsqueeze(0)
    parts = components(value) if is_nested(value) else None
    if parts is not None and len(parts) != len(places):
        raise RuntimeError(f"__setitem__: {len(parts)} components do not fit into {len(places)}")
    for count, (place, where) in enumerate(zip(places, indices, strict=True)):
        target, part = targets[place], value if parts is None else parts[count]
        if parts is None and isinstance(value, Tensor) and value.dim() > target[where].dim():
            part = value[count if value.shape[0] > 1 else 0]
        target[where] = part


def _sliced(x: Tensor, dim: int, chosen: Any) -> Tensor:
    def part(values: Tensor) -> Tensor:
        return values[(slice(None),) * (dim - 1) + (chosen,)]

    if dim == _ragged(x):
        return joined(x, [part(each) for each in components(x)])
    return _reshaped(x, part)


# ---- Joining -------------------------------------------------------------------------------------------------------------


@rule("cat")
def concatenate(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    first = tensors[0]
    if not all(
        is_nested(each) and each.layout is first.layout and each.dim() == first.dim() for each in tensors
    ):
        raise RuntimeError("cat: the tensors must be nested tensors of one layout with equally many dims")
    dim = dim_of(dim, first.dim(), "cat")
    if dim == 0:
        parts = [part for each in tensors for part in components(each)]
        return joined(first, parts)
    return _joined_by("cat", cat, tensors, dim)


@rule("stack")
def stacked(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    dim = dim_of(dim, tensors[0].dim() + 1, "stack")
    if dim == 0:
        raise RuntimeError(
            "stack(): not supported for nested tensors on dim=0: write torch.cat to have all components in one"
        )
    return _joined_by("stack", stack, tensors, dim)


def _joined_by(name: str, function: Callable, tensors: Sequence[Tensor], dim: int) -> Tensor:
    first = tensors[0]
    if any(each.shape[0] != first.shape[0] for each in tensors):
        raise RuntimeError(f"{name}: nested tensors must have equally many components")
    place = _ragged(first)
    if name == "stack" and dim <= place:
        place += 1
    if is_jagged(first) and dim != place and len({each.shape[ragged_dim_of(each)] for each in tensors}) == 1:
        return like(first, function([values_of(each) for each in tensors], dim - 1), place)
    parts = zip(*map(components, tensors), strict=True)
    return joined(first, [function(list(each), dim - 1) for each in parts], place)
