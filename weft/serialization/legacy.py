"""Reads and writes the formats before PyTorch 1.6: streams of pickles and storages, and tar archives of them."""

from __future__ import annotations

import io
import os
import pickle
import re
import struct
from collections.abc import Callable
from typing import Any

from ..core.device import CPU
from ..core.dtype import DType, uint8
from ..core.spec import make_spec
from ..core.storage import Storage, foreign
from ..core.tensor import Tensor
from ..ops.tensor.pickling import rebuilt
from ..ops.tensor.storage import TypedStorage
from .identity import parsed, storage_dtype
from .passes import first_pass
from .pickler import Storages, dumps
from .rebuild import MOST_DIMS
from .source import Source
from .unpickler import as_text

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
_SYSTEM = {
    "protocol_version": PROTOCOL_VERSION,
    "little_endian": True,
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}

# ---- The stream ------------------------------------------------------------------------------------------------------


def write_legacy(obj: Any, write: Callable[[Any], Any], pickle_module: Any, protocol: int) -> None:
    """Write an object as five pickles, followed by its storages, each as a number of elements and their bytes."""
    storages = Storages(lambda storage, count: str(id(storage)))

    def identity(storage: Any) -> tuple:
        return *storages.identity(storage), None

    content = [pickle.dumps(value, protocol) for value in (MAGIC, PROTOCOL_VERSION, _SYSTEM)]
    content.append(dumps(obj, protocol, identity, pickle_module))
    entries = sorted(storages, key=lambda entry: entry[0])
    content.append(pickle.dumps([key for key, _, _ in entries], protocol))
    write(b"".join(content))
    for _, storage, dtype in entries:
        on_cpu = storage.cpu()
        write(struct.pack("<q", storage.nbytes_ // (dtype or uint8).itemsize))
        if storage.nbytes_:
            write(on_cpu.bytes_().data)


def read_legacy(file: Any, restore: Callable[[Storage, str], Any], unpickle: Callable) -> Any:
    """Read an object from a stream. `unpickle(file, persistent_load)` reads one pickle."""
    magic = unpickle(file)
    if magic != MAGIC or type(magic) is not int:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = unpickle(file)
    if version != PROTOCOL_VERSION or type(version) is not int:
        raise RuntimeError("Invalid protocol version")
    system = unpickle(file)
    swap = (
        isinstance(system, dict)
        and {as_text(key): system[key] for key in system}.get("little_endian") is False
    )
    storages = _Storages(file, restore)
    start = file.tell()
    with first_pass() as left_out:
        result = unpickle(file, storages.find)
    keys = [as_text(key) for key in _list(unpickle(file))]
    if any(type(key) is not str for key in keys):
        raise pickle.UnpicklingError("the list of storages is no list of their keys")
    storages.fill(keys, swap)
    if left_out:
        end = file.tell()
        file.seek(start)
        result = unpickle(file, storages.find)
        file.seek(end)
    return result


class _Storages:
    """The storages of a stream. The pickle that refers to them comes before their bytes."""

    def __init__(self, file: Any, restore: Callable[[Storage, str], Any]):
        self.file, self.restore = file, restore
        # Maps a key to the dtype, the storage as read, and the storage after map_location.
        self.found: dict[str, tuple[DType, Storage, Storage]] = {}
        self.views: dict[str, Storage] = {}
        self.promised = 0  # bytes of the storages so far

    def find(self, identity: Any) -> Any:
        if type(identity) is tuple and identity and as_text(identity[0]) == "module":
            return identity[1]  # a class, with its source for comparison
        dtype, key, location, nbytes, (view,) = parsed(identity, extra=1)
        dtype = dtype or uint8
        if key not in self.found:
            self._promise(nbytes)
            storage = CPU.backend.allocate(nbytes)
            self.found[key] = dtype, storage, self.restore(storage, location).untyped()
        known, storage, restored = self.found[key]
        if view is not None:
            restored = self._view(restored, view, known)
        return TypedStorage(wrap_storage=restored, dtype=dtype, _internal=True)

    def _promise(self, nbytes: int) -> None:
        """Raises: EOFError if the file is too short for the storages. Called before memory is allocated for them."""
        self.promised += nbytes
        here = self.file.tell()
        size = self.file.seek(0, os.SEEK_END)
        self.file.seek(here)
        if self.promised > size - here:
            raise EOFError(
                f"the storages are said to have {self.promised} bytes, but the file ends after {size - here}"
            )

    def _view(self, root: Storage, view: Any, dtype: DType) -> Storage:
        """Return a storage on a part of another storage, given as (key, offset, number of elements)."""
        key, offset, numel = map(as_text, _parts(view, 3))
        if [*map(type, (key, offset, numel))] != [str, int, int]:
            raise pickle.UnpicklingError("the view of a storage is not (key, offset, number of elements)")
        if key not in self.views:
            self.views[key] = part(root, offset * dtype.itemsize, numel * dtype.itemsize)
        return self.views[key]

    def fill(self, keys: list[str], swap: bool) -> None:
        """Read the bytes of all storages, which are in the order of `keys`."""
        source, position = Source(self.file), 0
        if sorted(keys) != sorted(self.found):
            raise pickle.UnpicklingError("the list of storages differs from those that the pickle refers to")
        for key in keys:
            dtype, storage, restored = self.found[key]
            (numel,) = struct.unpack("<q", source.read(position, 8))
            if numel * dtype.itemsize != storage.nbytes_:
                raise RuntimeError(
                    f"storage {key} has {numel} elements of {dtype}, but the pickle says {storage.nbytes_} bytes"
                )
            if storage.nbytes_:
                source.read_into(position + 8, storage.bytes_().data)
            if swap:
                storage.byteswap(dtype)
            if restored is not storage and restored.device.backend.has_memory:
                restored.copy_(storage)
            position += 8 + storage.nbytes_
        self.file.seek(source.start + position)  # because a file may contain several objects


def part(root: Storage, start: int, nbytes: int) -> Storage:
    """Return a storage on a part of another storage.

    Raises: RuntimeError if the part exceeds the storage.
    """
    if not (0 <= start and 0 <= nbytes and start + nbytes <= root.nbytes_):
        raise RuntimeError(
            f"{nbytes} bytes from byte {start} on are no part of a storage of {root.nbytes_} bytes"
        )
    if not root.device.backend.has_memory:
        return Storage(nbytes, device=root.device)
    root.exposed = True  # so that resizing it does not free the memory that the new storage uses
    return foreign(root.ptr + start, nbytes, root)


# ---- The tar archive -------------------------------------------------------------------------------------------------

_BLOCK = 512
_MEMBERS = ("storages", "tensors", "pickle")


def is_tar(file: Any) -> bool:
    """Whether the file is an uncompressed tar archive. Only checked at the start of a file."""
    start = file.tell()
    head = file.read(_BLOCK)
    file.seek(start)
    return len(head) == _BLOCK and head[257:262] == b"ustar"


def read_tar(file: Any, restore: Callable[[Storage, str], Any], unpickle: Callable) -> Any:
    """Read the oldest format: storages, tensors, and a pickle that refers to them by numbers."""
    members = _members(Source(file))
    objects: dict[int, Any] = {}
    _read_storages(members["storages"], objects, restore, unpickle)
    _read_tensors(members["tensors"], objects, unpickle)

    def find(identity: Any) -> Any:
        if type(identity) is tuple and identity:
            return identity[0]  # a class, with its source for comparison
        key = int(identity) if type(identity) in (int, str, bytes) else None
        if key not in objects:
            raise pickle.UnpicklingError(
                "the pickle refers to a tensor or storage that the file does not have"
            )
        return objects[key]

    return unpickle(members["pickle"], find)


def _members(source: Source) -> dict[str, io.BytesIO]:
    """Return the three files of the archive.

    Python's tarfile is not used, because a malicious file can make it allocate memory or search without limit.
    Source of the layout: POSIX.1-2001, pax, "ustar Interchange Format".
    """
    found: dict[str, io.BytesIO] = {}
    position = 0
    while position + _BLOCK <= source.size:
        header = source.read(position, _BLOCK)
        if not header.strip(b"\0"):
            break
        size, start = _member_size(header), position + _BLOCK
        name = header[:100].rstrip(b"\0").decode("latin1")
        if name in _MEMBERS and header[156:157] in (b"0", b"\0"):  # the type flag of regular files
            if name in found:
                raise _damaged(f"there are two files {name!r}")
            if start + size > source.size:
                raise _damaged(f"{name!r} is said to have {size} bytes, but the file ends sooner")
            found[name] = io.BytesIO(source.read(start, size))
        position = start + size + -size % _BLOCK
    for name in _MEMBERS:
        if name not in found:
            raise RuntimeError(f"the tar archive has no file {name!r}: torch.save did not write it")
    return found


def _member_size(header: bytes) -> int:
    """Return the size of a member in bytes, from its header."""
    field = header[124:136]
    if field[0] == 0x80:  # the binary form for sizes that octal digits cannot represent
        return int.from_bytes(field[1:], "big")
    digits = re.fullmatch(rb" *([0-7]+)[ \0]*", field)
    if digits is None:
        raise _damaged(f"{field!r} is no number of bytes")
    return int(digits[1], 8)


def _damaged(reason: str) -> RuntimeError:
    return RuntimeError(f"the tar archive is damaged: {reason}")


def _read_storages(file: Any, objects: dict[int, Any], restore: Callable, unpickle: Callable) -> None:
    for _ in range(_count(unpickle(file))):
        key, location, kind = _parts(unpickle(file), 3)
        dtype = storage_dtype(kind) or uint8
        source = Source(file)
        (numel,) = struct.unpack("<q", source.read(0, 8))
        nbytes = numel * dtype.itemsize
        if not 0 <= nbytes <= source.size - 8:
            raise EOFError(
                f"a storage is said to have {nbytes} bytes, but the file ends after {source.size - 8}"
            )
        storage = CPU.backend.allocate(nbytes)
        source.read_into(8, storage.bytes_().data) if nbytes else None
        file.seek(source.start + 8 + nbytes)
        location = as_text(location)
        restored = restore(storage, location if isinstance(location, str) else "cpu").untyped()
        objects[_key(key)] = TypedStorage(wrap_storage=restored, dtype=dtype, _internal=True)
    for target, root, offset, numel in (_parts(view, 4) for view in _list(unpickle(file))):
        whole = _typed(objects, root)
        size = whole.dtype.itemsize
        view = part(whole.untyped(), _key(offset) * size, _key(numel) * size)
        objects[_key(target)] = TypedStorage(wrap_storage=view, dtype=whole.dtype, _internal=True)


def _read_tensors(file: Any, objects: dict[int, Any], unpickle: Callable) -> None:
    for _ in range(_count(unpickle(file))):
        key, storage_key, _ = _parts(unpickle(file), 3)
        storage = _typed(objects, storage_key)
        (ndim,) = struct.unpack("<i4x", _take(file, 8))  # the upper half is unused
        if not 0 <= ndim <= MOST_DIMS:
            raise RuntimeError(f"a tensor is said to have {ndim} dims")
        *numbers, offset = struct.unpack(f"<{2 * ndim + 1}q", _take(file, 16 * ndim + 8))
        if min(*numbers, offset, 0) < 0:
            raise RuntimeError("a tensor is said to have a negative size, stride or offset")
        untyped = storage.untyped()
        spec = make_spec(tuple(numbers[:ndim]), tuple(numbers[ndim:]), storage.dtype, untyped.device)
        objects[_key(key)] = rebuilt(Tensor, untyped, offset * storage.dtype.itemsize, spec, False)


def _take(file: Any, size: int) -> bytes:
    content = file.read(size)
    if len(content) != size:
        raise EOFError("the tar archive ends within a tensor")
    return content


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise pickle.UnpicklingError("the number of storages or tensors is no number")
    return value


def _key(value: Any) -> int:
    if type(value) is not int:
        raise pickle.UnpicklingError(f"a number is expected, not an object of {type(value)}")
    return value


def _typed(objects: dict[int, Any], key: Any) -> TypedStorage:
    found = objects.get(_key(key))
    if not isinstance(found, TypedStorage):
        raise pickle.UnpicklingError("the file refers to a storage that it does not have")
    return found


def _list(value: Any) -> list:
    if type(value) is not list:
        raise pickle.UnpicklingError(f"a list is expected, not an object of {type(value)}")
    return value


def _parts(value: Any, count: int) -> tuple:
    if type(value) is not tuple or len(value) != count:
        raise pickle.UnpicklingError(f"a tuple of {count} is expected, not an object of {type(value)}")
    return value
