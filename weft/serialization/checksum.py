"""Checksums that are computed while bytes are read or written."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from ..engine.workers import get_num_threads
from .folding import combine, crc32
from .source import FileSource, Source

# Bytes; small enough that a piece is still in the cache of the processor when its checksum is computed.
PIECE = 1 << 20
SHARED = 1 << 22  # bytes; a thread that computes the checksum of less costs more than it saves
# Bytes; a thread that reads less costs more than it saves. A file of 64 records of 4 MiB takes 31 ms by one thread and 48 by two
# (AMD Zen 4, nothing beside it).
READ_SHARED = 1 << 22


@contextlib.contextmanager
def checksum_of(content: Any) -> Iterator[Callable[[], int]]:
    """A context that yields a function for the checksum of a buffer. A thread computes the checksum of a large buffer."""
    if len(content) < SHARED:
        yield lambda: crc32(content)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(crc32, content).result


def reading(source: Source, position: int, memory: memoryview) -> int:
    """Read the bytes of a source from `position` on into `memory`, and return their checksum."""
    size = len(memory)
    threads = min(get_num_threads(), size // READ_SHARED) if isinstance(source, FileSource) else 1
    if threads <= 1:
        return _reading(source, position, memory)
    from concurrent.futures import ThreadPoolExecutor

    bounds = [size * k // threads for k in range(threads + 1)]
    parts = [memory[start:stop] for start, stop in zip(bounds, bounds[1:])]
    with ThreadPoolExecutor(threads - 1) as pool:
        others = [
            pool.submit(_reading, source, position + start, each)
            for start, each in zip(bounds[1:], parts[1:])
        ]
        crcs = [_reading(source, position, parts[0]), *(other.result() for other in others)]
    sized = zip(crcs[1:], map(len, parts[1:]))
    return functools.reduce(lambda crc, part: combine(crc, *part), sized, crcs[0])


def _reading(source: Source, position: int, memory: memoryview) -> int:
    crc = 0
    for start in range(0, len(memory), PIECE):
        piece = memory[start : start + PIECE]
        source.read_into(position + start, piece)
        crc = crc32(piece, crc)
    return crc
