"""Reduces bags of embeddings: the sum, mean or maximum of several rows of a table each."""

from __future__ import annotations

import math
import warnings

from ...core.dtype import LEGACY_NAMES, float32, int32, int64
from ...core.promotion import promote_types
from ...core.public import public
from ...core.tensor import Tensor
from ...core.warn import user_level
from ..creation.creation import zeros
from ..creation.ranges import arange
from ..indexing.gather import embedding
from ..tensor.node_names import with_node_name


@public(name="nn.functional.embedding_bag")
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum (`mode`) of the rows of `weight` whose numbers are in each bag; 0 for an empty bag.

    Shapes: input [B, n] -> [B, features], a bag in each row; or [n] with offsets [B], where each bag begins (with
    include_last_offset [B + 1], where the last is n). padding_idx: the number of a row that bags leave out.
    per_sample_weights, of input's shape: factors of the rows, in a sum.
    """
    if weight.dtype is int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=user_level(),
        )
        input, weight = weight, input
    _check(input, weight, offsets, per_sample_weights, mode, scale_grad_by_freq, sparse)
    input = input if offsets is None else input.to(promote_types(input.dtype, offsets.dtype))
    padding_idx = _row(padding_idx, weight.size(0))
    try:
        rows = embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    except IndexError as error:
        if max_norm is not None:  # PyTorch looks up the rows first, because `max_norm` scales them down
            raise
        outside = input.masked_select((input < 0) | (input >= weight.size(0)))
        raise RuntimeError(
            f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {int(outside[0])}, which is not in "
            f"the valid range [0, {weight.size(0)})"
        ) from error
    counted = None if padding_idx is None else input != padding_idx
    if per_sample_weights is not None:
        if rows.dtype.itemsize < 4:  # because PyTorch rounds a sum of products of narrow floats once
            rows, per_sample_weights = rows.to(float32), per_sample_weights.to(float32)
        rows = rows * per_sample_weights.unsqueeze(-1)
    bags = _bags(rows, counted, offsets, include_last_offset, mode).to(weight.dtype)
    return with_node_name(bags, "EmbeddingBagBackward0")


def _bags(
    rows: Tensor, counted: Tensor | None, offsets: Tensor | None, include_last_offset: bool, mode: str
) -> Tensor:
    if offsets is None:
        return _reduced(rows, counted, mode)
    starts = offsets[:-1] if include_last_offset else offsets
    has_values = offsets.spec.device.backend.has_memory
    if has_values:
        _check_offsets(offsets.tolist(), rows.size(0))
    sizes = _sizes(offsets, rows.size(0), include_last_offset)
    if mode == "max" and has_values:  # without values, sums have the same shape
        return _reduced(*_padded(rows, counted, starts, sizes), mode)
    return _added(rows, counted, sizes, mode)


def _reduced(rows: Tensor, counted: Tensor | None, mode: str) -> Tensor:
    """Return bags of one size. Shapes: rows [B, n, features], counted [B, n] -> [B, features]."""
    if counted is None:
        if mode == "max" and rows.size(1):
            return rows.max(1).values
        return rows.mean(1) if mode == "mean" and rows.size(1) else rows.sum(1)
    ignored = ~counted.unsqueeze(-1)
    if mode == "max":
        found = rows.masked_fill(ignored, -math.inf)
        empty = ignored.all(1)
        return (found.max(1).values if rows.size(1) else found.sum(1)).masked_fill(empty, 0)
    total = rows.masked_fill(ignored, 0).sum(1)
    return total / counted.sum(1, keepdim=True).clamp(min=1) if mode == "mean" else total


def _padded(rows: Tensor, counted: Tensor | None, starts: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the bags side by side, filled up to the largest, and which of their rows count."""
    largest = int(sizes.max()) if sizes.numel() else 0
    steps = arange(largest, device=rows.device)
    valid = steps < sizes.unsqueeze(1)
    places = (starts.to(int64).unsqueeze(1) + steps).masked_fill(~valid, 0)
    return rows[places], valid if counted is None else valid & counted[places]


def _added(rows: Tensor, counted: Tensor | None, sizes: Tensor, mode: str) -> Tensor:
    """Return bags of any sizes, one after another. Shapes: rows [n, features] -> [B, features]."""
    count = None if sizes.spec.device.backend.has_memory else rows.size(0)
    bags = arange(sizes.numel(), device=rows.device).repeat_interleave(sizes, output_size=count)
    rows = rows[: bags.numel()]
    counts = sizes
    if counted is not None:
        counted = counted[: bags.numel()]
        rows = rows.masked_fill(~counted.unsqueeze(-1), 0)
        counts = zeros(sizes.numel(), dtype=int64, device=rows.device).index_add(0, bags, counted.to(int64))
    dtype = rows.dtype
    if dtype.itemsize < 4:  # because PyTorch rounds a sum of narrow floats once
        rows = rows.to(float32)
    start = zeros(sizes.numel(), rows.size(1), dtype=rows.dtype, device=rows.device)
    total = start.index_add(0, bags, rows)
    return (total / counts.clamp(min=1).unsqueeze(1) if mode == "mean" else total).to(dtype)


# ---- Arguments -----------------------------------------------------------------------------------------------------


def _row(padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {padding_idx}"
        )
    return padding_idx % rows


def _sizes(offsets: Tensor, count: int, include_last_offset: bool) -> Tensor:
    """How many rows each bag has."""
    end = offsets.new_tensor([] if include_last_offset else [count])
    return offsets.diff(append=end).to(int64)


def _check_offsets(values: list[int], count: int) -> None:
    """Raises: RuntimeError for offsets that do not begin at 0, fall, or exceed the number of rows."""
    if values and values[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {values[0]}"
        )
    if values and values[-1] > count:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of {values[-1]}"
        )
    if any(low > high for low, high in zip(values, values[1:])):
        raise RuntimeError(f"offsets must not fall, but are {values}")


def _check(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None,
    per_sample_weights: Tensor | None,
    mode: str,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> None:
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same "
            f"shape as the input ({input.shape})"
        )
    if input.dim() not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if input.dim() == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
            f"sequences. However, found offsets of type {type(offsets)}"
        )
    if input.dim() == 1 and not isinstance(offsets, Tensor):
        raise ValueError(f"offsets has to be a 1D Tensor but got {offsets}")
    if offsets is not None and offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    # input and offsets may have different dtypes if they promote to int32 or int64.
    dtype = input.dtype if offsets is None else promote_types(input.dtype, offsets.dtype)
    if dtype not in (int32, int64):
        raise RuntimeError(
            "Expected tensor for argument 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{LEGACY_NAMES[dtype]} instead (while checking arguments for embedding_bag)"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode has to be one of sum, mean or max, not {mode}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}')."
        )
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            f"Expected tensor for argument #1 'weight' to have the same type as 'per_sample_weights', but {weight.dtype} "
            f"does not equal {per_sample_weights.dtype} (while checking arguments for embedding_bag)"
        )
    if not weight.is_floating_point():
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, "
            f"Double; but got torch.{LEGACY_NAMES[weight.dtype]}Tensor instead (while checking arguments for embedding_bag)"
        )
