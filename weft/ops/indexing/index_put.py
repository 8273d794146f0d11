"""Writes to the elements that index tensors choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.dtype import LEGACY_NAMES, bool_
from ...core.public import public
from ...core.recording import check_recorded_write, needs_recording
from ...core.spec import Spec
from ...core.tensor import Tensor
from ...families.indexed import add_elements, count_true, distinct, plain, spread
from ...families.map import apart
from ..views.views import UNSQUEEZE, VIEW
from .advanced_indexing import PUT, as_positions, at, check_mask, checked_index, only_mask
from .masking import MASKED_PUT, check_read, scalar_view


def without_leading_ones(value: Tensor) -> Tensor:
    """`value` without its first dims of size 1. As in PyTorch, an assigned tensor may have more such dims than its target."""
    spec = value.spec
    if not spec.shape or spec.shape[0] != 1:
        return value
    first = next((dim for dim, size in enumerate(spec.shape) if size != 1), len(spec.shape))
    return VIEW(value, spec.shape[first:])


def write_at(view: Tensor, chosen: dict[int, Tensor], value: Tensor, combine: Callable | None) -> None:
    """Write to the elements that index tensors and masks choose together; `chosen` has each by the dim of `view` where it begins."""
    mask = only_mask(chosen) if combine is None else None
    one = value.spec.numel == 1
    if (
        mask is not None
        and mask.spec.device is view.spec.device
        and (one or mask.spec.shape == view.spec.shape and not needs_recording((view, value)))
    ):
        write_masked(view, next(iter(chosen)), mask, value)
    else:
        _write_positions(view, as_positions(view, chosen), value, combine)


def _write_positions(
    view: Tensor, positions: dict[int, Tensor], value: Tensor, combine: Callable | None
) -> None:
    dims = tuple(sorted(positions))
    indices = [positions[dim] for dim in dims]
    if value.spec.dtype is not view.spec.dtype:
        # Raise for wrong indices before looking at the value.
        at(view.spec, dims, *[index.spec for index in indices])
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{LEGACY_NAMES[view.spec.dtype]} for the destination and {LEGACY_NAMES[value.spec.dtype]} for the source."
        )
    PUT(view, indices, value, dims, combine)


def write_masked(view: Tensor, dim: int, mask: Tensor, value: Tensor) -> None:
    """Write one element, converted, to all elements that a mask for the dims from `dim` on chooses.

    If the mask has the shape of `view`, the value may also have one element for each element that the mask chooses.
    """
    # If elements share memory, a kernel over all of them would also write the old values of elements outside the mask.
    shared = view.spec.overlaps
    if value.spec.numel == 1:
        over = _over(view.spec, dim, mask)
        check_read(value, view.spec.dtype)
        if not shared:
            value = apart(value, view)
            MASKED_PUT.write(view, view, over, value.reshape(()) if value._autograd else scalar_view(value))
            return
        value = value.to(view.spec.dtype)
    if shared or value.spec.dtype is not view.spec.dtype or view.spec.conj or view.spec.neg:
        _write_positions(view, as_positions(view, {dim: mask}), value, None)
        return
    count = count_true(mask)
    if value.spec.shape != (count,):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(value.spec.shape)} cannot be broadcast to indexing result of "
            f"shape [{count}]"
        )
    mask, value = [distinct(each, view, "index_put_") for each in (mask, value)]
    spread(view, mask, plain(value).contiguous(), count)


def _over(spec: Spec, dim: int, mask: Tensor) -> Tensor:
    """A mask for the dims from `dim` on, with dims of size 1 behind it so that it broadcasts to `view`."""
    if mask.spec.shape == spec.shape:
        return mask
    check_mask(spec, dim, mask.spec)
    behind = len(spec.shape) - dim - len(mask.spec.shape)
    return mask.reshape(*mask.spec.shape, *[1] * behind)


@public("function method", name="index_put_")
def index_put_(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """Write `values`, broadcast, to the elements at `indices` (one tensor for each of the first dims), or add to them.

    With `accumulate`, an element that is named twice gets both values.

    Raises: IndexError for indices out of range; nothing is written then.

    >>> import weft as torch
    >>> torch.zeros(3).index_put_((torch.tensor([0, 0]),), torch.tensor(1.0), accumulate=True)
    tensor([2., 0., 0.])
    """
    for position, index in enumerate(indices):
        if not isinstance(index, Tensor):
            raise TypeError(
                f"expected Tensor as element {position} in argument 0, but got {type(index).__name__}"
            )
    check_recorded_write(input, values)
    if not indices:
        raise RuntimeError("index_put_(): expected at least one index tensor, but got none")
    if len(indices) > len(input.spec.shape):
        raise IndexError(
            f"too many indices for tensor of dimension {len(input.spec.shape)} (got {len(indices)})"
        )
    view = input
    chosen: dict[int, Tensor] = {}
    dim = 0
    for index in indices:
        index = checked_index(index)
        chosen[dim] = index
        dim += len(index.spec.shape) if index.spec.dtype is bool_ else 1
    # As in PyTorch, masks without dims have no effect beside other indices. A single mask without dims chooses all elements
    # or none; there PyTorch fails unless the value has one element.
    last = chosen.pop(dim, None)
    if not chosen and last is not None:
        view, chosen = UNSQUEEZE(input, 0), {0: last.reshape(1)}
    write_at(view, chosen, values, add_elements if accumulate else None)
    return input


@public("function method")
def index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of `input` with `values` written to, or added to, the elements at `indices`. See `index_put_`.

    >>> import weft as torch
    >>> torch.zeros(3).index_put((torch.tensor([0, 2]),), torch.tensor(1.0))
    tensor([1., 0., 1.])
    """
    return index_put_(input.clone(), indices, values, accumulate)
