"""How tensors and storages are pickled for other processes.

weft sends a descriptor of shared memory, and the tensor's metadata. The functions of PyTorch's that rebuild a tensor from other
parts take those parts.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

from weft.core.names import name_public
from weft.core.storage import Storage
from weft.core.tensor import Tensor
from weft.interop.sharing import reduce_storage, reduce_tensor
from weft.ops.creation.creation import empty, empty_strided
from weft.ops.tensor.storage import TypedStorage

__all__ = ["StorageWeakRef", "SharedCache", "reduce_storage", "reduce_tensor"]


class StorageWeakRef:
    """A reference to a storage that does not keep it alive.

    >>> import weft as torch
    >>> storage = torch.ones(2).untyped_storage()
    >>> reference = StorageWeakRef(storage)
    >>> reference.expired(), reference == StorageWeakRef(storage)
    (False, True)
    """

    __slots__ = ("cdata", "_reference")

    def __init__(self, storage: Any):
        storage = getattr(storage, "_untyped_storage", storage)
        self._reference = weakref.ref(storage)
        self.cdata = storage._cdata

    @classmethod
    def from_weakref(cls, cdata: int) -> StorageWeakRef:
        """A reference with the number of another one."""
        self = object.__new__(cls)
        self.cdata = cdata
        self._reference = None  # type: ignore[assignment]
        return self

    def expired(self) -> bool:
        """Whether the storage is gone."""
        return self._reference is None or self._reference() is None

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, StorageWeakRef) and self.cdata == other.cdata


class SharedCache(dict):
    """References to storages by what they were received as; those of storages that are gone can be dropped."""

    def free_dead_references(self) -> None:
        """Drop the references to storages that are gone."""
        for key, reference in list(self.items()):
            if reference.expired():
                del self[key]


shared_cache = SharedCache()


def storage_from_cache(cls: Any, key: Any) -> Any:
    """The storage that is known by `key`; None if there is none. weft finds its shared storages by their files."""
    reference = shared_cache.get(key)
    return None if reference is None or reference.expired() else reference._reference()


def fd_id(fd: int) -> tuple[int, int]:
    """Which file a descriptor is of."""
    status = os.fstat(fd)
    return status.st_ino, status.st_dev


def init_reductions() -> None:
    """Let multiprocessing pickle tensors by these functions; it does since `import weft`."""


def rebuild_tensor(cls: Any, storage: Any, metadata: tuple) -> Any:
    """The tensor of class `cls` on a storage, with (offset, size, stride, requires_grad)."""
    offset, size, stride, requires_grad = metadata[:4]
    untyped = getattr(storage, "_untyped_storage", storage)
    dtype = getattr(storage, "dtype", None)
    result = empty(0, dtype=dtype).set_(untyped, offset, size, stride)
    if cls is not Tensor:
        return cls(result, requires_grad=requires_grad)
    return result.requires_grad_(requires_grad)


def rebuild_meta_tensor(
    tensor_cls: Any,
    tensor_size: Any,
    tensor_stride: Any,
    tensor_offset: int,
    dtype: Any,
    storage_size_bytes: int,
    requires_grad: bool,
) -> Any:
    """A tensor of the meta device."""
    result = empty_strided(tensor_size, tensor_stride, dtype=dtype, device="meta")
    return result.requires_grad_(requires_grad) if tensor_cls is Tensor else tensor_cls(result, requires_grad)


def rebuild_storage_empty(cls: Any) -> Any:
    """An empty storage."""
    return cls()


def rebuild_typed_storage(storage: Storage, dtype: Any) -> TypedStorage:
    """A storage with a dtype."""
    return TypedStorage(wrap_storage=storage, dtype=dtype)


def reduce_typed_storage(storage: TypedStorage) -> tuple:
    """How multiprocessing pickles a storage with a dtype."""
    return rebuild_typed_storage, (storage._untyped_storage, storage.dtype)


def rebuild_typed_storage_child(storage: Storage, storage_type: Any) -> Any:
    """A storage of a class such as FloatStorage."""
    return storage_type(wrap_storage=storage)


def reduce_typed_storage_child(storage: Any) -> tuple:
    """How multiprocessing pickles a storage of a class such as FloatStorage."""
    return rebuild_typed_storage_child, (storage._untyped_storage, type(storage))


name_public(__name__)
