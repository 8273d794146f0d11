"""safetensors files, with the functions of `safetensors.torch`. Does not need the library.

Source of the layout: the description in the README of github.com/huggingface/safetensors. The files are equal,
byte for byte, to those of the library.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import weakref
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..core import dtype as _dtypes
from ..core.device import device as Device
from ..core.dtype import DType, numpy_dtype
from ..core.tensor import Tensor
from ..interop.numpy import shared_array, tensor_on
from ..serialization.atomic import replacing
from ..serialization.rebuild import MOST_DIMS
from ..serialization.source import source_of
from .damage import damaged

HEADER_LIMIT = 100_000_000  # bytes; a limit of the format
_METADATA = "__metadata__"
_PIECE = 1 << 26  # bytes per write; Ctrl-C is handled after each

# In the order in which the library writes tensors of these dtypes: the widest first, so that all are aligned.
_CODES = {
    "U64": _dtypes.uint64,
    "I64": _dtypes.int64,
    "F64": _dtypes.float64,
    "C64": _dtypes.complex64,
    "F32": _dtypes.float32,
    "U32": _dtypes.uint32,
    "I32": _dtypes.int32,
    "BF16": _dtypes.bfloat16,
    "F16": _dtypes.float16,
    "U16": _dtypes.uint16,
    "I16": _dtypes.int16,
    "F8_E5M2FNUZ": _dtypes.float8_e5m2fnuz,
    "F8_E4M3FNUZ": _dtypes.float8_e4m3fnuz,
    "F8_E4M3": _dtypes.float8_e4m3fn,
    "F8_E5M2": _dtypes.float8_e5m2,
    "I8": _dtypes.int8,
    "U8": _dtypes.uint8,
    "BOOL": _dtypes.bool_,
}
_CODE_OF = {dtype: code for code, dtype in _CODES.items()}
_RANK = {dtype: rank for rank, dtype in enumerate(_CODE_OF)}


# ---- Reading ---------------------------------------------------------------------------------------------------------


def load(data: bytes) -> dict[str, Tensor]:
    """Load tensors from the bytes of a safetensors file. The tensors are copies.

    Raises: RuntimeError if the bytes are damaged, NotImplementedError for dtypes of less than a byte.
    """
    start = 8 + _header_size(data[:8], len(data), "safetensors")
    entries = _parsed(data[8:start], len(data) - start, "safetensors")[1]
    memory = np.array(np.frombuffer(data, np.uint8, offset=start))
    return {entry.name: _tensor(memory[entry.start : entry.stop], entry) for entry in entries}


def load_file(
    filename: str | os.PathLike, device: Any = "cpu", *, backend: str = "mmap"
) -> dict[str, Tensor]:
    """Load the tensors in a file as a dict by their names.

    With the backend "mmap", the memory of tensors is the mapped file, and writes to tensors do not change the file. With
    "pread", the tensors are read at once.

    Raises: RuntimeError if the file is damaged, NotImplementedError for dtypes of less than a byte.

    >>> import os, tempfile, weft
    >>> path = os.path.join(tempfile.mkdtemp(), "t.safetensors")
    >>> weft.io.safetensors.save_file({"weight": weft.ones(2)}, path)
    >>> weft.io.safetensors.load_file(path)
    {'weight': tensor([1., 1.])}
    """
    with safe_open(filename, device=device, backend=backend) as file:
        return file.get_tensors()


class safe_open:
    """An open file whose tensors are read one by one, or by slices.

    >>> import os, tempfile, weft
    >>> path = os.path.join(tempfile.mkdtemp(), "t.safetensors")
    >>> weft.io.safetensors.save_file({"weight": weft.arange(6).view(2, 3)}, path, {"format": "pt"})
    >>> with weft.io.safetensors.safe_open(path) as file:
    ...     print(file.keys(), file.metadata(), file.get_slice("weight")[:, 1:])
    ['weight'] {'format': 'pt'} tensor([[1, 2],
            [4, 5]])
    """

    def __init__(
        self,
        filename: str | os.PathLike,
        framework: str = "pt",
        device: Any = "cpu",
        *,
        backend: str = "mmap",
    ):
        if framework not in ("pt", "torch", "pytorch"):
            raise ValueError(f"framework {framework!r}: weft reads tensors for 'pt' only")
        if backend not in ("mmap", "pread"):
            raise ValueError(f"backend is 'mmap' or 'pread', not {backend!r}")
        self._filename, self._device = filename, Device(device)
        with contextlib.ExitStack() as opened:
            file = opened.enter_context(open(filename, "rb", buffering=0))
            source = source_of(file)
            size = _header_size(source.read(0, min(8, source.size)), source.size, filename)
            self._byte_offset = 8 + size
            self._metadata, entries = _parsed(source.read(8, size), source.size - self._byte_offset, filename)
            self._entries = {entry.name: entry for entry in entries}
            # Map the open file, because the path may refer to another file later.
            self._mapped = np.memmap(file, np.uint8, "c") if backend == "mmap" else None
            self._source = source
            if backend == "pread":
                weakref.finalize(self, opened.pop_all().close)

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *exception: Any) -> None:
        """Do nothing, because tensors can still be read: the file is mapped, or stays open until this object is deleted."""

    def keys(self) -> list[str]:
        """Return the names of the tensors, sorted."""
        return sorted(self._entries)

    def offset_keys(self) -> list[str]:
        """Return the names of the tensors in the order of the file."""
        return list(self._entries)

    def metadata(self) -> dict[str, str] | None:
        """Return the metadata of the file, a dict of strings."""
        return self._metadata

    def get_tensor(self, name: str) -> Tensor:
        """Return a tensor.

        Raises: KeyError if the file has no tensor of this name.
        """
        entry = self._entry(name)
        if self._mapped is not None:
            memory = self._mapped[self._byte_offset + entry.start : self._byte_offset + entry.stop]
        else:
            memory = np.empty(entry.stop - entry.start, np.uint8)
            self._source.read_into(self._byte_offset + entry.start, memory.data)
        return _tensor(memory, entry).to(self._device)

    def get_tensors(self) -> dict[str, Tensor]:
        """Return all tensors by their names."""
        return {name: self.get_tensor(name) for name in self._entries}

    def get_slice(self, name: str) -> Slice:
        """An object for reading slices of a tensor: `file.get_slice(name)[:, 1:]`.

        Raises: KeyError if the file has no tensor of this name.
        """
        return Slice(self, self._entry(name))

    def _entry(self, name: str) -> Entry:
        if name not in self._entries:
            raise KeyError(f"{self._filename} does not contain tensor {name}")
        return self._entries[name]


class Slice:
    """A tensor in a file. Indexing reads a slice; see `safe_open.get_slice`."""

    def __init__(self, file: safe_open, entry: Entry):
        self._file, self._entry = file, entry

    def get_shape(self) -> list[int]:
        return list(self._entry.shape)

    def get_dtype(self) -> str:
        """Return the format's code for the dtype, such as "BF16"."""
        return _CODE_OF[self._entry.dtype]

    def __getitem__(self, index: Any) -> Tensor:
        return self._file.get_tensor(self._entry.name)[index]


