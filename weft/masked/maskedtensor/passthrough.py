"""Functions that move elements: they do to the mask what they do to the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .core import _map_mt_args_kwargs, _wrap_result, is_masked_tensor

__all__: list[str] = []

PASSTHROUGH_NAMES = (
    "select transpose swapaxes swapdims split chunk tensor_split split_with_sizes t slice narrow index __getitem__ expand "
    "expand_as broadcast_to broadcast_tensors view view_as _unsafe_view _reshape_alias reshape reshape_as flatten unflatten "
    "ravel cat concat concatenate hstack vstack row_stack unsqueeze unfold stack contiguous clone detach detach_ "
    "mT.__get__ H.__get__ real real.__get__ data.__get__ to_dense _values alias im2col col2im"
).split()


def _apply_pass_through_fn(fn: Callable, *args: Any, **kwargs: Any) -> Any:
    """`fn` of MaskedTensors, alone or in lists: of their data and of their masks."""
    data = fn(*args, **kwargs)
    mask_args, mask_kwargs = _map_mt_args_kwargs(args, kwargs, _mask_of)
    return _wrap_result(data, fn(*mask_args, **mask_kwargs))


def _mask_of(value: Any) -> Any:
    return value._masked_mask if is_masked_tensor(value) else value
