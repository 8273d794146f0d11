"""Reads and writes HDF5 files through h5py: nested dicts and lists of tensors, read at once or by slices.

A dict becomes a group with the same order. A list or tuple becomes a group with the attribute `sequence` and members named
0, 1, ... A tensor becomes a dataset. bfloat16 and float8 become custom floating-point types, which other programs read as
numbers. complex32 becomes a pair (r, i) of float16, which is how h5py stores other complex numbers.
"""

from __future__ import annotations

import contextlib
import io
import math
import operator
import os
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from ..core.dtype import (
    DTYPES,
    FLOAT8,
    DType,
    bfloat16,
    complex32,
    from_numpy_dtype,
    numpy_dtype,
)
from ..core.size import Size
from ..core.tensor import Tensor
from ..interop.numpy import shared_array, tensor_on
from ..ops.views.complex_views import view_as_complex
from ..serialization.atomic import replacing
from .damage import damaged, reading
from .extras import library

SEQUENCE = "sequence"  # the attribute of a group that stands for a list
_SEQUENCES = {b"list": list, b"tuple": tuple}

# Floating-point types that NumPy lacks. The bias of the exponent and the sizes identify a type.
_CUSTOM = [dtype for dtype in DTYPES.values() if dtype in FLOAT8 or dtype is bfloat16]
_HALVES = np.dtype([("r", np.float16), ("i", np.float16)])  # complex32

# The largest ratio of content to stored bytes of a compressed dataset. It is the limit of deflate, and typical files are
# far below.
RATIO = 1032


def load_hdf5(path: str | os.PathLike, *, lazy: bool = False) -> Any:
    """Load the nested dicts and lists of tensors in an HDF5 file. All datasets must contain numbers.

    With `lazy`, each tensor is a `TensorInFile`, which reads slices on demand. A dataset with several names becomes one
    tensor. Links, virtual datasets and external storage raise an error, because they refer to other files.

    Raises: RuntimeError if the file is damaged, or if a dataset is larger than its stored bytes allow; TypeError that names
    the dataset if a tensor cannot represent it (strings, records).
    """
    h5py = library("h5py", "hdf5")
    # Pass an open file, because HDF5 may fail to close a damaged file and then confuse it with the next one.
    file = open(path, "rb")
    with reading(path), contextlib.ExitStack() as stack:
        stack.callback(file.close)
        root = stack.enter_context(h5py.File(file, "r"))
        opened = _Open() if lazy else None
        tree = _Reader(h5py, path, os.fstat(file.fileno()).st_size, opened).group(root)
        if opened is not None:
            opened.stack = stack.pop_all()
        return tree


def save_hdf5(
    tree: Mapping[str, Any] | list | tuple,
    path: str | os.PathLike,
    *,
    chunks: bool | tuple[int, ...] | None = None,
    compression: str | int | None = None,
) -> None:
    """Write nested dicts and lists of tensors to an HDF5 file.

    `chunks` (a shape, or True to let h5py choose) and `compression` ("gzip", "lzf", "szip", or a gzip level from 0 to 9)
    are passed to `h5py.Group.create_dataset` for every tensor with dimensions and elements. Tensors that share memory are
    written separately.

    Raises: TypeError or ValueError that names the position of an unsupported object; RuntimeError if the folder does not
    exist.

    >>> import os, tempfile, weft
    >>> path = os.path.join(tempfile.mkdtemp(), "t.h5")
    >>> weft.io.save_hdf5({"points": weft.ones(2, 3), "more": [weft.tensor(1)]}, path, chunks=True)
    >>> weft.io.load_hdf5(path)["more"]
    [tensor(1)]
    """
    h5py = library("h5py", "hdf5")
    options = {"chunks": chunks, "compression": compression}
    with replacing(path) as output, _Patient(output) as file:
        with h5py.File(file, "w", track_order=True) as root:
            _Writer(h5py, options).fill(root, tree)


# ---- Types -----------------------------------------------------------------------------------------------------------


def _carrier(dtype: DType) -> np.dtype:
    """The NumPy dtype for reading and writing. It is an integer dtype for types that h5py does not know."""
    if dtype in _CUSTOM:
        return np.dtype(f"u{dtype.itemsize}")
    return _HALVES if dtype is complex32 else numpy_dtype(dtype)


def _hdf5_type(h5py: Any, dtype: DType) -> Any:
    if dtype not in _CUSTOM:
        return h5py.h5t.py_create(_carrier(dtype))
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_fields(*_fields(dtype))
    kind.set_size(dtype.itemsize)
    kind.set_ebias(dtype.exponent_bias)
    return kind