# ---- Writing ---------------------------------------------------------------------------------------------------------


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Return the bytes of a file with these tensors.

    Raises: as `save_file`.
    """
    return b"".join(_pieces(tensors, metadata))


def save_file(
    tensors: dict[str, Tensor], filename: str | os.PathLike, metadata: dict[str, str] | None = None
) -> None:
    """Write named tensors, and metadata as strings. The file is replaced when the new one is complete.

    Raises: ValueError for tensors that are not contiguous, have no memory, or are of dtype complex32 or complex128;
    RuntimeError for tensors that overlap in memory (see `save_model`), or if the folder does not exist.
    """
    pieces = _pieces(tensors, metadata)
    with replacing(filename) as file:
        for piece in pieces:
            for start in range(0, len(piece), _PIECE):
                file.write(piece[start : start + _PIECE])


def _pieces(tensors: dict[str, Tensor], metadata: dict[str, str] | None) -> list[Any]:
    """Return the parts of a file: the header, and the memory of each tensor."""
    _check(tensors, metadata)
    header: dict[str, Any] = {} if metadata is None else {_METADATA: metadata}
    content, stop = [], 0
    for name in sorted(tensors, key=lambda name: (_RANK[tensors[name].dtype], name)):
        own = tensors[name].detach().cpu().resolve_conj().resolve_neg()
        start, stop = stop, stop + own.nbytes
        header[name] = {"dtype": _CODE_OF[own.dtype], "shape": list(own.shape), "data_offsets": [start, stop]}
        content.append(shared_array(own.reshape(-1)).view(np.uint8).data)
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return [len(text).to_bytes(8, "little"), text, *content]


def _check(tensors: Any, metadata: Any) -> None:
    if not isinstance(tensors, dict):
        raise ValueError(f"expected a dict of tensors by their names, but got {type(tensors).__name__}")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise ValueError(f"key {name!r}: expected a tensor by its name, but got {type(tensor).__name__}")
        if name == _METADATA:
            raise ValueError(f"no tensor can be called {_METADATA!r}")
        if tensor.dtype not in _CODE_OF:
            raise ValueError(f"tensor {name!r}: the format has no type for {tensor.dtype}")
        if tensor.is_meta:
            raise ValueError(f"tensor {name!r} is on the meta device: it has no elements to save")
        if not tensor.is_contiguous():
            raise ValueError(
                f"tensor {name!r} of shape {tuple(tensor.shape)} has the strides {tensor.stride()}: call .contiguous(), or "
                "save the whole tensor of which this is a part"
            )
    if metadata is not None and not all(isinstance(text, str) for item in metadata.items() for text in item):
        raise TypeError("metadata are texts by names that are texts")
    overlapping = [sorted(names) for names in _sharing(tensors) if len(names) > 1]
    if overlapping:
        raise RuntimeError(
            f"these tensors share memory, and would no more after loading: {overlapping}. save_model keeps one of each"
        )


# ---- Models ----------------------------------------------------------------------------------------------------------


def save_model(
    model: Any,
    filename: str | os.PathLike,
    metadata: dict[str, str] | None = None,
    force_contiguous: bool = True,
) -> None:
    """Write the state of a module. Of tensors that share memory only one is written, and the metadata map the others to it.

    Raises: RuntimeError if tensors overlap and none of them covers the others; otherwise as `save_file`.
    """
    state = model.state_dict()
    for kept, others in _duplicates(state).items():
        for name in others:
            metadata = {name: kept, **(metadata or {})}
            del state[name]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    save_file(dict(state), filename, metadata)


def load_model(
    model: Any,
    filename: str | os.PathLike,
    strict: bool = True,
    device: Any = "cpu",
    *,
    backend: str = "mmap",
) -> tuple[set[str], list[str]]:
    """Load a file of `save_model`. Returns the names that only the model has, and the names that only the file has.

    Raises: RuntimeError if there are such names and `strict` is set.
    """
    state = load_file(filename, device, backend=backend)
    duplicates = _duplicates(model.state_dict(), preferred=state.keys())
    missing_keys, unexpected = model.load_state_dict(state, strict=False)
    missing = set(missing_keys)
    for names in duplicates.values():
        unexpected += [name for name in names if name not in missing]
        missing -= set(names)
    if strict and (missing or unexpected):
        message = f"Error(s) in loading state_dict for {type(model).__name__}:"
        for kind, names in (("Missing", sorted(missing)), ("Unexpected", sorted(unexpected))):
            if names:
                message += f"\n    {kind} key(s) in state_dict: " + ", ".join(f'"{name}"' for name in names)
        raise RuntimeError(message)
    return missing, unexpected


def _duplicates(state: dict[str, Tensor], preferred: Collection[str] = ()) -> dict[str, list[str]]:
    """For each group of overlapping tensors, the name of the tensor to write and the names of the others."""
    found = {}
    for names in _sharing(state):
        if len(names) < 2:
            continue
        whole = sorted(name for name in names if state[name].nbytes == state[name]._storage.nbytes_)
        if not whole:
            raise RuntimeError(
                f"{sorted(names)} share memory, and none of them has all of it: which to keep is not clear"
            )
        kept = next((name for name in whole if name in preferred), whole[0])
        found[kept] = sorted(names - {kept})
    return found


def _sharing(tensors: dict[str, Tensor]) -> Iterator[set[str]]:
    """Return the names of the tensors, in groups that overlap in memory."""
    regions = defaultdict(list)
    for name, tensor in tensors.items():
        if tensor.numel() and not tensor.is_meta:
            end = tensor._byte_offset + tensor.spec.span * tensor.dtype.itemsize
            regions[tensor._storage].append((tensor._byte_offset, end, name))
    for places in regions.values():
        reached, together = 0, set[str]()
        for start, end, name in sorted(places):
            if start >= reached and together:
                yield together
                together = set()
            together.add(name)
            reached = max(reached, end)
        yield together


# ---- The header ------------------------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """Holds the entry of a tensor in the header."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    start: int  # in bytes, from the end of the header
    stop: int


