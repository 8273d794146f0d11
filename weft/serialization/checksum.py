"""CRC-32 of many bytes, while they are read or written."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from .source import Source

PIECE = 1 << 20


@contextlib.contextmanager
def crc32(content: Any) -> Iterator[Callable[[], int]]:
    """A function that gives the checksum of a buffer, computed in a thread meanwhile if there is much of it."""
    if len(content) < PIECE:
        yield lambda: zlib.crc32(content)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(zlib.crc32, content).result


def reading(source: Source, position: int, memory: memoryview) -> int:
    """Fill `memory` with the bytes of a source from `position` on; their checksum."""
    crc = 0
    for start in range(0, len(memory), PIECE):
        piece = memory[start : start + PIECE]
        source.read_into(position + start, piece)
        crc = zlib.crc32(piece, crc)
    return crc