def _fields(dtype: DType) -> tuple[int, int, int, int, int]:
    """The layout of the bits: sign, start and length of the exponent, start and length of the mantissa."""
    exponent, mantissa = dtype.exponent_bits, dtype.mantissa_bits
    return exponent + mantissa, mantissa, exponent, 0, mantissa


def _dtype_of(h5py: Any, dataset: Any) -> DType:
    """Return the dtype of a dataset.

    Raises: TypeError if weft has no such dtype.
    """
    kind = dataset.id.get_type()
    if isinstance(kind, h5py.h5t.TypeFloatID):
        description = kind.get_size(), kind.get_fields(), kind.get_ebias()
        for dtype in _CUSTOM:
            if description == (dtype.itemsize, _fields(dtype), dtype.exponent_bias):
                return dtype
    own = dataset.dtype.newbyteorder("=")
    if own == _HALVES:
        return complex32
    try:
        return from_numpy_dtype(own)
    except TypeError as error:
        raise TypeError(f"{dataset.name}: {error}") from None


class _Patient(io.FileIO):
    """A file for writing. It stores the first error (a full disk, Ctrl-C) and raises it after HDF5 has finished.

    HDF5 crashes if writing a compressed chunk fails.
    """

    def __init__(self, file: IO[bytes]):
        # HDF5 also reads what it has written, so open the file a second time. The file may not have a name yet.
        super().__init__(f"/proc/self/fd/{file.fileno()}" if isinstance(file.name, int) else file.name, "r+")
        self.error: BaseException | None = None

    def __exit__(self, *exception: Any) -> None:
        self.close()
        if self.error is not None:
            raise self.error

    def write(self, content: Any) -> int:
        left = memoryview(content)
        while len(left) and self.error is None:
            try:
                left = left[super().write(left) :]
            except BaseException as error:
                self.error = error
        return len(content)

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except BaseException as error:
            self.error = self.error or error
            return size or 0


# ---- Writing ---------------------------------------------------------------------------------------------------------


class _Writer:
    def __init__(self, h5py: Any, options: dict[str, Any]):
        self.h5py, self.options = h5py, options

    def fill(self, group: Any, tree: Any) -> None:
        if isinstance(tree, Mapping):
            items = tree
        elif isinstance(tree, (list, tuple)):
            group.attrs[SEQUENCE] = np.bytes_("tuple" if isinstance(tree, tuple) else "list")
            items = {str(index): value for index, value in enumerate(tree)}
        else:
            raise TypeError(
                f"{group.name}: expected a dict or list of tensors, but got {type(tree).__name__}"
            )
        for name, value in items.items():
            if not isinstance(name, str) or name in ("", ".") or "/" in name or "\0" in name:
                raise ValueError(f"{group.name}: {name!r} cannot be a name in an HDF5 file")
            if isinstance(value, Tensor):
                self.add(group, name, value)
            else:
                self.fill(group.create_group(name, track_order=True), value)

    def add(self, group: Any, name: str, tensor: Tensor) -> None:
        kind = _hdf5_type(self.h5py, tensor.dtype)
        # Scalars and empty tensors have no chunks.
        options = self.options if tensor.dim() and tensor.numel() else {}
        dataset = group.create_dataset(name, tuple(tensor.shape), self.h5py.Datatype(kind), **options)
        if tensor.numel():
            own = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
            everything = self.h5py.h5s.ALL
            dataset.id.write(everything, everything, shared_array(own).view(_carrier(own.dtype)), kind)


# ---- Reading ---------------------------------------------------------------------------------------------------------


class _Open:
    """Closes a file when the last tensor in it is deleted."""

    stack: contextlib.ExitStack | None = None

    def __del__(self):
        if self.stack is not None:
            self.stack.close()


