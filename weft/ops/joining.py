"""Joining tensors and rearranging their elements, which copies."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core import view_rules as rules
from ..core.arguments import integer, integers
from ..core.derivative import Derivative
from ..core.layout import MemoryFormat, contiguous_format, preserve_format, strides_for, suggested_format
from ..core.op import needs_recording, public, record, unrecorded
from ..core.promotion import common_dtype
from ..core.size import shape
from ..core.spec import Spec, contiguous_spec, spec
from ..core.tensor import Tensor, wrap_dim
from ..core.warn import warn_once
from ..families.library import tensor_of
from ..families.rearrange import Piece, Rearrange, check_tensors
from ..families.step import step
from .copying import clone, contiguous, formatted_spec
from .creation import new
from .filling import fill_
from .views import (
    CONJ,
    EXPAND,
    PERMUTE,
    SELECT,
    SLICE,
    TRANSPOSE,
    UNSAFE_VIEW,
    VIEW,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    reshape,
)

# ---- cat and stack -------------------------------------------------------------------------------------------------


def _is_legacy_empty(own: Spec) -> bool:
    """cat ignores tensors of shape (0,), whatever the shape of the others."""
    return own.shape == (0,)


def _cat_result(specs: Sequence[Spec], dim: int) -> Spec:
    for position, own in enumerate(specs):
        if not own.shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
    _check_devices(specs)
    dtype = common_dtype(specs)
    counted = [(position, own) for position, own in enumerate(specs) if not _is_legacy_empty(own)]
    if not counted:
        return contiguous_spec((0,), dtype, specs[0].device)
    first = counted[0][1]
    dim = wrap_dim(dim, first.ndim)
    for position, own in counted:
        _check_sizes(first, own, dim, position)
    sizes = list(first.shape)
    sizes[dim] = sum(own.shape[dim] for _, own in counted)
    return spec(shape(sizes), strides_for(sizes, _common_format(specs)), dtype, first.device)


def _common_format(specs: Sequence[Spec]) -> MemoryFormat:
    formats = {suggested_format(own) for own in specs}
    return formats.pop() if len(formats) == 1 else contiguous_format


def _check_devices(specs: Sequence[Spec]) -> None:
    for own in specs:
        if own.device is not specs[0].device:
            raise RuntimeError(
                f"Tensor on device {own.device} is not on the expected device {specs[0].device}!"
            )


def _check_sizes(first: Spec, own: Spec, dim: int, position: int) -> None:
    if own.ndim != first.ndim:
        raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {own.ndim}")
    for each, (expected, size) in enumerate(zip(first.shape, own.shape, strict=True)):
        if each != dim and expected != size:
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {dim}. Expected size {expected} but got size {size} "
                f"for tensor number {position} in the list.\ncat: shapes {list(first.shape)} and {list(own.shape)}"
            )


def _cat_pieces(result: Spec, specs: Sequence[Spec], dim: int) -> Iterator[Piece]:
    dim = wrap_dim(dim, result.ndim)
    at = 0
    for position, own in enumerate(specs):
        if not _is_legacy_empty(own):
            end = at + own.shape[dim]
            yield Piece(position, own, 0, *rules.slice(result, dim, at, end, 1))
            at = end


def _stack_result(specs: Sequence[Spec], dim: int) -> Spec:
    first = specs[0]
    for position, own in enumerate(specs):
        if own.shape != first.shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first.shape)} at entry 0 and "
                f"{list(own.shape)} at entry {position}"
            )
    _check_devices(specs)
    dim = wrap_dim(dim, first.ndim + 1)
    sizes = (*first.shape[:dim], len(specs), *first.shape[dim:])
    return contiguous_spec(sizes, common_dtype(specs), first.device)


def _stack_pieces(result: Spec, specs: Sequence[Spec], dim: int) -> Iterator[Piece]:
    for position, own in enumerate(specs):
        yield Piece(position, own, 0, *rules.select(result, dim, position))


def _cat_back(ct, out, *inputs, specs, static, wanted):
    (dim,) = static
    dim, at, found = wrap_dim(dim, ct.spec.ndim), 0, []
    for own, needed in zip(specs, wanted, strict=True):
        if _is_legacy_empty(own):
            found.append(ct.new_zeros((0,)) if needed else None)
            continue
        end = at + own.shape[dim]
        found.append(SLICE(ct, dim, at, end, 1) if needed else None)
        at = end
    return found


def _stack_back(ct, out, *inputs, static, wanted):
    return [SELECT(ct, static[0], position) if needed else None for position, needed in enumerate(wanted)]


CAT = Rearrange("cat", _cat_result, _cat_pieces, Derivative(joint=_cat_back))
STACK = Rearrange("stack", _stack_result, _stack_pieces, Derivative(joint=_stack_back))


def _tensor_list(tensors: Any, name: str) -> Sequence[Tensor]:
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    return tensors


@public("function", "concat", "concatenate")
def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors one behind the other along a dimension; their other sizes must be equal.

    >>> import weft as torch
    >>> torch.cat([torch.tensor([1, 2]), torch.tensor([3])])
    tensor([1, 2, 3])
    """
    if type(tensors) is not list:
        tensors = _tensor_list(tensors, "cat")
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    dim = integer(dim, "cat", "dim")
    return CAT(tensors, dim) if out is None else CAT.into(out, tensors, dim)


