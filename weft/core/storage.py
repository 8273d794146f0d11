"""Storage: a block of bytes on one device, which any number of tensors share."""

from __future__ import annotations

import operator
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from .device import ACCELERATORS, CPU, accelerator, as_device, device
from .grad_mode import INFERENCE_VERSION, mode, open_inference
from .names import ROOT, set_name


class _Foreign(deque):
    """The bin of memory that weft did not allocate. It drops returned blocks, and no block in it can be resized."""

    __slots__ = ()
    size = -1


FOREIGN: Any = _Foreign(maxlen=0)
_UINT8 = np.dtype(np.uint8)
# Bytes of the object itself in `sys.getsizeof`, from which programs add up the sizes of models. It is what PyTorch's object has.
_OBJECT = 48

LENT = object()  # the owner of memory that belongs to a Storage and that an array of NumPy reads


class Storage:
    """Bytes at an address, `torch.UntypedStorage`.

    Users pass a number of bytes, or the bytes: UntypedStorage(5), UntypedStorage([1, 2, 3]). Within weft, callers pass an
    address, a size, a device and a bin. `owner` keeps memory alive that weft did not allocate (a NumPy array, a mapped file).
    Memory of weft returns to its bin of the allocator when the Storage is deleted. `version` counts writes, for autograd.
    `exposed` is True after code outside weft has got the address. `owner` is LENT while an array of NumPy reads memory of weft.

    >>> import weft as torch
    >>> torch.UntypedStorage([1, 2, 3]).nbytes()
    3
    """

    __slots__ = ("ptr", "nbytes_", "device", "bin", "owner", "version", "exposed", "__weakref__")

    is_sparse = False
    is_sparse_csr = False
    new_tensor: ClassVar[Any]  # a new object of the class of tensors on this storage, without content
    states: ClassVar[list[type[Storage]]] = []  # the classes of storages while work on them is deferred

    def __init__(
        self,
        ptr: Any = 0,
        nbytes: int | None = None,
        device: Any = CPU,
        bin: Any = FOREIGN,
        owner: Any = None,
    ):
        if nbytes is None:
            self.ptr, self.bin = 0, FOREIGN  # `__del__` needs these if the next line raises
            ptr, nbytes, device, bin, owner = _new_block(ptr, as_device(device))
        self.ptr = ptr
        self.nbytes_ = nbytes
        self.device = device
        self.bin = bin
        self.owner = owner
        self.version = INFERENCE_VERSION if open_inference and mode.inference else 0
        self.exposed = False

    def __del__(self):
        self.bin.append(self.ptr)

    def settle(self) -> None:
        """Do all deferred work that computes the bytes or reads them; `core/promised.py` defines it."""

    def detached(self) -> Storage:
        """The same memory without the history of what `vmap` maps over, see `core/batched.py`."""
        return self

    def bytes_(self) -> np.ndarray:
        """The bytes as an array on this memory, which keeps this Storage alive.

        Raises: NotImplementedError if there is no memory, RuntimeError if the host cannot reach it.
        """
        if not self.device.backend.has_memory:
            raise NotImplementedError(f"Not available for '{self.device.type}' device type")
        if not self.nbytes_:
            return np.empty(0, _UINT8)
        return self.device.backend.as_array(self, (self.nbytes_,), _UINT8, 0, None)

    def content(self) -> np.ndarray:
        """The bytes, for reading: on this memory if it is the host's, else a copy on the host.

        Raises: NotImplementedError if there is no memory.
        """
        if self.device is CPU or not self.device.backend.has_memory:
            return self.bytes_()
        return np.frombuffer(self.device.backend.read(self.ptr, self.nbytes_), _UINT8)

    def _write(self, content: Any, start: int = 0) -> None:
        """Write bytes from the host, from byte `start` on."""
        self.version += 1  # first, because a promise may read the old bytes (`core/promised.py`)
        self.device.backend.write(self.ptr + start, np.ascontiguousarray(content, _UINT8))

    # -- sizes and places ----------------------------------------------------------------------------------------------

    def nbytes(self) -> int:
        """The number of bytes."""
        return self.nbytes_

    size = nbytes
    __len__ = nbytes

    def element_size(self) -> int:
        return 1

    def data_ptr(self) -> int:
        """The address of the first byte. The memory counts as exposed from now on."""
        self.exposed = True
        return self.ptr if self.nbytes_ else 0

    @property
    def _cdata(self) -> int:
        """A number that identifies the storage."""
        return id(self)

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def is_hpu(self) -> bool:
        return self.device.type == "hpu"

    def get_device(self) -> int | None:
        """The number of the CUDA device, None elsewhere."""
        return self.device.index if self.is_cuda else None

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Whether the memory is one of the host from which an accelerator copies directly."""
        return getattr(self.owner, "pinned", False)

    def is_shared(self) -> bool:
        """Whether this memory can be shared with other processes. As in PyTorch that of an accelerator counts."""
        if self.device.type in ACCELERATORS:
            return True
        if isinstance(self.owner, np.memmap):
            return self.owner.mode == "r+"
        return getattr(self.owner, "shared", False)

    def share_memory_(self) -> Storage:
        """Move the bytes to shared memory. All tensors on this storage use the new memory. On an accelerator nothing happens.

        Raises: RuntimeError on other devices.
        """
        if self.device.type in ACCELERATORS:
            return self
        self._check_sharing("_share_fd_")
        from .shared import SharedMemory  # imported here, because only programs of several processes need it

        if not isinstance(self.owner, SharedMemory):
            memory = SharedMemory(self.nbytes_)
            self._move(foreign(memory.address, self.nbytes_, memory))
            self.exposed = True
        return self

    def _check_sharing(self, name: str) -> None:
        if self.device is not CPU:
            raise RuntimeError(f"{name}: only available on CPU")

    def _share_fd_cpu_(self) -> tuple[int, int]:
        """Move the bytes to shared memory, and return its file descriptor, which the storage keeps, and its size."""
        owner: Any = self.share_memory_().owner
        return (owner.fd, self.nbytes_) if self.nbytes_ else (-1, 0)

    def _share_filename_cpu_(self) -> NoReturn:
        """Share memory that has a name. Raises: NotImplementedError, because weft's has none."""
        self._check_sharing("_share_filename_")
        raise NotImplementedError("shared memory with a name; _share_fd_cpu_ shares a file descriptor")

    @staticmethod
    def _new_shared_fd_cpu(fd: int, size: int) -> Storage:
        """A storage on the shared memory of a file descriptor, which it closes when it is deleted."""
        from .shared import SharedMemory

        memory = SharedMemory(size, fd)
        return foreign(memory.address, size, memory)

    @staticmethod
    def _new_using_fd_cpu(size: int) -> Storage:
        """A storage in new shared memory."""
        return Storage(size).share_memory_()

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> Storage:
        """A storage that other processes can use: in new shared memory, if it is on the CPU."""
        return (
            Storage(size, device=as_device(device))
            if as_device(device) is not CPU
            else cls._new_using_fd_cpu(size)
        )

    @property
    def filename(self) -> str | None:
        """The name of the mapped file, if the memory is a mapped file."""
        return str(self.owner.filename) if isinstance(self.owner, np.memmap) else None

    def untyped(self) -> Storage:
        return self

    # -- bytes ---------------------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        """A byte, or for a slice a copy of the bytes."""
        if isinstance(index, slice):
            start, stop, step = index.indices(self.nbytes_)
            if step != 1:
                raise RuntimeError(
                    f"Trying to slice with a step of {step}, but only a step of 1 is supported"
                )
            return Storage(self.content()[start : max(stop, start)], device=self.device)
        return int(self.content()[self._position(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(value, int):
            raise RuntimeError(
                f"can only set storage content with a int types, but got {type(value).__name__} instead"
            )
        if not isinstance(index, slice):
            self._write([value % 256], self._position(index))
        elif places := range(self.nbytes_)[index]:
            first = min(places[0], places[-1])
            part = self.content()[first : max(places[0], places[-1]) + 1].copy()
            part[:: abs(places.step)] = value % 256
            self._write(part, first)

    def _position(self, index: Any) -> int:
        if not isinstance(index, int):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        if not -self.nbytes_ <= index < self.nbytes_:
            raise IndexError(f"index {index} out of range for storage of size {self.nbytes_}")
        return index % self.nbytes_

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        return self.content().tolist()

    def fill_(self, value: int) -> Storage:
        """Set all bytes to one value."""
        self._write(np.full(self.nbytes_, int(value) % 256, _UINT8))
        return self

    def copy_(self, source: Storage, non_blocking: bool | None = None) -> Storage:
        """Write the bytes of a storage of equal size.

        Raises: RuntimeError if the sizes differ.
        """
        source = source.untyped()
        if source.nbytes_ != self.nbytes_:
            raise RuntimeError(
                f"size does not match, self was {self.nbytes_} bytes but src was {source.nbytes_} bytes"
            )
        if self.device.backend.has_memory:
            self._write(source._to_copy())
        else:
            self.version += 1
        return self

    def _to_copy(self) -> np.ndarray:
        if not self.device.backend.has_memory:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        return self.content()

    def _write_file(self, file: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
        """Write the bytes to a file, after the number of elements in 8 bytes if `save_size`."""
        content = self._to_copy()
        if save_size:
            file.write((self.nbytes_ // element_size).to_bytes(8, sys.byteorder))
        file.write(content.tobytes())
        if is_real_file:
            file.flush()

    def byteswap(self, dtype: Any) -> None:
        """Reverse the bytes of every element. The two parts of a complex element are swapped separately."""
        size = dtype.to_real().itemsize
        self._write(self.content()[: self.nbytes_ // size * size].reshape(-1, size)[:, ::-1].reshape(-1))

    def lend(self) -> None:
        """Mark the storage as not resizable, because an array of NumPy reads its memory."""
        self.exposed = True
        if self.owner is None:
            self.owner = LENT

    def resizable(self) -> bool:
        """Whether the storage can be resized: not if its memory belongs to another owner, or an array of NumPy reads it."""
        return not (self.exposed and self.owner is not None)

    def resize_(self, nbytes: int) -> Storage:
        """Change the number of bytes and keep the content. All tensors on this storage use the new memory.

        The block never becomes smaller, because existing tensors may use all of it.

        Raises: RuntimeError if the storage is not resizable.
        """
        if not self.resizable():
            raise RuntimeError("Trying to resize storage that is not resizable")
        nbytes = _checked(nbytes)
        if nbytes < self.nbytes_:
            self.settle()  # what lies behind the end is not copied when the storage grows again
        if nbytes > self.bin.size:
            self._move(self.device.backend.allocate(max(nbytes, self.nbytes_)))
        self.nbytes_ = nbytes
        return self

    def _move(self, other: Storage) -> None:
        """Copy the bytes into the block of `other`, which is at least as large, and swap blocks with `other`."""
        self.device.backend.copy_bytes(other.ptr, self.ptr, self.nbytes_)
        for part in ("ptr", "bin", "owner"):  # `other` frees the old block when it is deleted
            old, new = getattr(self, part), getattr(other, part)
            setattr(self, part, new)
            setattr(other, part, old)
        if self.exposed:
            other.bin = (
                FOREIGN  # the old block is never reused, because code outside weft may still hold its address
            )

    # -- copies --------------------------------------------------------------------------------------------------------

    def new(self) -> Storage:
        return Storage(0, device=self.device)

    def clone(self) -> Storage:
        """A copy in new memory."""
        return Storage(self.nbytes_, device=self.device).copy_(self)

    def __copy__(self) -> Storage:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> Storage:
        copy = memo[id(self)] = self.clone()
        return copy

    def __reduce__(self):
        place = () if self.device is CPU else (self.device,)
        return _rebuilt, (self.content().tobytes(), *place)

    def to(self, *, device: Any, non_blocking: bool = False) -> Storage:
        """A copy on the device, or the storage itself if it is on that device."""
        where = as_device(device)
        return self if where is self.device else Storage(self.nbytes_, device=where).copy_(self)

    def cpu(self) -> Storage:
        return self.to(device=CPU)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Storage:
        """A copy on a GPU.

        Raises: an error without one.
        """
        return self.to(device=as_device("cuda" if device is None else device))

    def hpu(self, device: Any = None, non_blocking: bool = False) -> Storage:
        """A copy on a Gaudi device, which weft does not have."""
        return self.to(device=as_device("hpu" if device is None else device))

    def mps(self) -> Storage:
        """A copy on a GPU of Apple's, which weft does not have."""
        return self.to(device=as_device("mps"))

    def pin_memory(self, device: Any = "cuda") -> Storage:
        """A copy in memory that an accelerator reads directly, or the storage itself if it is there.

        Raises: RuntimeError without an accelerator, and for a storage that is not on the CPU.
        """
        if self.device is not CPU:
            raise RuntimeError(f"cannot pin '{self.device}' only dense CPU memory can be pinned")
        if self.is_pinned():
            return self
        kind = accelerator()
        if kind is None:
            raise RuntimeError("Cannot access accelerator device when none is available.")
        return as_device(kind).backend.pinned(self.nbytes_).copy_(self)

    def __sizeof__(self) -> int:
        return _OBJECT + self.nbytes_

    def __repr__(self) -> str:
        content = "..." if self.device.type == "meta" else " " + "\n ".join(map(str, self))
        return f"{content}\n[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes_}]"

    @staticmethod
    def from_file(filename: str, shared: bool = False, nbytes: int = 0) -> Storage:
        """The memory of a file; with `shared`, writes go to the file, which grows to `nbytes`."""
        if shared:
            with open(filename, "ab") as file:
                file.truncate(max(file.tell(), nbytes))
        values = np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(nbytes,) if nbytes else None)
        return foreign(values.ctypes.data, values.nbytes, values)

    @staticmethod
    def from_buffer(
        buffer: Any, byte_order: str = "", count: int = -1, offset: int = 0, *, dtype: Any
    ) -> Storage:
        """A copy of `count` elements of a buffer, from byte `offset`, brought to this machine's byte order."""
        available = memoryview(buffer).nbytes - offset
        size = dtype.itemsize
        if not byte_order and size > 1:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        if byte_order not in ("", "native", "little", "big"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        if count < 0 and available % size:
            raise ValueError(f"buffer size ({available}) must be a multiple of element size ({size})")
        nbytes = available if count < 0 else count * size
        if nbytes > available:
            raise ValueError(
                f"requested buffer length ({nbytes}) after offset {offset} exceeds the {available} bytes there are"
            )
        storage = Storage(np.frombuffer(buffer, np.uint8, nbytes, offset))
        if byte_order == "big":  # weft runs on little-endian machines only
            storage.byteswap(dtype)
        return storage


set_name(Storage, f"{ROOT}.storage", "UntypedStorage")


def _new_block(content: Any, where: device) -> tuple:
    """The parts of a Storage with new memory; `content` is a number of bytes, or the bytes."""
    if isinstance(content, (int, np.integer)):
        block = where.backend.allocate(_checked(content))
    elif isinstance(content, (Sequence, np.ndarray)):
        block = where.backend.allocate(len(content))
        if len(content) and block.device.backend.has_memory:
            values = content if isinstance(content, np.ndarray) else _as_bytes(content)
            where.backend.write(block.ptr, np.ascontiguousarray(values, _UINT8))
    else:
        raise RuntimeError(
            f"torch.UntypedStorage(): Expected a sequence type, but got {type(content).__name__}"
        )
    parts = block.ptr, block.nbytes_, block.device, block.bin, block.owner
    block.bin = FOREIGN  # so that deleting `block` does not free the memory
    return parts


def _checked(nbytes: Any) -> int:
    if isinstance(nbytes, bool) or not hasattr(nbytes, "__index__"):
        raise RuntimeError(f"resize_ expects an int, but got {type(nbytes).__name__}")
    nbytes = operator.index(nbytes)
    if nbytes < 0:
        raise RuntimeError(f"a storage cannot have a negative number of bytes: {nbytes}")
    return nbytes


def _as_bytes(content: Sequence) -> list[int]:
    for item in content:
        if not isinstance(item, int):
            raise RuntimeError(
                f"torch.UntypedStorage(): tried to construct a storage from a sequence ({type(content).__name__}), but "
                f"one of the items was of type {type(item).__name__} instead of int"
            )
    return [item % 256 for item in content]


def _rebuilt(content: bytes, where: device = CPU) -> Storage:
    return Storage(np.frombuffer(content, np.uint8), device=where)


def foreign(ptr: int, nbytes: int, owner: Any, exposed: bool = True, where: device = CPU) -> Storage:
    """A Storage over memory that weft did not allocate; `owner` keeps the memory alive."""
    storage = Storage(ptr, nbytes, where, FOREIGN, owner)
    storage.exposed = exposed
    return storage
