"""The archives of `torch.save` record by record, for programs that read parts of a file or write files of their own."""

from __future__ import annotations

import io
import os
from typing import Any

from weft.core.dtype import uint8
from weft.core.storage import Storage
from weft.core.tensor import Tensor
from weft.ops.creation.creation import empty
from weft.ops.tensor.storage import TypedStorage
from weft.serialization.archive import Reader, Writer
from weft.serialization.saving import bytes_of
from weft.serialization.source import source_of


class PyTorchFileReader:
    """The records of a file, or of a file object that can seek.

    Raises: RuntimeError if it cannot be opened or is no such archive.

    >>> import io
    >>> import weft as torch
    >>> buffer = io.BytesIO()
    >>> torch.save(torch.ones(2), buffer)
    >>> "data/0" in torch.PyTorchFileReader(buffer).get_all_records()
    True
    """

    def __init__(self, name_or_buffer: Any) -> None:
        if isinstance(name_or_buffer, (str, os.PathLike)):
            try:
                name_or_buffer = io.FileIO(name_or_buffer)
            except OSError as error:
                raise RuntimeError(f"open file failed: {error}") from error
        else:
            name_or_buffer.seek(0)
        self._archive = Reader(source_of(name_or_buffer))

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return list(self._archive.records)

    def has_record(self, name: str) -> bool:
        """Whether there is a record of that name."""
        return name in self._archive

    def get_record(self, name: str) -> bytes:
        """The bytes of a record."""
        return self._archive.read(name)

    def get_record_size(self, name: str) -> int:
        """How many bytes a record has."""
        return self._archive.find(name).size

    def get_record_offset(self, name: str) -> int:
        """Where in the file the bytes of a record begin."""
        return self._archive.offset(self._archive.find(name))

    def get_record_header_offset(self, name: str) -> int:
        """Where in the file the header of a record begins."""
        return self._archive.find(name).header

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Tensor:
        """A tensor without elements whose storage is the record: `numel` elements of a dtype.

        Raises: RuntimeError if the record has another size.
        """
        dtype = uint8 if dtype is Storage else dtype
        size = dtype.itemsize
        record = self._archive.find(name)
        if record.size != numel * size:
            raise RuntimeError(
                f"record size ({record.size} bytes) does not match expected size ({numel * size} bytes = {numel} "
                f"elements * {size} bytes/element) for dtype {dtype}"
            )
        storage = Storage(record.size)
        if record.size:
            self._archive.read_into(record, storage.bytes_().data)
        return empty(0, dtype=dtype).set_(storage, 0, (0,), (1,))

    def serialization_id(self) -> str:
        """What tells this file from others: a checksum of all records; empty in old files."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""


class PyTorchFileWriter:
    """Writes records, one after the other, to a file or a file object; `write_end_of_file` completes the archive."""

    def __init__(self, name_or_buffer: Any, compute_crc32: bool = True, storage_alignment: int = 64) -> None:
        is_path = isinstance(name_or_buffer, (str, os.PathLike))
        self._file = open(name_or_buffer, "wb") if is_path else name_or_buffer  # noqa: SIM115 (closed at the end)
        self._owned = self._file if is_path else None
        name = os.path.basename(os.fspath(name_or_buffer)).rpartition(".")[0] if is_path else ""
        self._names: set[str] = set()
        self._archive = Writer(self._file.write, self._skip, name or "archive", compute_crc32)

    def _skip(self, count: int) -> None:
        self._file.write(bytes(count))

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Write a record: the first `size` bytes of a string, of bytes or of a storage."""
        if isinstance(data, (Storage, TypedStorage)):
            data = bytes(bytes_of(data if isinstance(data, Storage) else data.untyped()))
        content = data.encode() if isinstance(data, str) else bytes(data)
        self._archive.add(name, content[:size])
        self._names.add(name)

    def get_all_written_records(self) -> set[str]:
        """The names of the records that were written."""
        return set(self._names)

    def archive_name(self) -> str:
        """The folder in the archive: the name of the file without its ending."""
        return self._archive.top

    def set_min_version(self, version: int) -> None:
        """Nothing: `write_record("version", ...)` writes the version."""

    def write_end_of_file(self) -> None:
        """Write the directory of the archive, and close the file that was opened for it."""
        self._archive.close()
        if self._owned is not None:
            self._owned.close()

    def serialization_id(self) -> str:
        """What tells this file from others: a checksum of all records."""
        return f"{len(self._archive.directory) - 1:020d}{self._archive.combined:020d}"