@public("function")
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors of equal shape along a new dimension.

    >>> import weft as torch
    >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])], 1)
    tensor([[1, 3],
            [2, 4]])
    """
    if type(tensors) is not list:
        tensors = _tensor_list(tensors, "stack")
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    dim = integer(dim, "stack", "dim")
    return STACK(tensors, dim) if out is None else STACK.into(out, tensors, dim)


def _stacker(name: str, arrange: Callable[[Tensor], Tensor], dim: int, text: str, *aliases: str) -> None:
    def stacker(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
        tensors = _tensor_list(tensors, name)
        if not tensors:
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        check_tensors(tensors)
        arranged = [arrange(tensor) for tensor in tensors]
        return cat(arranged, min(dim, arranged[0].spec.ndim - 1), out=out)

    stacker.__doc__ = text
    public("function", *aliases, name=name)(stacker)


def _as_column(input: Tensor) -> Tensor:
    return reshape(input, (input.spec.numel, 1)) if input.spec.ndim <= 1 else input


_stacker(
    "hstack", atleast_1d, 1, "The tensors side by side: along dimension 1, or 0 if that is all they have."
)
_stacker("vstack", atleast_2d, 0, "The tensors below each other; one dimension counts as a row.", "row_stack")
_stacker("dstack", atleast_3d, 2, "The tensors behind each other, along dimension 2.")
_stacker("column_stack", _as_column, 1, "The tensors side by side; one dimension counts as a column.")


@public("function")
def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given matrices on its diagonal and zeros elsewhere; fewer dimensions count as one row.

    >>> import weft as torch
    >>> torch.block_diag(torch.tensor([[1, 2]]), torch.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    check_tensors(tensors)
    for position, tensor in enumerate(tensors):
        if tensor.spec.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{position} has {tensor.spec.ndim} dimensions"
            )
    if not tensors:
        return new((1, 0), None, None)
    blocks = [atleast_2d(tensor) for tensor in tensors]
    dtype, where = common_dtype([tensor.spec for tensor in tensors]), tensors[0].spec.device
    widths = [block.spec.shape[1] for block in blocks]
    rows = []
    for position, block in enumerate(blocks):
        height = block.spec.shape[0]
        before, after = sum(widths[:position]), sum(widths[position + 1 :])
        left, right = (fill_(new((height, width), dtype, where), 0) for width in (before, after))
        rows.append(cat([left, block, right], 1))
    return cat(rows, 0)


def _given(values: tuple, keyword: Any, name: str, argument: str) -> tuple:
    """What `*values` or the keyword gives."""
    if keyword is not None:
        return (keyword,)
    if not values:
        raise TypeError(f'{name}() missing 1 required positional arguments: "{argument}"')
    return values


# ---- Repeating -----------------------------------------------------------------------------------------------------


@public("method")
def repeat(self: Tensor, *counts: Any, repeats: Any = None) -> Tensor:
    """The tensor copied so many times along each dimension; further counts add dimensions in front.

    >>> import weft as torch
    >>> torch.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    counts = integers(_given(counts, repeats, "repeat", "repeats"), "repeat", "repeats")
    return REPEAT((self,), counts)


