"""`torch.storage`: the classes of storages."""

import io
from typing import Any

from weft.core.dtype import DType
from weft.core.storage import Storage as UntypedStorage
from weft.ops.tensor.storage import LEGACY, TypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]

_StorageBase = UntypedStorage  # the only class of storages that is derived from it in PyTorch


def _dtype_to_storage_type_map() -> dict[DType, str]:
    """The names of the typed storages by their dtypes: "FloatStorage" of torch.float32."""
    return {kind.dtype: name for name, kind in LEGACY.items()}


def _storage_type_to_dtype_map() -> dict[str, DType]:
    """The dtypes of the typed storages by their names."""
    return {name: dtype for dtype, name in _dtype_to_storage_type_map().items()}


def _load_from_bytes(b: bytes) -> Any:
    """The storage in the bytes of an archive: what pickles that PyTorch's tensors write by `pickle.dump` call.

    The bytes hold a storage and nothing else, so they are read without running code.
    """
    from weft.serialization import load  # loaded when first used

    return load(io.BytesIO(b), weights_only=True)
