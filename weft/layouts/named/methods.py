"""The functions that make, change and use names."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from ...core.layout import contiguous_format
from ...core.registry import FUNCTIONS
from ...core.size import Size
from ...core.tensor import Tensor
from ...ops.tensor.printing import tensor_repr
from . import calls  # noqa: F401 (gives the rules their default)
from .indexing import indexed_names, plain_index
from .rules import NAMED
from .tensors import Names, checked_names, dim_of, named, names_of, plain, require_names, shown, take, viewed
from .unification import unified

rule = NAMED.rule


def _is_rest(name: Any) -> bool:
    return name is ... or name == "..."


def _expanded(
    given: Sequence[Any], rest: Callable[[int, int], Sequence[Any]], function: str
) -> Sequence[Any]:
    """Names with others in the place of `...`: rest(number of names before it, number after it).

    Raises: RuntimeError for more than one of them.
    """
    places = [place for place, each in enumerate(given) if _is_rest(each)]
    if not places:
        return given
    if len(places) > 1:
        raise RuntimeError(
            f"{function}: More than one Ellipsis ('...') found in names {tuple(given)}. Write it once."
        )
    place = places[0]
    after = len(given) - place - 1
    return (*given[:place], *rest(place, after), *given[place + 1 :])


def _in_place_of_rest(own: Names) -> Callable[[int, int], Names]:
    return lambda before, after: own[before : max(before, len(own) - after)]


# ---- Renaming ------------------------------------------------------------------------------------------------------------


def _renamed(self: Tensor, names: tuple, renames: dict[str, Any], function: str) -> Names:
    own = names_of(self)
    if names and renames:
        raise RuntimeError(
            f"{function}: takes names (*names) or new names for old ones (**rename_map), but not both"
        )
    if names == (None,):
        return (None,) * len(own)
    if renames:
        for old in renames:
            dim_of(old, own, function)
        return checked_names((renames.get(name, name) if name else name for name in own), len(own), function)
    return checked_names(_expanded(names, _in_place_of_rest(own), function), len(own), function)


def _view(self: Tensor) -> Tensor:
    """All of the tensor without names, as a view for autograd, so that each knows of in-place writes into the other."""
    return viewed(self).view(self.shape)


def rename(self: Tensor, *names: Any, **rename_map: Any) -> Tensor:
    """A view with other names: all of them (`...` stands for those that stay), or new ones for old ones. `rename(None)` drops them.

    >>> import weft as torch
    >>> x = torch.zeros(2, 3, names=("N", "C"))
    >>> x.rename(C="channels").names, x.rename(None).names, x.rename("A", ...).names
    (('N', 'channels'), (None, None), ('A', 'C'))
    """
    return named(_view(self), _renamed(self, names, rename_map, "rename"))


def rename_(self: Tensor, *names: Any, **rename_map: Any) -> Tensor:
    """Apply `rename` in place."""
    return take(self, plain(self), _renamed(self, names, rename_map, "rename_"))


def refine_names(self: Tensor, *names: Any) -> Tensor:
    """A view that gives names to dims without one. Dims that have names keep them.

    Raises: RuntimeError for another name of a dim that has one.

    >>> import weft as torch
    >>> torch.zeros(2, 3, 5).refine_names("N", ..., "W").names
    ('N', None, 'W')
    """
    own = names_of(self)
    given = checked_names(_expanded(names, _in_place_of_rest(own), "refine_names"), len(own), "refine_names")
    for old, new in zip(own, given, strict=True):
        if old is not None and old != new:
            raise RuntimeError(
                f"refine_names: cannot coerce Tensor{shown(own)} to Tensor{shown(given)} because '{old}' is different from '{new}': "
                f"write rename({old}='{new}')"
            )
    return named(_view(self), given)


def set_names(self: Tensor, names: Any) -> None:
    if isinstance(names, str):
        raise RuntimeError("names must either be None or a tuple of dim names")
    take(
        self,
        plain(self),
        (None,) * self.dim() if names is None else checked_names(names, self.dim(), "names"),
    )


def with_names(tensor: Tensor, names: Any) -> Tensor:
    """Return a new tensor with names.

    Raises: RuntimeError if it has others already, as a copy of a named tensor.
    """
    found = checked_names(names, tensor.dim(), "names")
    require_names(tensor, found)
    return named(plain(tensor), found)


@rule("tensor")
def tensor(data: Tensor, *, names: Any = None, **options: Any) -> Tensor:
    """Return a copy of a named tensor.

    Raises: RuntimeError for other names than it has.
    """
    result = named(FUNCTIONS["tensor"](plain(data), **options), names_of(data))
    return result if names is None else with_names(result, names)


# ---- Alignment -----------------------------------------------------------------------------------------------------------


def align_to(self: Tensor, *names: Any) -> Tensor:
    """A view whose dims stand in the order of these names; names that the tensor lacks become dims of size 1.

    `...` stands for all dims that are not mentioned, in their order.

    >>> import weft as torch
    >>> torch.zeros(2, 3, 5, names=("N", "C", "W")).align_to("W", ..., "H").names
    ('W', 'N', 'C', 'H')
    """
    own = names_of(self)
    if any(map(_is_rest, names)):
        if None in names:
            raise RuntimeError(
                f"align_to: the desired order of dimensions cannot contain a None name, got {names}"
            )
        rest = [name for name in own if name is None or name not in names]
        given = _expanded(names, lambda before, after: rest, "align_to")
        unnamed = [place for place, name in enumerate(own) if name is None]
    else:
        _require_names(own)
        given, unnamed = names, []
    checked_names(given, len(given), "align_to")
    missing = [name for name in own if name is not None and name not in given]
    if missing:
        raise RuntimeError(
            f"align_to: Cannot find dim {shown(missing)[1:-1]} of Tensor{shown(own)} among {shown(given)}. Write '...' where it belongs."
        )
    sources = iter(unnamed)
    places = [
        next(sources, None) if name is None else own.index(name) if name in own else None for name in given
    ]
    source = viewed(self).permute([place for place in places if place is not None])
    for position, place in enumerate(places):
        if place is None:
            source = source.unsqueeze(position)
    return named(source, given)


def align_as(self: Tensor, other: Tensor) -> Tensor:
    """Compute `align_to(*other.names)`.

    >>> import weft as torch
    >>> weights = torch.tensor([0.2126, 0.7152, 0.0722], names=["channels"])
    >>> image = torch.zeros(3, 5, 5, names=("channels", "rows", "columns"))
    >>> weights.align_as(image).shape
    torch.Size([3, 1, 1])
    """
    return align_to(self, *names_of(other))


def align_tensors(*tensors: Any) -> list[Tensor]:
    """Return all tensors, aligned to the names of the one with most dims."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    longest = max(given, key=lambda each: each.dim())
    return [align_as(each, longest) for each in given]