def _repeat_result(specs: Sequence[Spec], counts: tuple[int, ...]) -> Spec:
    own = specs[0]
    if len(counts) < own.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    sizes = [count * size for count, size in zip(counts, _aligned(own, counts), strict=True)]
    if any(size < 0 for size in sizes):
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {next(s for s in sizes if s < 0)}: {sizes}"
        )
    return contiguous_spec(sizes, own.dtype, own.device)


def _aligned(own: Spec, counts: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (len(counts) - own.ndim) + tuple(own.shape)


def _repeat_pieces(result: Spec, specs: Sequence[Spec], counts: tuple[int, ...]) -> Iterator[Piece]:
    sizes = _aligned(specs[0], counts)
    apart = rules.view(specs[0], tuple(n for size in sizes for n in (1, size)))[0]
    repeated = tuple(n for count, size in zip(counts, sizes, strict=True) for n in (count, size))
    yield Piece(0, rules.expand(apart, repeated)[0], 0, rules.view(result, repeated)[0], 0)


def _repeat_back(ct, out, a, counts, *, specs):
    sizes = _aligned(specs[0], counts)
    pairs = tuple(n for count, size in zip(counts, sizes, strict=True) for n in (count, size))
    copies = tuple(2 * dim for dim, count in enumerate(counts) if count != 1)
    parts = reshape(ct, pairs)
    return reshape(parts.sum(copies) if copies else parts, specs[0].shape)


REPEAT = Rearrange("repeat", _repeat_result, _repeat_pieces, _repeat_back)


@public("function method")
def tile(input: Tensor, *counts: Any, dims: Any = None) -> Tensor:
    """Like `repeat`, but fewer counts than dimensions are taken for the last ones.

    >>> import weft as torch
    >>> torch.tensor([[1, 2]]).tile(2)
    tensor([[1, 2, 1, 2]])
    """
    counts = integers(_given(counts, dims, "tile", "dims"), "tile", "dims")
    return repeat(input, (1,) * (input.spec.ndim - len(counts)) + counts)


@public("function method")
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Every element of a dimension so many times in a row; without `dim`, of all elements.

    `repeats` is an int or an integer tensor, one count for all or one for each. Alone, the tensor of counts gives
    the indices: position i appears counts[i] times.

    >>> import weft as torch
    >>> torch.tensor([3, 4]).repeat_interleave(torch.tensor([1, 2]))
    tensor([3, 4, 4])
    """
    if repeats is None:
        return _repeated_index(input, output_size)
    if dim is None:
        input, dim = reshape(input, (-1,)), 0
    dim = wrap_dim(integer(dim, "repeat_interleave", "dim"), input.spec.ndim)
    if not isinstance(repeats, Tensor):
        return REPEAT_EACH((input,), integer(repeats, "repeat_interleave", "repeats"), dim)
    if not input.spec.shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if repeats.spec.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if input.spec.conj:  # as PyTorch does, the result stays a conjugate
        return CONJ(repeat_interleave(CONJ(input), repeats, dim, output_size=output_size))
    size = input.spec.shape[dim]
    if repeats.spec.numel == 1:
        repeats = EXPAND(reshape(repeats, (1,)), (size,))
    elif repeats.spec.shape[0] != size:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats.spec.shape[0]} and input.size({dim}) = {size}"
        )
    return input.index_select(dim, _repeated_index(repeats, output_size))


def _each_result(specs: Sequence[Spec], count: int, dim: int) -> Spec:
    own = specs[0]
    if count < 0:
        raise RuntimeError("Repeats must be non-negative")
    rules.unsqueeze(own, dim + 1)  # a 0-dim tensor has no dimension to repeat
    sizes = (*own.shape[:dim], own.shape[dim] * count, *own.shape[dim + 1 :])
    return contiguous_spec(sizes, own.dtype, own.device)


def _each_pieces(result: Spec, specs: Sequence[Spec], count: int, dim: int) -> Iterator[Piece]:
    apart = rules.unsqueeze(specs[0], dim + 1)[0]
    repeated = (*apart.shape[: dim + 1], count, *apart.shape[dim + 2 :])
    yield Piece(0, rules.expand(apart, repeated)[0], 0, rules.view(result, repeated)[0], 0)


def _each_back(ct, out, a, count, dim, *, specs):
    sizes = specs[0].shape
    return reshape(ct, (*sizes[: dim + 1], count, *sizes[dim + 1 :])).sum(dim + 1)


REPEAT_EACH = Rearrange("repeat_interleave", _each_result, _each_pieces, _each_back)
REPEAT_EACH.node_name = "ViewBackward0"  # type: ignore[attr-defined]


def _repeated_index(repeats: Tensor, output_size: int | None) -> Tensor:
    if repeats.spec.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.spec.dtype.name not in ("int32", "int64"):
        raise NotImplementedError(
            f"\"repeat_interleave_cpu\" not implemented for '{rules.LEGACY_NAMES[repeats.spec.dtype]}'"
        )
    counts = repeats.numpy()
    if (counts < 0).any():
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and counts.sum() != output_size:
        raise RuntimeError("allocated size does not match required size")
    total = sum(counts.tolist()) if len(counts) else 0
    contiguous_spec((total,), repeats.spec.dtype)  # raises if that is too large
    return tensor_of(np.repeat(np.arange(len(counts), dtype=counts.dtype), counts))


# ---- Reversing and rotating ----------------------------------------------------------------------------------------


def _dense(own: Spec) -> Spec:
    return formatted_spec(own, preserve_format, own.dtype, own.device)


def _flip_result(specs: Sequence[Spec], dims: tuple[int, ...]) -> Spec:
    rules.distinct_dims(dims, specs[0].ndim)
    return _dense(specs[0])


def _flip_pieces(result: Spec, specs: Sequence[Spec], dims: tuple[int, ...]) -> Iterator[Piece]:
    """One view that runs backwards: negative strides, which no tensor of PyTorch has, stay within this file."""
    own = specs[0]
    chosen = [dim for dim in rules.distinct_dims(dims, own.ndim) if own.shape and own.shape[dim] > 1]
    strides = tuple(-step if dim in chosen else step for dim, step in enumerate(own.stride))
    start = sum((own.shape[dim] - 1) * own.stride[dim] for dim in chosen)
    yield Piece(0, rules.moved(own, own.shape, strides), start, result, 0)


FLIP: Rearrange = Rearrange("flip", _flip_result, _flip_pieces, lambda ct, out, a, dims: FLIP((ct,), dims))


@public("function method")
def flip(input: Tensor, *along: Any, dims: Any = None) -> Tensor:
    """The elements in reverse order along the given dimensions.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]]).flip(0)
    tensor([[3, 4],
            [1, 2]])
    """
    return FLIP((input,), integers(_given(along, dims, "flip", "dims"), "flip", "dims"))


@public("function method")
def fliplr(input: Tensor) -> Tensor:
    """The columns in reverse order."""
    if input.spec.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return FLIP((input,), (1,))


@public("function method")
def flipud(input: Tensor) -> Tensor:
    """The rows in reverse order."""
    if input.spec.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return FLIP((input,), (0,))


@public("function method")
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Turned by `k` right angles in the plane of two dimensions, from the first towards the second.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]]).rot90()
    tensor([[2, 4],
            [1, 3]])
    """
    plane = integers((dims,), "rot90", "dims")
    ndim = input.spec.ndim
    if len(plane) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(plane)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    first, second = plane
    if first == second or abs(first - second) == ndim:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {first} and dim1 = {second}"
        )
    wrap_dim(first, ndim), wrap_dim(second, ndim)
    return _rot90(input, integer(k, "rot90", "k") % 4, first, second)


