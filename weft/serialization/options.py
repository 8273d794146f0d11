"""Holds global options for reading and writing files."""

from __future__ import annotations

import enum
import mmap
import sys
import threading

from ..core.restoring import Restoring

MAP_PRIVATE = getattr(mmap, "MAP_PRIVATE", None)
MAP_SHARED = getattr(mmap, "MAP_SHARED", None)


class SourceChangeWarning(Warning):
    """PyTorch's warning that the source of a pickled module has changed. weft never issues it, because it stores no sources."""


class LoadEndianness(enum.Enum):
    """Names the byte order of files without a byte order record."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Options:
    endianness: LoadEndianness | None = None
    mmap_flags: int | None = MAP_PRIVATE
    checksums = True


class _Local(threading.local):
    skip_data = False


options = _Options()
local = _Local()


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order of files without a byte order record; None stands for little endian."""
    return options.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order of files without a byte order record."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError(
            f"set_default_load_endianness: expected a LoadEndianness or None, got {type(endianness).__name__}"
        )
    options.endianness = endianness


def is_big_endian(byteorder: bytes | None) -> bool:
    """Whether the byte order of a file differs from the byte order of this machine. `record` may be None.

    Raises: RuntimeError for an unknown byte order.
    """
    if byteorder is None:
        default = options.endianness or LoadEndianness.LITTLE
        byteorder = (sys.byteorder if default is LoadEndianness.NATIVE else default.name.lower()).encode()
    if byteorder not in (b"little", b"big"):
        raise RuntimeError(f"Unknown endianness type: {byteorder[:20]!r}")
    return byteorder.decode() != sys.byteorder


def get_default_mmap_options() -> int | None:
    """Return the flags with which `load(mmap=True)` maps files: mmap.MAP_PRIVATE or mmap.MAP_SHARED."""
    return options.mmap_flags


class set_default_mmap_options(Restoring):  # noqa: N801 (PyTorch's name)
    """Set the flags for mapping files, from now on or within a `with` block.

    With mmap.MAP_PRIVATE, writes to tensors do not change the file; with mmap.MAP_SHARED they do.
    """

    def __init__(self, flags: int):
        if MAP_SHARED is None:
            raise RuntimeError("Changing the default mmap options is currently not supported for Windows")
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.previous = options.mmap_flags
        options.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def _restore(self) -> None:
        options.mmap_flags = self.previous


def get_crc32_options() -> bool:
    """Whether `save` computes checksums."""
    return options.checksums


def set_crc32_options(compute_crc32: bool) -> None:
    """Set whether `save` computes checksums; without them `load` cannot tell that a file is damaged."""
    options.checksums = compute_crc32


class skip_data(Restoring):  # noqa: N801 (PyTorch's name)
    """A context in which `save` writes holes in place of the bytes of storages, and `load` does not read these bytes."""

    def __init__(self, materialize_fake_tensors: bool = False):
        pass  # weft has no fake tensors

    def __enter__(self) -> None:
        self.previous = local.skip_data
        local.skip_data = True

    def _restore(self) -> None:
        local.skip_data = self.previous
