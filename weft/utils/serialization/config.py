"""The settings: `config.load.mmap = True`, `config.save.compute_crc32 = False`."""

from __future__ import annotations

from typing import Any

from ...serialization import (
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
)


class _Save:
    """Settings of saving."""

    use_pinned_memory_for_d2h: bool = False
    storage_alignment: int = 64

    @property
    def compute_crc32(self) -> bool:
        """Return whether files have checksums."""
        return get_crc32_options()

    @compute_crc32.setter
    def compute_crc32(self, value: bool) -> None:
        set_crc32_options(value)


class _Load:
    """Settings of loading."""

    mmap: bool = False
    calculate_storage_offsets: bool = False

    @property
    def endianness(self) -> Any:
        """Return the order of bytes of files that do not say."""
        return get_default_load_endianness()

    @endianness.setter
    def endianness(self, value: Any) -> None:
        set_default_load_endianness(value)

    @property
    def mmap_flags(self) -> int | None:
        """How files are mapped."""
        return get_default_mmap_options()

    @mmap_flags.setter
    def mmap_flags(self, value: int) -> None:
        set_default_mmap_options(value)


load = _Load()
save = _Save()