def _turned_back(ct, out, a, turns, first, second):
    return _rot90(ct, -turns % 4, first, second)


@step(_turned_back)
def _rot90(input: Tensor, turns: int, first: int, second: int) -> Tensor:
    if turns == 1:
        return TRANSPOSE(FLIP((input,), (second,)), first, second)
    if turns == 2:
        return FLIP((input,), (first, second))
    if turns == 3:
        return TRANSPOSE(FLIP((input,), (first,)), first, second)
    return clone(input, memory_format=contiguous_format)


@public("function method")
def roll(input: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    """The elements shifted along dimensions; those that leave at the end come back at the start.

    Without `dims`, of all elements in one row.

    >>> import weft as torch
    >>> torch.arange(4).roll(1)
    tensor([3, 0, 1, 2])
    """
    if type(shifts) is int and type(dims) is int and input.spec.shape:
        return ROLL((input,), shifts, dims)
    steps = integers((shifts,), "roll", "shifts")
    along = integers((dims,), "roll", "dims")
    if not steps:
        raise RuntimeError("`shifts` required")
    if not along and len(steps) == 1:
        return _roll_flat(input, steps[0])
    if len(steps) != len(along):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(along)}")
    if not input.spec.shape:
        raise IndexError(f"Dimension specified as {along[0]} but tensor has no dimensions")
    for shift, dim in zip(steps, along, strict=True):
        input = ROLL((input,), shift, dim)
    return input


