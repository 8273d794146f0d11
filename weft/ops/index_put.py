"""Writing to the elements that index tensors choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.dtype import LEGACY_NAMES, bool_
from ..core.op import check_recorded_write, needs_recording, public
from ..core.tensor import Tensor
from ..families.indexed import add_elements, count_true, plain, spread, unshared
from .advanced_indexing import PUT, as_positions, at, checked_index
from .basic_indexing import GETITEM
from .masking import MASKED_PUT, check_read, scalar_view
from .views import UNSQUEEZE


def without_leading_ones(value: Tensor) -> Tensor:
    """What is assigned may have more dims than its place, if they are of size 1."""
    own = value.spec
    if not own.shape or own.shape[0] != 1:
        return value
    first = next((dim for dim, size in enumerate(own.shape) if size != 1), len(own.shape))
    return GETITEM["select"](value, *[0] * first)


def write_at(
    view: Tensor, chosen: dict[int, Tensor], is_mask: bool, value: Tensor, combine: Callable | None
) -> None:
    if is_mask and combine is None and (value.spec.numel == 1 or not needs_recording((view, value))):
        write_masked(view, chosen[0], value)
        return
    positions = as_positions(view, chosen) if is_mask else chosen
    dims = tuple(sorted(positions))
    indices = [positions[dim] for dim in dims]
    if value.spec.dtype is not view.spec.dtype:
        at(view.spec, dims, *[index.spec for index in indices])  # raises what is wrong with the indices first
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{LEGACY_NAMES[view.spec.dtype]} for the destination and {LEGACY_NAMES[value.spec.dtype]} for the source."
        )
    PUT(view, indices, value, dims, combine)


def write_masked(view: Tensor, mask: Tensor, value: Tensor) -> None:
    # Where elements share memory, a kernel over all of them would put back what those outside the mask held.
    shared = view.spec.overlaps
    if value.spec.numel == 1:
        check_read(value, view.spec.dtype)
        if not shared:
            MASKED_PUT.write(view, view, mask, value.reshape(()) if value._autograd else scalar_view(value))
            return
        value = value.to(view.spec.dtype)
    if shared or value.spec.dtype is not view.spec.dtype or view.spec.conj or view.spec.neg:
        write_at(view, as_positions(view, {0: mask}), False, value, None)
        return
    count = count_true(mask)
    if value.spec.shape != (count,):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(value.spec.shape)} cannot be broadcast to indexing result of "
            f"shape [{count}]"
        )
    spread(view, unshared(mask, view), plain(unshared(value, view)).contiguous(), count)


@public("function method", name="index_put_")
def index_put_(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """Write `values`, broadcast, to the elements at `indices` (one tensor for each of the first dims), or add to them.

    With `accumulate` an element that is named twice is added to twice.

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
    # As in PyTorch, masks without dims count for nothing beside other indices. Alone, where PyTorch fails unless the
    # value has one element, such a mask chooses all or nothing.
    last = chosen.pop(dim, None)
    if not chosen and last is not None:
        view, chosen = UNSQUEEZE(input, 0), {0: last.reshape(1)}
    is_mask = len(chosen) == 1 and chosen[0].spec.dtype is bool_ and chosen[0].spec.shape == view.spec.shape
    positions = chosen if is_mask else as_positions(view, chosen)
    write_at(view, positions, is_mask, values, add_elements if accumulate else None)
    return input


@public("function method")
def index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of `input` with `values` written to, or added to, the elements at `indices`. See `index_put_`.

    >>> import weft as torch
    >>> torch.zeros(3).index_put((torch.tensor([0, 2]),), torch.tensor(1.0))
    tensor([1., 0., 1.])
    """
    return index_put_(input.clone(), indices, values, accumulate)
