"""`segment_reduce`: reductions of segments, which are runs of neighbours along a dim."""

from __future__ import annotations

import math
from typing import Any

from ...core.dtype import LEGACY_NAMES, int64
from ...core.public import public
from ...core.tensor import Tensor, wrap_dim
from ..creation.creation import full
from ..creation.ranges import arange
from ..tensor.node_names import with_node_name

# The names of `reduce`, and the result for an empty segment.
_KINDS = {
    "sum": ("sum", 0.0),
    "mean": ("mean", 0.0),
    "prod": ("prod", 1.0),
    "max": ("amax", -math.inf),
    "amax": ("amax", -math.inf),
    "min": ("amin", math.inf),
    "amin": ("amin", math.inf),
}


@public("function", "_segment_reduce")
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """Return the "sum", "mean", "prod", "max" or "min" of each segment along `axis`.

    Shapes: data [*batch, size, ...] with lengths [*batch, n], or offsets [*batch, n + 1] of where segments begin and the
    last one ends -> [*batch, n, ...]. initial: takes part in each segment, and is the result of those without elements.

    >>> import weft as torch
    >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "sum", lengths=torch.tensor([2, 1]))
    tensor([3., 3.])
    """
    if reduce not in _KINDS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    axis = wrap_dim(axis, data.dim())
    _check(data, lengths, indices, offsets, axis)
    starts, counts = _segments(data, lengths, offsets, unsafe)
    if not data.is_floating_point():
        raise NotImplementedError(
            f"\"_segment_reduce_cpu\" not implemented for '{LEGACY_NAMES[data.spec.dtype]}'"
        )
    rows, segments = _members(data, starts, counts)
    kind, empty = _KINDS[reduce]
    if initial is not None and kind in ("sum", "mean"):
        empty = initial
    behind = data.shape[axis + 1 :]
    nothing = full((counts.numel(), *behind), empty, dtype=data.dtype, device=data.device)
    if kind in ("sum", "mean"):
        result = nothing.index_add(0, segments, rows)
    else:
        result = nothing.index_reduce(0, segments, rows, kind, include_self=False)
        if initial is not None:
            result = {"prod": result.mul, "amax": result.clamp_min, "amin": result.clamp_max}[kind](initial)
    if kind == "mean":
        sizes = counts.flatten().view(-1, *[1] * len(behind))
        result = result / sizes.clamp(min=initial is not None)  # without an initial value, 0 / 0
    return with_node_name(result.view((*counts.shape, *behind)), "SegmentReduceBackward0")


def _check(
    data: Tensor, lengths: Tensor | None, indices: Tensor | None, offsets: Tensor | None, axis: int
) -> None:
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    bounds, name = (offsets, "offsets") if lengths is None else (lengths, "lengths")
    if bounds is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if axis != bounds.dim() - 1:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}."
        )
    if data.shape[:axis] != bounds.shape[:axis]:
        raise RuntimeError(
            f"segment_reduce(): {name} {list(bounds.shape)} do not fit the first dims of data {list(data.shape)}"
        )
    if bounds.is_floating_point() or bounds.is_complex():
        raise NotImplementedError(
            f"\"_segment_reduce_{name}_cpu_kernel1\" not implemented for '{LEGACY_NAMES[bounds.spec.dtype]}'"
        )


def _segments(
    data: Tensor, lengths: Tensor | None, offsets: Tensor | None, unsafe: bool
) -> tuple[Tensor, Tensor]:
    """Where segments begin, and how many elements they have.

    Raises: RuntimeError for segments that do not lie within data.
    """
    if lengths is None:
        assert offsets is not None
        starts, counts = offsets[..., :-1].to(int64), offsets.to(int64).diff()
    else:
        counts = lengths.to(int64)
        starts = counts.cumsum(-1) - counts
    size = data.shape[counts.dim() - 1]
    if counts.numel():
        if counts.min() < 0:
            raise RuntimeError("lengths contains negative value!")
        if starts.min() < 0 or (starts + counts).max() > size:
            raise RuntimeError(
                f"segment_reduce(): segments end behind the {size} elements, or begin before the first"
            )
    if lengths is not None and not unsafe and not (counts.sum(-1) == size).all():
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
        )
    return starts, counts


def _members(data: Tensor, starts: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """The elements of all segments one after the other, and the number of the segment that each belongs to."""
    axis = counts.dim() - 1
    size, n = data.shape[axis], counts.shape[-1]
    flat = data.flatten(0, axis)
    counts = counts.flatten()
    batch = arange(counts.numel(), device=data.device) // max(n, 1)
    shift = starts.flatten() + batch * size - (counts.cumsum(0) - counts)
    segments = arange(counts.numel(), device=data.device).repeat_interleave(counts)
    places = shift.repeat_interleave(counts) + arange(segments.numel(), device=data.device)
    return flat.index_select(0, places), segments