def _rolled_back(ct, out, a, steps):
    return _roll_flat(ct, -steps)


@step(_rolled_back)
def _roll_flat(input: Tensor, steps: int) -> Tensor:
    return UNSAFE_VIEW(ROLL((VIEW(contiguous(input), (-1,)),), steps, 0), input.spec.shape)


_roll_flat.name = "roll"


def _roll_halves(own: Spec, step: int, dim: int) -> tuple[tuple[Spec, int], tuple[Spec, int]]:
    """The part that comes first in the result, and the part that comes last; the spec and where it starts."""
    start = -step % own.shape[dim]
    return rules.slice(own, dim, start, None, 1), rules.slice(own, dim, 0, start, 1)


def _roll_result(specs: Sequence[Spec], step: int, dim: int) -> Spec:
    own = specs[0]
    if own.numel == 0:
        return _dense(own)
    halves = [half for half, _ in _roll_halves(own, step, wrap_dim(dim, own.ndim))]
    return spec(own.shape, strides_for(own.shape, _common_format(halves)), own.dtype, own.device)


def _roll_pieces(result: Spec, specs: Sequence[Spec], step: int, dim: int) -> Iterator[Piece]:
    dim = wrap_dim(dim, result.ndim)
    at = 0
    for half, start in _roll_halves(specs[0], step, dim):
        end = at + half.shape[dim]
        yield Piece(0, half, start, *rules.slice(result, dim, at, end, 1))
        at = end


ROLL: Rearrange = Rearrange(
    "roll", _roll_result, _roll_pieces, lambda ct, out, a, step, dim: ROLL((ct,), -step, dim)
)


# ---- Grids and combinations ----------------------------------------------------------------------------------------


@public("function")
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of a grid: each tensor of one dimension repeated along those of the others.

    indexing: "ij" gives results of shape (len of first, len of second, ...); "xy" exchanges the first two.

    >>> import weft as torch
    >>> torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4]), indexing="ij")
    (tensor([[1, 1],
            [2, 2]]), tensor([[3, 4],
            [3, 4]]))
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    if indexing is None:
        warn_once(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
            stacklevel=3,
        )
    check_tensors(tensors)
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    _check_grid(tensors)
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    exchanged = indexing == "xy" and len(tensors) >= 2
    if exchanged:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    sizes = [tensor.spec.numel for tensor in tensors]
    grids = []
    for position, tensor in enumerate(tensors):
        own = [1] * len(sizes)
        own[position] = sizes[position]
        grids.append(EXPAND(VIEW(tensor, tuple(own)), tuple(sizes)))
    if exchanged:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def _check_grid(tensors: tuple[Tensor, ...]) -> None:
    first = tensors[0].spec
    for tensor in tensors:
        if tensor.spec.dtype is not first.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if tensor.spec.device is not first.device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
        if tensor.spec.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {list(tensor.shape)}"
            )


def _check_vector(input: Tensor) -> None:
    if input.spec.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.spec.shape)}")


