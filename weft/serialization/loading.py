"""Defines `torch.load`."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core.device import CPU, device
from ..core.dtype import DType, uint8
from ..core.storage import Storage, foreign
from ..core.warn import user_level
from ..ops.tensor.storage import TypedStorage
from . import names
from .archive import CRC_IN_ENTRY, Reader
from .identity import parsed
from .legacy import is_tar, read_legacy, read_tar
from .locations import MAP_LOCATION, FileLike, is_meta, restorer
from .options import MAP_SHARED, is_big_endian, local, options
from .source import Source, source_of
from .unpickler import Unpickler, unsafe_globals

READABLE_VERSION = 10
MAPPED_ALIGNMENT = (
    16  # bytes; the largest element size. A record with less alignment is copied instead of mapped
)


def load(
    f: FileLike,
    map_location: MAP_LOCATION = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """The object that `torch.save` wrote to a file, in any of PyTorch's formats.

    `f` is a path, or a file object that can seek. `map_location` sets the device of storages: a device, a dict of
    locations, or a function of a storage and its location. With `mmap` the memory of tensors is the mapped file, and
    checksums are not verified. The file may contain tensors, plain containers, and objects that
    `torch.serialization.add_safe_globals` allows. With `weights_only=False` the file can run any code.

    Raises: pickle.UnpicklingError for pickles that are damaged or not allowed, RuntimeError for archives that are
    damaged or not checkpoints, EOFError for truncated files, OSError if the file cannot be read.
    """
    if weights_only is None:
        weights_only = pickle_module is None
    if os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in ("1", "y", "yes", "true"):
        weights_only = True
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if pickle_load_args and weights_only:
        warnings.warn(
            "pickle_load_args only works if `weights_only=False`.", UserWarning, stacklevel=user_level()
        )
    if not weights_only:
        warnings.warn(
            "torch.load with weights_only=False runs whatever code the file contains: do it only if you trust the file",
            UserWarning,
            stacklevel=user_level(),
        )
    encoding = pickle_load_args.pop("encoding", "utf-8")
    with _opened(f, for_writing=bool(mmap) and _shares_mappings()) as file:
        unpickle: Callable = (
            _Safe(encoding)
            if weights_only
            else _Trusting(pickle_module or pickle, encoding, pickle_load_args)
        )
        if _is_zipfile(file):
            mapped = _mapping(f, file) if mmap else None
            with _advising():
                return _load_archive(source_of(file), map_location, unpickle, mapped)
        if mmap:
            raise RuntimeError(
                "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True)`, please "
                "torch.save your checkpoint with this option in order to use mmap."
            )
        read = read_tar if is_tar(file) else read_legacy
        # Unpickling reads many small pieces, so read from a buffer.
        buffered = io.BufferedReader(file) if isinstance(file, io.FileIO) else file
        with _advising():
            if weights_only and read is read_legacy:
                _check_start(file)
            return read(buffered, restorer(map_location), unpickle)


def get_unsafe_globals_in_checkpoint(f: FileLike) -> list[str]:
    """The globals in a file that `load` would reject, as "module.name". Does not run the pickle.

    Raises: ValueError if the file does not have the current format of `torch.save`.
    """
    with _opened(f) as file:
        if not _is_zipfile(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        archive = Reader(source_of(file))
        if "constants.pkl" in archive:
            raise ValueError(
                "Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint"
            )
        return unsafe_globals(io.BytesIO(archive.read("data.pkl")))


# ---- Files -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(f: Any, for_writing: bool = False) -> Iterator[Any]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, "r+b" if for_writing else "rb", buffering=0) as file:
            yield file
        return
    try:
        f.seek(f.tell())
    except (io.UnsupportedOperation, AttributeError) as error:
        raise type(error)(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer "
            "like io.BytesIO and try to load from it instead."
        ) from None
    yield f


def _is_zipfile(file: Any) -> bool:
    """Whether the file is a zip archive from its current position on."""
    start = file.tell()
    signature = file.read(4)
    file.seek(start)
    return signature == b"PK\3\4"


def _shares_mappings() -> bool:
    return MAP_SHARED is not None and options.mmap_flags == MAP_SHARED


def _mapping(f: Any, file: Any) -> np.memmap:
    """Map the open file, because the path may refer to another file by now."""
    if not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    mapped = np.memmap(file, np.uint8, "r+" if _shares_mappings() else "c")
    file.seek(0)
    return mapped


@contextlib.contextmanager
def _advising() -> Iterator[None]:
    """Adds advice for the user to an UnpicklingError."""
    try:
        yield
    except pickle.UnpicklingError as error:
        reason = str(error)
        if "was not an allowed global by default" in reason:
            head = (
                "Weights only load failed. This file can still be loaded, to do so you have two options, \033[1mdo "
                "those steps only if you trust the source of the checkpoint\033[0m."
                "\n\t(1) Load it with `weights_only=False`, which lets the file run any code."
                "\n\t(2) Allow what the file needs, and keep `weights_only=True`:\n\t"
            )
        else:
            head = "Weights only load failed. "
        raise pickle.UnpicklingError(head + reason) from error.__cause__


def _check_start(file: Any) -> None:
    """Raises: UnpicklingError for a file that does not start like a pickle, such as a text, an image or an HTML page."""
    start = file.tell()
    head = file.read(16)
    file.seek(start)
    if head and not head.startswith(pickle.PROTO):
        raise pickle.UnpicklingError(f"This is not a file of torch.save: it begins with {head!r}")


# ---- Unpickling ------------------------------------------------------------------------------------------------------


class _Safe:
    """Reads a pickle with the restricted unpickler."""

    def __init__(self, encoding: str):
        self.encoding = encoding

    def __call__(self, file: Any, persistent_load: Callable | None = None) -> Any:
        return Unpickler(file, persistent_load, self.encoding).load()


class _Trusting:
    """Reads a pickle with the unpickler of `pickle`, or of a module with the same interface."""

    def __init__(self, module: Any, encoding: str, arguments: dict[str, Any]):
        self.arguments = {"encoding": encoding, **arguments}

        class TrustingUnpickler(module.Unpickler):
            def find_class(self, module: str, name: str) -> Any:
                if module == "torch" or module.startswith("torch."):
                    return names.find_torch("torch._tensor" if module == "torch.tensor" else module, name)
                return super().find_class(module, name)

        self.kind = TrustingUnpickler

    def __call__(self, file: Any, persistent_load: Callable | None = None) -> Any:
        unpickler = self.kind(file, **self.arguments)
        if persistent_load is not None:
            unpickler.persistent_load = persistent_load
        return unpickler.load()


# ---- The current format ----------------------------------------------------------------------------------------------


def _load_archive(source: Source, map_location: Any, unpickle: Callable, mapped: np.memmap | None) -> Any:
    archive = Reader(source)
    if "constants.pkl" in archive:
        raise RuntimeError(
            "Cannot load TorchScript archives with ``torch.load``: "
            f"{source.name} was written by torch.jit.save, and weft does not run TorchScript. Save the state_dict of "
            "the module with torch.save instead"
        )
    if "version" not in archive:
        raise RuntimeError(
            f'{source.name}: expected a record "version": torch.save did not write this archive'
        )
    version = archive.read("version").strip()
    if not version.isdigit() or len(version) > 4 or int(version) > READABLE_VERSION:
        raise RuntimeError(
            f"Attempted to read a PyTorch file with version {version[:20].decode('latin1')}, but the maximum supported "
            f"version for reading is {READABLE_VERSION}"
        )
    swap = is_big_endian(archive.read("byteorder") if "byteorder" in archive else None)
    storages = _Storages(archive, map_location, mapped, swap)
    return unpickle(io.BytesIO(archive.read("data.pkl")), storages.find)


class _Storages:
    """The storages of an archive. Each is read when the pickle first refers to it."""

    def __init__(self, archive: Reader, map_location: Any, mapped: np.memmap | None, swap: bool):
        self.archive, self.mapped, self.swap = archive, mapped, swap
        self.restore = restorer(map_location)
        self.to_meta = is_meta(map_location)
        self.found: dict[str, tuple[int, Storage]] = {}

    def find(self, identity: Any) -> TypedStorage:
        """Return the storage of a persistent id ("storage", class, key, location, number of elements).

        Raises: UnpicklingError for any other id, RuntimeError if the record has another size.
        """
        dtype, key, location, nbytes = parsed(identity, extra=0)[:4]
        if key not in self.found:
            self.found[key] = nbytes, self._make(dtype or uint8, key, location, nbytes)
        known, storage = self.found[key]
        if known != nbytes:
            raise RuntimeError(
                f"the pickle says that storage {key} has {known} bytes, and that it has {nbytes}"
            )
        return TypedStorage(wrap_storage=storage, dtype=dtype or uint8, _internal=True)

    def _make(self, dtype: DType, key: str, location: str, nbytes: int) -> Storage:
        if self.to_meta:
            return Storage(nbytes, device=device("meta"))
        record = self.archive.find(f"data/{key}")
        if record.size != nbytes:
            raise RuntimeError(
                f"{self.archive.source.name}: record {record.name!r} has {record.size} bytes, but the pickle says {nbytes}"
            )
        storage = self._read(record)
        if self.swap:
            storage.byteswap(dtype)
        return self.restore(storage, location).untyped()

    def _read(self, record: Any) -> Storage:
        if self.mapped is not None and not local.skip_data:
            start = self.archive.offset(record)
            if start + record.size > self.mapped.size:
                raise RuntimeError(f"{self.archive.source.name}: the file has changed while it was opened")
            if start % MAPPED_ALIGNMENT == 0 and record.size:
                if self.mapped.mode == "r+":
                    # Erase the checksum in the file, because writes to the tensors will change the record.
                    self.mapped[record.entry :][CRC_IN_ENTRY] = 0
                return foreign(self.mapped.ctypes.data + start, record.size, self.mapped)
        storage = CPU.backend.allocate(record.size)
        if record.size and not local.skip_data:
            self.archive.read_into(record, storage.bytes_().data)
        return storage
