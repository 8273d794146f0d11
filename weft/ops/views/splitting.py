"""Ops that split a tensor along a dimension; every piece is a view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core import view_rules as rules
from ...core.arguments import integer, integers
from ...core.dtype import LEGACY_NAMES, int64
from ...core.grad_mode import mode
from ...core.op import Op
from ...core.plans import PlanCache
from ...core.public import public
from ...core.recording import record, tape
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, empty, view_of, wrap_dim
from ..assembly.filling import fill_
from ..assembly.joining import cat, stack
from .views import SELECT, SLICE

Pieces = tuple[Tensor, ...]


class _Several(Op):
    """An op that splits a tensor, recorded as one step. Its results must not be written in place, because they share one node."""

    def __init__(self, name: str, rule: Callable):
        super().__init__(name, rule)

    def run(self, input: Tensor, pieces: Pieces, *static: Any) -> Pieces:
        if mode.enabled:
            record(self, pieces, (input,), static)
        for piece in pieces:
            tape.recorded_view(piece, input, True)
        return pieces


def _stacked(ct, out, a, dim, *, specs):
    if None not in ct:
        return stack(ct, dim)
    whole = _zeros(specs[0])
    for index, each in enumerate(ct):
        if each is not None:
            SELECT(whole, dim, index).copy_(each)
    return whole


def _joined(ct, out, a, dim, *, spec, specs):
    if None not in ct:
        return cat(ct, dim)
    whole, start = _zeros(specs[0]), 0
    for each, own in zip(ct, spec, strict=True):
        end = start + own.shape[dim]
        if each is not None:
            SLICE(whole, dim, start, end, 1).copy_(each)
        start = end
    return whole


def _zeros(spec: Spec) -> Tensor:
    return fill_(empty(contiguous_spec(spec.shape, spec.dtype, spec.device)), 0)


UNBIND = _Several("unbind", _stacked)
SPLIT = _Several("split", _joined)
SPLIT_WITH_SIZES = _Several("split_with_sizes", _joined)


@public("function method")
def unbind(input: Tensor, dim: int = 0) -> Pieces:
    """A tuple of all slices along a dimension; the slices do not have this dimension.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]]).unbind(1)
    (tensor([1, 3]), tensor([2, 4]))
    """
    spec = input.spec
    dim = _dim(spec, dim)
    size = spec.shape[dim]
    if not size:
        return ()
    piece = SELECT.plans[spec, dim, 0].spec
    step = spec.stride[dim] * spec.dtype.itemsize
    start = input._byte_offset
    pieces = tuple([view_of(input, start + index * step, piece) for index in range(size)])
    return pieces if input._autograd is None else UNBIND(input, pieces, dim)


def _dim(spec: Spec, dim: int) -> int:
    if not spec.shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, len(spec.shape))


def _pieces(input: Tensor, dim: int, bounds: tuple[tuple[int, int], ...], op: _Several) -> Pieces:
    """Return the slices of `dim` between the given bounds, recorded as one step."""
    plan = _piece_plans[input.spec, dim, bounds]
    own_start = input._byte_offset
    pieces = tuple([view_of(input, own_start + start, piece) for piece, start in plan])
    return pieces if input._autograd is None else op(input, pieces, dim)


def _slices(input: Tensor, dim: int, bounds: tuple[tuple[int, int], ...]) -> Pieces:
    """The slices of `dim` between the given bounds, each recorded as a step of its own."""
    return tuple([SLICE(input, dim, start, end, 1) for start, end in bounds])


@PlanCache
def _piece_plans(spec: Spec, dim: int, bounds: tuple[tuple[int, int], ...]) -> list[tuple[Spec, int]]:
    slices = [rules.slice(spec, dim, start, end, 1) for start, end in bounds]
    return [(piece, offset * spec.dtype.itemsize) for piece, offset in slices]


def _bounds(sizes: Sequence[int]) -> tuple[tuple[int, int], ...]:
    bounds, start = [], 0
    for size in sizes:
        bounds.append((start, start + size))
        start += size
    return tuple(bounds)


@public("function")
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> Pieces:
    """Return pieces of the given size, the last one possibly smaller, or pieces of the given sizes.

    >>> import weft as torch
    >>> torch.arange(5).split(2), torch.arange(5).split([1, 4])
    ((tensor([0, 1]), tensor([2, 3]), tensor([4])), (tensor([0]), tensor([1, 2, 3, 4])))
    """
    if isinstance(split_size_or_sections, (tuple, list)):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    step = integer(split_size_or_sections, "split", "split_size_or_sections")
    return _split(tensor, step, dim)


@public("method", name="split")
def _split_method(self: Tensor, split_size: Any, dim: int = 0) -> Pieces:
    """Return pieces of the given size, the last one possibly smaller, or pieces of the given sizes."""
    return split(self, split_size, dim)


def _split(input: Tensor, step: int, dim: int) -> Pieces:
    sizes = input.spec.shape
    if not sizes:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if step < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={step}")
    dim = wrap_dim(integer(dim, "split", "dim"), len(sizes))
    size = sizes[dim]
    if step == 0 and size:
        raise RuntimeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
        )
    starts = range(0, size, step) if size else (0,)
    return _pieces(input, dim, tuple([(start, min(start + step, size)) for start in starts]), SPLIT)


@public("function method")
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> Pieces:
    """Pieces of the given sizes, which must add up to the size of the dimension."""
    if not input.spec.shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, len(input.spec.shape))
    parts = tuple(split_sizes)
    size = input.spec.shape[dim]
    if any(part < 0 for part in parts):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(parts)}"
        )
    if sum(parts) != size:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {dim}), "
            f"but got split_sizes={list(parts)}"
        )
    return _pieces(input, dim, _bounds(parts), SPLIT_WITH_SIZES)


@public("function method")
def chunk(input: Tensor, chunks: int, dim: int = 0) -> Pieces:
    """At most `chunks` pieces of equal size, the last one possibly smaller.

    >>> import weft as torch
    >>> torch.arange(5).chunk(2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    sizes = input.spec.shape
    if not sizes:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrap_dim(dim, len(sizes))
    size = sizes[dim]
    if size == 0:
        return _pieces(input, dim, ((0, 0),) * chunks, SPLIT_WITH_SIZES)
    return _split(input, -(-size // chunks), dim)


def _unsafe(name: str, safe: Callable, step: str) -> None:
    op = _Several(step, _joined)

    @public("function method", name=name, words={"safe": safe.__name__})
    def unsafe(input: Tensor, *args: Any, **kwargs: Any) -> Pieces:
        """Split as `{safe}`, but for autograd the pieces are no views: they may be written to."""
        pieces = safe(input.detach(), *args, **kwargs)
        for piece in pieces:
            piece._base = None
        dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
        return op.recorded(pieces, (input,), (dim,))


_unsafe("unsafe_split", _split_method, "unsafe_split")
_unsafe("unsafe_split_with_sizes", split_with_sizes, "unsafe_split_with_sizes")
_unsafe("unsafe_chunk", chunk, "unsafe_split")


@public("function method")
def tensor_split(
    input: Tensor,
    indices_or_sections: Any = None,
    dim: int = 0,
    *,
    indices: Any = None,
    sections: int | None = None,
    tensor_indices_or_sections: Tensor | None = None,
) -> Pieces:
    """Split into a number of pieces, whose sizes differ by at most one, or before the given indices.

    >>> import weft as torch
    >>> torch.arange(5).tensor_split(2), torch.arange(5).tensor_split((1, 3))
    ((tensor([0, 1, 2]), tensor([3, 4])), (tensor([0]), tensor([1, 2]), tensor([3, 4])))
    """
    arguments = [
        g for g in (indices_or_sections, indices, sections, tensor_indices_or_sections) if g is not None
    ]
    if len(arguments) != 1:
        raise TypeError(
            "tensor_split() received an invalid combination of arguments: give indices or sections"
        )
    where = arguments[0]
    if not input.spec.shape:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    dim = wrap_dim(dim, len(input.spec.shape))
    if isinstance(where, Tensor):
        where = _listed(where)
    if isinstance(where, (tuple, list)):
        cuts = integers((where,), "tensor_split", "indices")
        ends = (*cuts, input.spec.shape[dim])
        return _slices(input, dim, tuple(zip((0, *cuts), ends, strict=True)))
    count = integer(where, "tensor_split", "sections")
    if count <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {count}")
    size, larger = divmod(input.spec.shape[dim], count)
    return _slices(input, dim, _bounds([size + 1] * larger + [size] * (count - larger)))


def _listed(where: Tensor) -> Any:
    if where.spec.device.type != "cpu":
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to be on cpu, but it's on {where.spec.device}"
        )
    if where.spec.dtype is not int64:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
            f"{LEGACY_NAMES[where.spec.dtype]}"
        )
    if where.spec.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            f"got a tensor with {where.spec.ndim} dims"
        )
    return where.tolist()