class TensorInFile:
    """A tensor in a file. Indexing, as in `tensor[2:, 0]`, reads a slice.

    Indices are integers, slices with positive steps and an Ellipsis. The file stays open until its last tensor is
    deleted.
    """

    def __init__(self, h5py: Any, dataset: Any, path: Any, opened: _Open | None):
        self._h5py, self._dataset, self._opened = h5py, dataset, opened
        self._where = f"{path}: {dataset.name}"
        self.dtype = _dtype_of(h5py, dataset)
        self.shape = Size(dataset.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Tensor:
        starts, counts, steps, shape = _hyperslab(index, self.shape)
        values = np.empty(counts, _carrier(self.dtype))
        if values.size:
            with reading(self._where):
                self._read(values, starts, steps)
        if self.dtype is complex32:
            return view_as_complex(tensor_on(values.view(np.float16).reshape(*shape, 2)))
        return tensor_on(values.view(numpy_dtype(self.dtype)).reshape(shape))

    def _read(self, values: np.ndarray, starts: tuple, steps: tuple) -> None:
        h5s = self._h5py.h5s
        memory = space = h5s.ALL
        if self.shape:
            memory, space = h5s.create_simple(values.shape), self._dataset.id.get_space()
            space.select_hyperslab(starts, values.shape, steps)
        self._dataset.id.read(memory, space, values, _hdf5_type(self._h5py, self.dtype))

    def __repr__(self) -> str:
        return f"TensorInFile({self._where}, shape={tuple(self.shape)}, dtype={self.dtype})"


def _hyperslab(index: Any, shape: Size) -> tuple[tuple, tuple, tuple, tuple]:
    """The start, count and step of an index in each dimension, and the shape of the result."""
    given = index if isinstance(index, tuple) else (index,)
    dots = [place for place, each in enumerate(given) if each is Ellipsis]
    if len(given) - len(dots) > len(shape) or len(dots) > 1:
        raise IndexError(f"too many indices for a tensor of {len(shape)} dimensions: {index!r}")
    place = dots[0] if dots else len(given)
    missing = len(shape) - (len(given) - len(dots))
    taken = [*given[:place], *[slice(None)] * missing, *given[place + 1 :]]
    ranges, kept = [], []
    for each, size in zip(taken, shape):
        if isinstance(each, slice):
            if each.step is not None and operator.index(each.step) <= 0:
                raise ValueError("step must be greater than zero")
            ranges.append(range(size)[each])
            kept.append(len(ranges[-1]))
        else:
            number = operator.index(each)
            if not -size <= number < size:
                raise IndexError(f"index {number} is out of bounds for a dimension of size {size}")
            ranges.append(range(size)[number % size :][:1])
    starts, counts, steps = (
        zip(*((each.start, len(each), each.step) for each in ranges)) if ranges else ((),) * 3
    )
    return starts, counts, steps, tuple(kept)


class _Reader:
    def __init__(self, h5py: Any, path: Any, size: int, opened: _Open | None):
        self.h5py, self.path, self.size = h5py, path, size
        self.opened = opened  # None unless tensors are lazy
        # By address, because an object may have many names, and the tree of names may be infinite or exponentially large.
        self.found: dict[int, Any] = {}

    def group(self, group: Any) -> Any:
        names = list(group)
        for name in names:
            if not isinstance(group.get(name, getlink=True), self.h5py.HardLink):
                raise damaged(
                    self.path,
                    f"{group.name.rstrip('/')}/{name} is a link to another place, which is not followed",
                )
        members = {name: self.member(group[name]) for name in names}
        sequence = group.attrs.get(SEQUENCE)
        if isinstance(sequence, bytes) and sequence in _SEQUENCES:
            return _SEQUENCES[sequence](members[str(index)] for index in range(len(members)))
        return members

    def member(self, member: Any) -> Any:
        address = self.h5py.h5o.get_info(member.id).addr
        if address not in self.found:
            self.found[address] = None  # until it is read
            self.found[address] = self.new_member(member)
        if self.found[address] is None:
            raise damaged(self.path, f"group {member.name} contains itself")
        return self.found[address]

    def new_member(self, member: Any) -> Any:
        if isinstance(member, self.h5py.Group):
            return self.group(member)
        if not isinstance(member, self.h5py.Dataset) or member.shape is None:
            raise TypeError(f"{member.name} has no elements: it is no tensor")
        self.check(member)
        tensor = TensorInFile(self.h5py, member, self.path, self.opened)
        return tensor[...] if self.opened is None else tensor

    def check(self, dataset: Any) -> None:
        """Raises: RuntimeError if a dataset refers to other files, or has more elements than its stored bytes allow."""
        if dataset.is_virtual or dataset.external:
            raise damaged(
                self.path, f"the elements of {dataset.name} are in other files, which are not opened"
            )
        stored = min(dataset.id.get_storage_size(), self.size)
        limit = stored * (RATIO if dataset.id.get_create_plist().get_nfilters() else 1)
        itemsize = dataset.id.get_type().get_size()
        for what, shape in (("chunks", dataset.chunks if stored else None), ("shape", dataset.shape)):
            # A lazy tensor may be larger, because only slices are read.
            if what == "shape" and self.opened is not None:
                continue
            if shape and math.prod(shape) * itemsize > limit:
                raise damaged(
                    self.path,
                    f"{dataset.name}: {what} {shape} of {itemsize} bytes each, but {stored} bytes are stored. If the "
                    "rest was never written, or compresses that well, load slices with lazy=True",
                )
