"""Reverses elements, turns them by right angles and rolls them along dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core import view_rules as rules
from ...core.arguments import integers
from ...core.layout import contiguous_format, preserve_format, strides_for
from ...core.public import public
from ...core.spec import Spec, make_spec
from ...core.tensor import Tensor, wrap_dim
from ...families.custom_vjp import custom_vjp
from ...families.rearrange import Piece, Rearrange
from ..views.views import TRANSPOSE, VIEW, owned, unsafe_view
from .copying import clone, contiguous, formatted_spec
from .joining import common_format, resolved
from .repeating import given


def _dense(spec: Spec) -> Spec:
    return formatted_spec(spec, preserve_format, spec.dtype, spec.device)


def _flip_result(specs: Sequence[Spec], dims: tuple[int, ...]) -> Spec:
    rules.distinct_dims(dims, specs[0].ndim)
    return _dense(specs[0])


def _flip_pieces(result: Spec, specs: Sequence[Spec], dims: tuple[int, ...]) -> Iterator[Piece]:
    """One view that runs backwards: negative strides, which no tensor of PyTorch has, stay within this file."""
    spec = specs[0]
    chosen = [dim for dim in rules.distinct_dims(dims, spec.ndim) if spec.shape and spec.shape[dim] > 1]
    strides = tuple(-step if dim in chosen else step for dim, step in enumerate(spec.stride))
    start = sum((spec.shape[dim] - 1) * spec.stride[dim] for dim in chosen)
    yield Piece(0, rules.moved(spec, spec.shape, strides), start, result, 0)


FLIP: Rearrange = Rearrange("flip", _flip_result, _flip_pieces, lambda ct, out, a, dims: FLIP((ct,), dims))


@public("function method")
def flip(input: Tensor, *along: Any, dims: Any = None) -> Tensor:
    """Reverse the order of the elements along the given dimensions.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]]).flip(0)
    tensor([[3, 4],
            [1, 2]])
    """
    return FLIP((input,), integers(given(along, dims, "flip", "dims"), "flip", "dims"))


@public("function method")
def fliplr(input: Tensor) -> Tensor:
    """Reverse the order of the columns.

    Raises: RuntimeError for fewer than two dims.

    >>> import weft as torch
    >>> torch.fliplr(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if input.spec.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return FLIP((input,), (1,))


@public("function method")
def flipud(input: Tensor) -> Tensor:
    """Reverse the order of the rows.

    Raises: RuntimeError for no dims.

    >>> import weft as torch
    >>> torch.flipud(torch.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if input.spec.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return FLIP((input,), (0,))


@public("function method")
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turn a tensor by `k` right angles in the plane of two dimensions, from the first towards the second.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]]).rot90()
    tensor([[2, 4],
            [1, 3]])
    """
    plane = tuple(dims)
    ndim = input.spec.ndim
    if len(plane) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(plane)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    first, second = plane
    if wrap_dim(first, ndim) == wrap_dim(second, ndim):
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {first} and dim1 = {second}"
        )
    return _rot90(input, k % 4, first, second)


def _turned_back(ct, out, a, turns, first, second):
    return _rot90(ct, -turns % 4, first, second)


@custom_vjp(_turned_back)
def _rot90(input: Tensor, turns: int, first: int, second: int) -> Tensor:
    if turns == 1:
        return owned(TRANSPOSE(FLIP((input,), (second,)), first, second))
    if turns == 2:
        return FLIP((input,), (first, second))
    if turns == 3:
        return owned(TRANSPOSE(FLIP((input,), (first,)), first, second))
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
    along = () if dims is None else integers((dims,), "roll", "dims")
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


@custom_vjp(_rolled_back, name="roll")
def _roll_flat(input: Tensor, steps: int) -> Tensor:
    return unsafe_view(ROLL((VIEW(contiguous(input), (-1,)),), steps, 0), input.spec.shape)


def _roll_halves(spec: Spec, step: int, dim: int) -> tuple[tuple[Spec, int], tuple[Spec, int]]:
    """The part that comes first in the result, and the part that comes last; the spec and where it starts."""
    start = -step % spec.shape[dim]
    return rules.slice(spec, dim, start, None, 1), rules.slice(spec, dim, 0, start, 1)


def _roll_result(specs: Sequence[Spec], step: int, dim: int) -> Spec:
    spec = specs[0]
    if spec.numel == 0:
        return _dense(spec)
    halves = [half for half, _ in _roll_halves(resolved(spec), step, wrap_dim(dim, spec.ndim))]
    return make_spec(spec.shape, strides_for(spec.shape, common_format(halves)), spec.dtype, spec.device)


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