def _along(name: str, least: int, dim: int):
    @public("function method", name=name, words={"dim": dim, "least": least})
    def split_along(input: Tensor, *args: Any, indices: Any = None, sections: int | None = None) -> Pieces:
        """Split as `tensor_split` along dimension {dim}, into sections of equal size or before indices.

        Raises: RuntimeError if the sections cannot be equal, or there are fewer than {least} dimensions.
        """
        ndim = input.spec.ndim
        if ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {ndim} "
                "dimensions!"
            )
        arguments = [each for each in (*args, indices, sections) if each is not None]
        if not arguments:
            raise TypeError(
                f"{name}() received an invalid combination of arguments: give indices or sections"
            )
        where = arguments[0] if len(arguments) == 1 else tuple(arguments)
        along = 0 if ndim == 1 else dim
        if not isinstance(where, (tuple, list)):
            count = integer(where, name, "sections")
            size = input.spec.shape[along]
            if count <= 0 or size % count:
                raise RuntimeError(
                    f"torch.{name} attempted to split along dimension {along}, but the size of the dimension {size} is "
                    f"not divisible by the split_size {count}!"
                )
        return tensor_split(input, where, along)


_along("hsplit", 1, 1)
_along("vsplit", 2, 0)
_along("dsplit", 3, 2)