def _header_size(start: bytes, size: int, where: Any) -> int:
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(HEADER_LIMIT, size - 8):
        raise damaged(where, f"a header of {length} bytes is announced, but {max(size - 8, 0)} follow")
    return length


def _parsed(header: bytes, available: int, where: Any) -> tuple[dict[str, str] | None, list[Entry]]:
    """Parse the header: the metadata, and the entries of tensors in the order of the file. Tensors have `available` bytes.

    Raises: RuntimeError unless every byte belongs to exactly one tensor.
    """
    try:
        if header[:1] != b"{":
            raise ValueError("it does not begin with {")
        content = json.loads(
            header.decode(), object_pairs_hook=_without_repetition, parse_constant=_no_constant
        )
        metadata = content.pop(_METADATA, None)
        if metadata is not None and not (type(metadata) is dict and all(map(_is_text, metadata.values()))):
            raise ValueError("the metadata are not texts")
        entries = [_entry(name, **info) for name, info in content.items()]
    except NotImplementedError:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise damaged(where, f"the header is damaged: {error}") from error
    entries.sort(key=lambda entry: (entry.start, entry.stop))
    position = 0
    for entry in entries:
        if entry.start != position:
            raise damaged(where, f"tensor {entry.name!r} begins at byte {entry.start} instead of {position}")
        position = entry.stop
    if position != available:
        raise damaged(where, f"the tensors have {position} bytes in all, but {available} are there")
    return metadata, entries


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    for name in content:
        name.encode()  # raises an error for lone surrogates
    if len(content) < len(pairs):
        raise ValueError("a name is there twice")
    return content


