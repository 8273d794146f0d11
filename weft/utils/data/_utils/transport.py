"""How a batch gets from a worker to the process that asked for it.

Everything is pickled. Large pieces of memory, those of tensors and NumPy arrays, stay out of the pickle: the worker
writes them to a file in shared memory, which the receiver maps and deletes. So the bytes are copied once. The receiver
maps without Python's `mmap`, which would keep a file descriptor for each batch that is alive.

    worker                             receiver
    pickle, small buffers within  -->  pipe  -->  unpickle
    large buffers  -->  /dev/shm/weft-.../n  -->  mapped: the memory of the tensors

Where there is no such file system, or it is full, all of it goes through the pipe.
"""

from __future__ import annotations

import ctypes
import functools
import io
import itertools
import mmap
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from ....core.storage import Storage, foreign
from ....core.tensor import Tensor

SHARED_MEMORY = "/dev/shm"
LARGE = 2**16  # bytes: from here on a file is quicker than the pipe
ALIGNMENT = 64

_names = itertools.count()


def new_folder() -> str | None:
    """Return an empty folder in shared memory; None where there is none."""
    try:
        return tempfile.mkdtemp(prefix=f"weft-{os.getpid()}-", dir=SHARED_MEMORY)
    except OSError:
        return None


def remove_folder(folder: str | None) -> None:
    """Remove a folder of `new_folder`, whatever workers still write to it."""
    if folder is None:
        return
    removed = folder + "-removed"
    try:
        os.rename(folder, removed)  # so that nobody can make another file in it
    except OSError:
        return  # another worker removes it
    shutil.rmtree(removed, ignore_errors=True)


def pack(batch: Any, folder: str | None) -> bytes:
    """Return the message for a batch; its large buffers go to a file in `folder`.

    Raises: RuntimeError for a tensor that is the result of recorded operations, and what pickle raises.
    """
    if folder is not None:
        buffers: list[pickle.PickleBuffer] = []
        content = _pickled(batch, functools.partial(_keep_large, buffers))
        path = os.path.join(folder, f"{os.getpid()}-{next(_names)}") if buffers else None
        try:
            if path is not None:
                _write(path, buffers)
            sizes = [buffer.raw().nbytes for buffer in buffers]
            return pickle.dumps((path, sizes)) + content
        except OSError:  # no space left
            if path is not None and os.path.exists(path):
                os.unlink(path)
    return pickle.dumps((None, [])) + _pickled(batch, None)


def unpack(message: bytes, start: int = 0) -> Any:
    """Return the batch in a message, from byte `start`; its file is gone afterwards."""
    stream = io.BytesIO(message)
    stream.seek(start)
    path, sizes = pickle.load(stream)
    return pickle.load(stream, buffers=_read(path, sizes) if path is not None else None)


def _keep_large(buffers: list[pickle.PickleBuffer], buffer: pickle.PickleBuffer) -> bool:
    """Put a large buffer aside. Returns whether it belongs into the pickle."""
    if buffer.raw().nbytes < LARGE:
        return True
    buffers.append(buffer)
    return False


def _pickled(batch: Any, buffer_callback: Callable | None) -> bytes:
    stream = io.BytesIO()
    _Pickler(stream, 5, True, buffer_callback).dump(batch)
    return stream.getvalue()


class _Pickler(ForkingPickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Storage):
            content: Any = value.bytes_()
            return _storage, (pickle.PickleBuffer(content),)
        if isinstance(value, Tensor):
            if value.requires_grad and not value.is_leaf:
                raise RuntimeError(
                    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
                    "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor "
                    "before serializing (e.g., putting it on the queue)."
                )
            if _is_small_part(value):
                return value.clone().__reduce_ex__(5)
        return NotImplemented


def _is_small_part(tensor: Tensor) -> bool:
    """Whether a plain tensor looks at little of its memory, so that the rest, say a whole dataset, can stay behind."""
    is_plain = type(tensor) is Tensor and not tensor.requires_grad and not tensor.__dict__
    return is_plain and tensor._storage.nbytes_ > max(2 * tensor.nbytes, LARGE)


def _storage(content: memoryview | bytearray) -> Storage:
    if isinstance(content, memoryview):  # mapped
        address = np.frombuffer(content, np.uint8).ctypes.data
        return foreign(address, content.nbytes, content, exposed=False)
    return Storage(np.frombuffer(content, np.uint8))


def _write(path: str, buffers: Sequence[pickle.PickleBuffer]) -> None:
    # write() reports a full file system; memory mapped there would kill the process at its first touch.
    with open(path, "xb") as file:
        for buffer in buffers:
            file.write(buffer.raw())
            file.write(bytes(-buffer.raw().nbytes % ALIGNMENT))


def _read(path: str, sizes: Sequence[int]) -> list[memoryview]:
    with open(path, "rb+") as file:
        os.unlink(path)
        size = os.fstat(file.fileno()).st_size
        try:
            whole = _mapped(file.fileno(), size)
        except OSError:  # too many mappings
            whole = memoryview(bytearray(file.read()))
    starts = itertools.accumulate((size + -size % ALIGNMENT for size in sizes), initial=0)
    return [whole[start : start + size] for start, size in zip(starts, sizes)]


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
    )  # fmt: skip
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return libc


class _Mapping:
    """Pages of a file, until this object dies."""

    address = 0

    def __init__(self, descriptor: int, size: int):
        self.libc, self.size = _libc(), size
        access = mmap.PROT_READ | mmap.PROT_WRITE
        how = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        address = self.libc.mmap(None, size, access, how, descriptor, 0)
        if address == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "mmap")
        self.address = address

    def __del__(self) -> None:
        if self.address:
            self.libc.munmap(self.address, self.size)


def _mapped(descriptor: int, size: int) -> memoryview:
    """Return the memory of a file; whatever is made of the view keeps it mapped."""
    mapping = _Mapping(descriptor, size)
    array: Any = (ctypes.c_ubyte * size).from_address(mapping.address)
    array.mapping = mapping
    return memoryview(array).cast("B")