def _require_names(names: Names) -> None:
    if None in names:
        raise RuntimeError(
            f"align_to: All input dims must be named. Found unnamed dim at index {names.index(None)} of Tensor{shown(names)}. "
            "Write '...' for dims without a name."
        )


# ---- Merging and splitting dims --------------------------------------------------------------------------------------------


@rule("flatten")
def flatten(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """flatten(dims, out_dim), flatten(start, end, out_dim) by names, or flatten(start_dim, end_dim)."""
    own = names_of(input)
    if "dims" in kwargs or args and isinstance(args[0], (tuple, list)):
        dims = kwargs["dims"] if "dims" in kwargs else args[0]
        out_dim = kwargs["out_dim"] if "out_dim" in kwargs else args[-1]
        places = [dim_of(name, own, "flatten") for name in dims]
        if not places:
            raise RuntimeError("flatten(tensor, dims, out_dim): dims cannot be empty")
        if places != list(range(places[0], places[0] + len(places))):
            raise RuntimeError(
                f"flatten(tensor, dims, out_dim): dims {list(dims)} must be consecutive in Tensor{shown(own)}"
            )
        start, end = places[0], places[-1]
    else:
        given = dict(zip(("start_dim", "end_dim", "out_dim"), args, strict=False)) | kwargs
        start, end = [
            dim_of(each, own, "flatten") if isinstance(each, str) else each % max(len(own), 1)
            for each in (given.get("start_dim", 0), given.get("end_dim", -1))
        ]
        out_dim = given.get("out_dim")
    result = viewed(input).flatten(start, end)
    return named(result, checked_names((*own[:start], out_dim, *own[end + 1 :]), result.dim(), "flatten"))


@rule("unflatten")
def unflatten(
    input: Tensor, dim: Any, sizes: Any = None, names: Any = None, *, namedshape: Any = None
) -> Tensor:
    """unflatten(dim, ((name, size), ...)), or unflatten(dim, sizes), whose new dims have no names."""
    own = names_of(input)
    place = dim_of(dim, own, "unflatten") if isinstance(dim, str) else dim % len(own)
    pairs = namedshape if namedshape is not None else sizes
    if not pairs:
        raise RuntimeError("unflatten: sizes must be non-empty")
    pairs = list(pairs.items() if isinstance(pairs, dict) else pairs)
    if names is None and isinstance(pairs[0], (tuple, list)):
        names, sizes = [name for name, _ in pairs], [size for _, size in pairs]
    result = viewed(input).unflatten(place, tuple(sizes))
    between = tuple(names) if names is not None else (None,) * len(sizes)
    return named(
        result, checked_names((*own[:place], *between, *own[place + 1 :]), result.dim(), "unflatten")
    )


@rule("diagonal")
def diagonal(
    input: Tensor, offset: int = 0, dim1: Any = 0, dim2: Any = 1, *, outdim: str | None = None
) -> Tensor:
    """The diagonal of two dims, which becomes the last dim, with the name `outdim`."""
    own = names_of(input)
    first, second = (
        dim_of(each, own, "diagonal") if isinstance(each, str) else each % max(len(own), 1)
        for each in (dim1, dim2)
    )
    result = viewed(input).diagonal(offset, first, second)
    left = [name for place, name in enumerate(own) if place not in (first, second)]
    return named(result, checked_names((*left, outdim), result.dim(), "diagonal"))


# ---- Indexing --------------------------------------------------------------------------------------------------------------


@rule("__getitem__")
def getitem(self: Tensor, index: Any) -> Tensor:
    """Ints take a dim away, slices keep it, None makes a new one; a vector of indices, or a mask, keeps the name of its dim."""
    result = viewed(self)[plain_index(index)]
    return (
        named(result, names) if len(names := indexed_names(names_of(self), index)) == result.dim() else result
    )


@rule("__setitem__")
def setitem(self: Tensor, index: Any, value: Any) -> None:
    """Raises: RuntimeError if the names of the value do not fit those of `self[index]`."""
    if isinstance(value, Tensor):
        unified(indexed_names(names_of(self), index), names_of(value), "__setitem__")
        value = plain(value)
    written = plain(self)
    written[plain_index(index)] = value
    take(self, written, names_of(self))


# ---- Sizes -----------------------------------------------------------------------------------------------------------------


@rule("resize_")
def resize_(self: Tensor, *size: Any, memory_format: Any = contiguous_format) -> Tensor:
    sizes = Size(size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size)
    if sizes != self.shape:
        raise RuntimeError(
            f"Cannot resize named tensor with resize_ or resize_as_ (tried to resize Tensor{shown(names_of(self))} with size "
            f"{list(self.shape)} to {list(sizes)}). Write x.rename_(None) first."
        )
    return self


@rule("resize_as_")
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """The names are those of the template."""
    if any(names_of(self)):
        resize_(self, the_template.shape)
        require_names(self, names_of(the_template))
        return self
    return take(self, self.resize_(the_template.shape), names_of(the_template))


@rule("equal")
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether elements and names are equal."""
    return names_of(input) == names_of(other) and plain(input).equal(plain(other))


# ---- What tells of a tensor -------------------------------------------------------------------------------------------------


def has_names(self: Tensor) -> bool:
    """Whether a dim has a name."""
    return any(names_of(self))


@rule("__format__")
def _format(self: Tensor, spec: str) -> str:
    return format(plain(self), spec) if spec or not self.dim() else repr(self)


@rule("__reduce_ex__")
def _reduce(self: Tensor, protocol: Any) -> tuple:
    return named, (plain(self), names_of(self))


@rule("as_subclass")
def as_subclass(self: Tensor, cls: type) -> Tensor:
    result = plain(self).as_subclass(cls)
    result.spec = self.spec
    return result


@rule("__deepcopy__")
def _deepcopy(self: Tensor, memo: dict) -> Tensor:
    return named(copy.deepcopy(plain(self), memo), names_of(self))


@rule("__iter__")
def _iter(self: Tensor) -> Any:
    return iter(self.unbind(0))


@rule("__repr__")
def _repr(self: Tensor, *, tensor_contents: str | None = None) -> str:
    return tensor_repr(plain(self), tensor_contents=tensor_contents, names=names_of(self))


def _asking(name: str) -> Callable:
    function = vars(Tensor)[name]

    def asked(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return function(plain(self), *args, **kwargs)

    return asked


for _name in (
    "tolist item numpy __array__ is_contiguous storage untyped_storage _typed_storage data_ptr const_data_ptr storage_offset "
    "__float__ __int__ __bool__ __index__ __complex__ __contains__ __dlpack__ __dlpack_device__ __buffer__ is_pinned is_shared dim_order "
    "nbytes is_set_to"
).split():
    if _name in vars(Tensor) and not isinstance(vars(Tensor)[_name], property):
        rule(_name)(_asking(_name))


# Names themselves, which the default would drop.
for _function in (rename, rename_, refine_names, align_to, align_as, align_tensors, has_names):
    rule(_function.__name__)(_function)
rule("names")(names_of)
