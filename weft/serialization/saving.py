"""`torch.save`."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..core.storage import Storage
from .archive import Hole, Writer
from .atomic import replacing
from .legacy import write_legacy
from .locations import FileLike
from .options import local, options
from .pickler import Storages, dumps

DEFAULT_PROTOCOL = 2
PIECE = 1 << 26  # bytes per write; Ctrl-C and the progress bar are handled after each
PROGRESS = 256 << 20  # bytes; smaller files get no progress bar


def save(
    obj: Any,
    f: FileLike,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to a file that PyTorch and weft can load. The object may contain tensors and everything that pickle supports.

    `f` is a path, or an object with `write` and `flush`, which need not support seeking. Tensors that share memory also share
    it after loading. A file at the path is replaced when the new file is complete.

    Raises: RuntimeError if the file cannot be written, or if tensors view the same memory as several dtypes; errors of pickle
    for unsupported objects.

    >>> import io, weft as torch
    >>> file = io.BytesIO()
    >>> torch.save({"weight": torch.ones(2)}, file)
    >>> file.seek(0); torch.load(file)
    0
    {'weight': tensor([1., 1.])}
    """
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    if not _use_new_zipfile_serialization:
        if local.skip_data:
            raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
        with _target(f) as output:
            write_legacy(obj, output.write, pickle_module, pickle_protocol)
        return
    storages = Storages(lambda storage, count: str(count))
    # Pickle before the file is opened, because pickling may raise.
    content = dumps(obj, pickle_protocol, storages.identity, pickle_module)
    total = sum(storage.nbytes_ for _, storage, _ in storages)
    with _target(f) as output, _progress(total) as advance:
        output.advance = advance
        archive = Writer(
            output.write, output.skip, _top_folder(f) if is_path else "archive", options.checksums
        )
        archive.add("data.pkl", content)
        archive.add(".format_version", b"1")
        archive.add(".storage_alignment", b"64")
        if not _disable_byteorder_record:
            archive.add("byteorder", sys.byteorder.encode())
        for key, storage, _ in storages:
            archive.add(f"data/{key}", Hole(storage.nbytes_) if local.skip_data else bytes_of(storage))
        archive.add("version", b"3\n")
        archive.close()


def bytes_of(storage: Storage) -> memoryview:
    """The bytes of a storage, copied to the CPU if it is on another device."""
    on_cpu = storage.cpu()
    return on_cpu.bytes_().data if on_cpu.nbytes_ else memoryview(b"")


def _top_folder(path: Any) -> str:
    """Return the name of the top folder of the archive: the name of the file without its last extension."""
    name = os.path.basename(os.fsdecode(path))
    if not name.isascii():
        return "archive"
    return name.rpartition(".")[0] or name


class _Output:
    """The target of a sequential write."""

    advance: Callable[[int], Any] | None = None

    def __init__(self, file: Any):
        self._file = file

    def write(self, content: Any) -> None:
        view = memoryview(content)
        done = 0
        while done < len(view):
            piece = view[done : done + PIECE]
            count = self._file.write(piece)
            if count == 0 or (count is None and isinstance(self._file, io.RawIOBase)):
                raise RuntimeError(f"a {type(self._file).__name__} takes no more bytes")
            # Ignore results of `write` that are not an int, because file objects of users may return anything.
            step = count if type(count) is int and count <= len(piece) else len(piece)
            done += step
            if self.advance is not None:
                self.advance(step)

    def skip(self, size: int) -> None:
        zeros = bytes(min(size, PIECE))
        for start in range(0, size, PIECE):
            self.write(zeros[: size - start])


class _File(_Output):
    """A file that weft has opened. Skipped bytes become a hole."""

    def skip(self, size: int) -> None:
        self._file.seek(size, os.SEEK_CUR)


@contextlib.contextmanager
def _target(f: Any) -> Iterator[_Output]:
    if isinstance(f, (str, os.PathLike)):
        try:
            with replacing(f) as file:
                yield _File(file)
        except OSError as error:
            raise RuntimeError(f"PytorchStreamWriter failed writing file {f}: {error}") from error
    else:
        yield _Output(f)
        f.flush()


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[int], Any] | None]:
    """A context that yields a function to call with the number of bytes written, which moves a progress bar.

    There is a bar only for large files and on a terminal.
    """
    if total < PROGRESS or not sys.stderr or not sys.stderr.isatty():
        yield None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        yield None
        return
    with tqdm(total=total, desc="torch.save", unit="B", unit_scale=True, unit_divisor=1024) as bar:
        # The counts include headers, so limit their sum to the total.
        yield lambda count: bar.update(min(count, total - bar.n))
