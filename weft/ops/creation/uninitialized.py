"""New memory that has no values yet. Deterministic mode fills it with NaN, the largest integer or True."""

from __future__ import annotations

from typing import Any

from ...core.dtype import DType, bool_
from ...core.filling import filling
from ...core.limits import iinfo
from ...core.spec import contiguous_spec
from ...core.storage import Storage
from ...core.tensor import make
from ..assembly.filling import fill_


def filler(dtype: DType) -> Any:
    """The number for uninitialized elements of a dtype, None if they are left as they are."""
    if not filling.enabled:
        return None
    if dtype.is_floating_point or dtype.is_complex:
        return float("nan")
    if dtype is bool_:
        return True
    return iinfo(dtype).max if dtype.is_integral else None


def fill_rest(storage: Storage, start: int, dtype: DType) -> None:
    """Fill a storage from byte `start` to its end, whatever the strides of the tensors on it."""
    value = filler(dtype)
    count = (storage.nbytes_ - start) // dtype.itemsize
    if value is not None and count > 0:
        version = storage.version
        fill_(make(storage, start, contiguous_spec((count,), dtype, storage.device)), value)
        storage.version = version  # new elements have had no values that autograd could have saved
