"""Archives of exported programs: zip files with a graph, tensors and files of the user's. `torch.export.pt2_archive`."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import IO, Any

from .constants import ARCHIVE_FORMAT_PATH, ARCHIVE_FORMAT_VALUE, ARCHIVE_VERSION_PATH, ARCHIVE_VERSION_VALUE

__all__ = ["PT2ArchiveReader", "PT2ArchiveWriter", "is_pt2_package"]

_DEFAULT_ROOT = "archive"


def is_pt2_package(serialized_model: bytes | str) -> bool:
    """Whether a file (its path, or its bytes) is an archive of an exported program."""
    source: Any = io.BytesIO(serialized_model) if isinstance(serialized_model, bytes) else serialized_model
    try:
        with PT2ArchiveReader(source) as reader:
            return reader.read_string(ARCHIVE_FORMAT_PATH) == ARCHIVE_FORMAT_VALUE
    except (OSError, RuntimeError, KeyError, zipfile.BadZipFile):
        return False


class PT2ArchiveWriter:
    """Writes an archive. A file of that name is replaced only when the new one is complete.

    >>> import io
    >>> buffer = io.BytesIO()
    >>> with PT2ArchiveWriter(buffer) as writer:
    ...     writer.write_string("extra/note.txt", "hello")
    >>> _ = buffer.seek(0)
    >>> with PT2ArchiveReader(buffer) as reader:
    ...     print(reader.read_string("extra/note.txt"))
    hello
    """

    def __init__(self, archive_path_or_buffer: str | os.PathLike[str] | IO[bytes]):
        self._path: Path | None = None
        self._temporary: Path | None = None
        target: Any = archive_path_or_buffer
        if isinstance(archive_path_or_buffer, (str, os.PathLike)):
            self._path = Path(archive_path_or_buffer)
            self._temporary = target = self._path.with_name(f".{self._path.name}.{os.getpid()}.tmp")
        self._zip = zipfile.ZipFile(target, "w")
        self._prefix = f"{self._path.stem if self._path is not None else _DEFAULT_ROOT}/"
        self.write_string(ARCHIVE_FORMAT_PATH, ARCHIVE_FORMAT_VALUE)
        self.write_string(ARCHIVE_VERSION_PATH, ARCHIVE_VERSION_VALUE)

    def __enter__(self) -> PT2ArchiveWriter:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.close()
        else:
            self._zip.close()
            if self._temporary is not None:
                self._temporary.unlink(missing_ok=True)

    def has_record(self, name: str) -> bool:
        """Whether the archive has an entry of this name."""
        return self._prefix + name in self._zip.namelist()

    def count_prefix(self, prefix: str) -> int:
        """How many entries have names that begin so."""
        return sum(name.startswith(self._prefix + prefix) for name in self._zip.namelist())

    def write_bytes(self, name: str, data: bytes) -> None:
        """Add an entry."""
        if not isinstance(data, bytes):
            raise AssertionError(f"Expected bytes but got {type(data)}")
        self._zip.writestr(self._prefix + name, data)

    def write_string(self, name: str, data: str) -> None:
        """Add an entry of text."""
        if not isinstance(data, str):
            raise AssertionError(f"Expected string but got {type(data)}")
        self.write_bytes(name, data.encode())

    def write_file(self, name: str, file_path: str) -> None:
        """Add a file."""
        self.write_bytes(name, Path(file_path).read_bytes())

    def write_folder(self, archive_dir: str, folder_dir: str) -> None:
        """Add all files of a folder."""
        root = Path(folder_dir)
        for path in sorted(each for each in root.rglob("*") if each.is_file()):
            self.write_file(f"{archive_dir.rstrip('/')}/{path.relative_to(root).as_posix()}", str(path))

    def close(self) -> None:
        """Finish the archive."""
        self._zip.close()
        if self._path is not None and self._temporary is not None:
            os.replace(self._temporary, self._path)


class PT2ArchiveReader:
    """Reads an archive.

    Raises: RuntimeError for a file that is none.
    """

    def __init__(self, archive_path_or_buffer: str | os.PathLike[str] | IO[bytes]):
        try:
            self._zip = zipfile.ZipFile(archive_path_or_buffer)
        except zipfile.BadZipFile as error:
            raise RuntimeError(
                f"{archive_path_or_buffer} is no archive of an exported program: {error}"
            ) from error
        names = self._zip.namelist()
        self._prefix = f"{names[0].split('/')[0]}/" if names else ""
        if f"{self._prefix}{ARCHIVE_FORMAT_PATH}" not in names:
            raise RuntimeError(
                f"{archive_path_or_buffer} is no archive of an exported program: it has no entry {ARCHIVE_FORMAT_PATH!r}"
            )

    def __enter__(self) -> PT2ArchiveReader:
        return self

    def __exit__(self, *_: Any) -> None:
        self._zip.close()

    def read_bytes(self, name: str) -> bytes:
        """An entry."""
        return self._zip.read(self._prefix + name)

    def read_string(self, name: str) -> str:
        """An entry of text."""
        return self.read_bytes(name).decode()

    def archive_version(self) -> int:
        """The version of the format."""
        return int(self.read_string(ARCHIVE_VERSION_PATH))

    def get_file_names(self) -> list[str]:
        """The names of all entries."""
        return [name.removeprefix(self._prefix) for name in self._zip.namelist()]