def _entry(name: str, dtype: Any, shape: Any, data_offsets: Any, **others: Any) -> Entry:
    """A validated entry. Unknown fields are ignored.

    Raises: ValueError or TypeError if the entry is inconsistent.
    """
    start, stop = data_offsets
    if len(shape) > MOST_DIMS:
        raise ValueError(f"tensor {name!r} has more than {MOST_DIMS} dims")
    if not isinstance(shape, list) or not all(
        type(each) is int and each >= 0 for each in (*shape, start, stop)
    ):
        raise ValueError(f"tensor {name!r}: sizes and offsets are no numbers")
    if dtype in ("F4", "F6_E2M3", "F6_E3M2", "F8_E8M0"):
        raise NotImplementedError(f"tensor {name!r} is {dtype}, which weft does not have")
    if dtype not in _CODES:
        raise ValueError(f"tensor {name!r}: unknown dtype {dtype!r:.50}")
    itemsize = _CODES[dtype].itemsize
    if math.prod(shape) * itemsize != stop - start:
        raise ValueError(f"tensor {name!r}: shape {shape} of {dtype} does not take {stop - start} bytes")
    # An empty tensor may have large sizes, but its strides must fit into 64 bits.
    if math.prod(size or 1 for size in shape) * itemsize > 2**63 - 1:
        raise ValueError(f"tensor {name!r}: shape {shape} is too large")
    return Entry(name, _CODES[dtype], tuple(shape), start, stop)


def _tensor(memory: np.ndarray, entry: Entry) -> Tensor:
    values = memory.view(numpy_dtype(entry.dtype))
    return tensor_on(values if values.flags.aligned else values.copy()).reshape(entry.shape)
