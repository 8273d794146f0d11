"""Reads and writes NumPy's .npy files. Source of the layout: NumPy's NEP 1."""

from __future__ import annotations

import math
import os
from typing import IO, Any, NamedTuple

import numpy as np

from ..core.dtype import from_numpy_dtype
from ..core.tensor import Tensor
from ..interop.numpy import tensor_on
from ..serialization.atomic import replacing
from .damage import damaged, reading

PIECE = 1 << 20  # bytes per read, which limits the memory for copies of decompressed data


def save_npy(tensor: Tensor, path: str | os.PathLike) -> None:
    """Write a tensor as NumPy's `np.save` does.

    Raises: TypeError for dtypes that the format does not support: bfloat16, float8, complex32.

    >>> import os, tempfile, weft
    >>> path = os.path.join(tempfile.mkdtemp(), "t.npy")
    >>> weft.io.save_npy(weft.arange(3), path)
    >>> weft.io.load_npy(path)
    tensor([0, 1, 2])
    """
    values = array_to_write(tensor)
    with replacing(path) as file:
        np.lib.format.write_array(file, values, allow_pickle=False)


def load_npy(path: str | os.PathLike, *, mmap: bool = False) -> Tensor:
    """Load the tensor in a .npy file. With `mmap`, the memory of the tensor is the mapped file.

    Writes to a mapped tensor do not change the file. Pickled objects are never loaded.

    Raises: RuntimeError if the file is damaged, TypeError if a tensor cannot represent its elements.
    """
    with open(path, "rb") as file, reading(path):
        layout = read_layout(file, path)
        start = file.tell()
        there = os.fstat(file.fileno()).st_size - start
        if there < layout.nbytes:  # checked before memory is allocated
            raise damaged(
                path,
                f"shape {layout.shape} of {layout.dtype} takes {layout.nbytes} bytes, but {there} are there",
            )
        if mmap and layout.nbytes:
            return tensor_of(np.memmap(file, np.uint8, "c", start, (layout.nbytes,)), layout)
        return tensor_of(read_bytes(file, layout.nbytes, path), layout)


class Layout(NamedTuple):
    """Holds the header of a .npy file."""

    dtype: np.dtype
    shape: tuple[int, ...]
    fortran_order: bool

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape)


def array_to_write(tensor: Any) -> np.ndarray:
    """Return the array of a tensor.

    Raises: TypeError if `tensor` is not a tensor, or if the format does not support its dtype.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"expected a tensor, but got {type(tensor).__name__}")
    if not tensor.dtype.numpy.isbuiltin == 1:
        raise TypeError(
            f"NumPy's files have no name for {tensor.dtype}: convert the tensor (t.float()), or save its bits "
            f"(t.view(torch.uint8)), or use another format"
        )
    return tensor.numpy(force=True)


def read_layout(file: Any, path: Any) -> Layout:
    """Read the header of a .npy file.

    Raises: RuntimeError or ValueError if it is damaged, TypeError if a tensor cannot represent the elements.
    """
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_2_0(file)
    else:  # version 3.0 is for field names that are not ASCII
        raise TypeError(f"{path}: version {version} of the format is for structured arrays only")
    if dtype.hasobject:
        raise TypeError(f"{path}: the file has pickled objects, which are never loaded")
    from_numpy_dtype(dtype)
    # An empty tensor may have large sizes, but its strides must fit into 64 bits.
    if min(shape, default=0) < 0 or math.prod(size or 1 for size in shape) * dtype.itemsize > 2**63 - 1:
        raise damaged(path, f"the header says shape {shape}")
    return Layout(dtype, shape, fortran_order)


def read_bytes(file: IO[bytes], nbytes: int, path: Any) -> np.ndarray:
    values = np.empty(nbytes, np.uint8)
    memory, done = values.data, 0
    while done < nbytes:
        count = file.readinto(memory[done : done + PIECE])  # type: ignore[attr-defined]
        if not count:
            raise damaged(path, f"unexpected end: {nbytes} bytes are wanted, but there are {done}")
        done += count
    return values


def tensor_of(memory: np.ndarray, layout: Layout) -> Tensor:
    """A tensor with these bytes as elements. It shares their memory if they are aligned and in native byte order."""
    values = memory.view(layout.dtype).reshape(layout.shape, order="F" if layout.fortran_order else "C")
    if not layout.dtype.isnative or not values.flags.aligned:
        values = values.astype(layout.dtype.newbyteorder("="))
    return tensor_on(values)