@public("function")
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All tuples with one element of each tensor, as rows; one tensor is returned as it is.

    >>> import weft as torch
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    check_tensors(tensors)
    for tensor in tensors:
        _check_vector(tensor)
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(*tensors, indexing="ij")
    return stack([reshape(grid, (-1,)) for grid in grids], 1)


@public("function")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All ways to pick `r` elements in order, as rows.

    >>> import weft as torch
    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    _check_vector(input)
    r = integer(r, "combinations", "r")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return new((0,), input.spec.dtype, input.spec.device)
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    flat = itertools.chain.from_iterable(pick(range(input.spec.numel), r))
    picked = tensor_of(np.fromiter(flat, np.int64)).to(input.spec.device)
    return UNSAFE_VIEW(input.index_select(0, picked), (-1, r) if picked.spec.numel else (0, r))


# ---- Channels and pixels -------------------------------------------------------------------------------------------


class _Rearranged:
    """Dimensions taken apart, permuted and merged again, recorded as one step."""

    def __init__(self, name: str):
        self.name = name
        self.derivative = Derivative(_rearranged_back)

    def __call__(self, input: Tensor, *static: tuple[int, ...]) -> Tensor:
        with unrecorded():
            result = _rearranged(input, *static)
        return record(self, result, (input,), static) if needs_recording((input,)) else result


def _rearranged_back(ct, out, a, apart, order, sizes, *, specs):
    mixed = tuple([apart[dim] for dim in order])
    back = tuple([order.index(dim) for dim in range(len(order))])
    return reshape(PERMUTE(reshape(ct, mixed), back), specs[0].shape)


CHANNEL_SHUFFLE = _Rearranged("channel_shuffle")
PIXEL_SHUFFLE = _Rearranged("pixel_shuffle")
PIXEL_UNSHUFFLE = _Rearranged("pixel_unshuffle")


def _rearranged(
    input: Tensor, apart: tuple[int, ...], order: tuple[int, ...], sizes: tuple[int, ...]
) -> Tensor:
    """Dimensions taken apart, permuted and merged again, in the memory format of the input."""
    result = reshape(PERMUTE(reshape(input, apart), order), sizes)
    if result._storage is input._storage:
        result = clone(result, memory_format=contiguous_format)
    return contiguous(result, suggested_format(input.spec))


@public("function", "nn.functional.channel_shuffle")
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels (dimension 1), seen as `groups` rows, transposed."""
    sizes = input.spec.shape
    groups = integer(groups, "channel_shuffle", "groups")
    if len(sizes) <= 2:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(sizes)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    if sizes[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {sizes[1]} channels and {groups} groups."
        )
    apart = (sizes[0], groups, sizes[1] // groups, *sizes[2:])
    return CHANNEL_SHUFFLE(input, apart, (0, 2, 1, *range(3, len(apart))), tuple(sizes))


@public("function", "nn.functional.pixel_shuffle")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., C * r**2, H, W) -> (..., C, H * r, W * r), with r = `upscale_factor`.

    Source: Shi et al. 2016, "Real-Time Single Image and Video Super-Resolution".
    """
    *batch, channels, height, width = _image(input, "pixel_shuffle")
    r = integer(upscale_factor, "pixel_shuffle", "upscale_factor")
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    kept, n = channels // (r * r), len(batch)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return PIXEL_SHUFFLE(
        input, (*batch, kept, r, r, height, width), order, (*batch, kept, height * r, width * r)
    )


@public("function", "nn.functional.pixel_unshuffle")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(..., C, H * r, W * r) -> (..., C * r**2, H, W), with r = `downscale_factor`: the reverse of `pixel_shuffle`."""
    *batch, channels, height, width = _image(input, "pixel_unshuffle")
    r = integer(downscale_factor, "pixel_unshuffle", "downscale_factor")
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    for name, size, dim in (("height", height, -2), ("width", width, -1)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({dim})={size} is "
                f"not divisible by {r}"
            )
    n = len(batch)
    apart = (*batch, channels, height // r, r, width // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return PIXEL_UNSHUFFLE(input, apart, order, (*batch, channels * r * r, height // r, width // r))


def _image(input: Tensor, name: str) -> tuple[int, ...]:
    if input.spec.ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {input.spec.ndim} dimension(s)"
        )
    return input.spec.shape
