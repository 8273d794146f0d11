"""The zip archives of `torch.save`: records stored without compression, each aligned, in one top folder.

The layout is identical to that of PyTorch's writer, because some readers compute offsets instead of reading the directory.
Source of the layout: PKWARE's APPNOTE.TXT 6.3.10, and files written by PyTorch 2.13.
"""

from __future__ import annotations

import bisect
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .checksum import checksum_of, reading
from .source import Source

ALIGNMENT = 64
LIMIT = 0xFFFFFFFF  # larger values need the fields of zip64

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_END = struct.Struct("<4s4H2LH")

_UTF8, _DESCRIPTOR, _ENCRYPTED = (
    0x800,
    0x008,
    0x2041,
)  # flags; the last contains the flags of three kinds of encryption
_STORED = 0


class Record(NamedTuple):
    """Holds a record's entry in the directory of the archive."""

    name: str  # with the top folder
    header: int
    size: int
    crc: int  # 0 if the writer did not compute it
    entry: int  # position of the entry in the directory
    problem: str  # why the record cannot be read; empty if it can
    limit: int = 0  # position of the next header


CRC_IN_ENTRY = slice(16, 20)


class Reader:
    """Reads the records of an archive, by their names without the top folder.

    All metadata is validated before use: the directory when the archive is opened, the header of a record when the record is
    read. So reading never allocates more memory than the file has bytes.

    Raises: RuntimeError that names the error and its position.
    """

    def __init__(self, source: Source):
        self.source = source
        start, entries = self._directory()
        self.records: dict[str, Record] = {}
        top = None
        headers = sorted(entry.header for entry in entries)
        for entry in entries:
            folder, slash, own = entry.name.partition("/")
            if top is None:
                top = folder
            if folder != top or not slash:
                continue
            if own in self.records:
                raise self._corrupt(f"there are two records {entry.name!r}")
            after = bisect.bisect_right(headers, entry.header)
            limit = headers[after] if after < len(headers) else start
            self.records[own] = entry._replace(limit=limit)

    def _corrupt(self, reason: str) -> RuntimeError:
        return RuntimeError(f"PytorchStreamReader failed reading zip archive: {self.source.name}: {reason}")

    # -- the directory ------------------------------------------------------------------------------------------------

    def _directory(self) -> tuple[int, list[Record]]:
        """Return the position of the directory, and its entries."""
        count, size, start, end = self._end()
        if start + size > end or count * _CENTRAL.size > size:
            raise self._corrupt(
                f"the central directory, said to have {count} entries in {size} bytes at byte {start}, does not fit "
                f"before byte {end}"
            )
        directory = self.source.read(start, size)
        entries, position = [], 0
        for _ in range(count):
            entry, position = self._entry(directory, position)
            entries.append(entry._replace(entry=start + entry.entry))
        if position != size:
            raise self._corrupt(f"the central directory has {size - position} bytes more than its entries")
        return start, entries

    def _end(self) -> tuple[int, int, int, int]:
        """The number of entries, the size and the position of the directory, and the position of its end."""
        tail = self.source.read(
            max(0, self.source.size - _END.size - 0xFFFF), min(self.source.size, _END.size + 0xFFFF)
        )
        base = self.source.size - len(tail)
        at = len(tail)
        while (at := tail.rfind(b"PK\5\6", 0, at)) >= 0:
            # A comment may contain the signature. The comment of the real record ends at the end of the file.
            if at + _END.size <= len(tail):
                _, _, _, _, count, size, start, comment = _END.unpack_from(tail, at)
                if at + _END.size + comment == len(tail):
                    break
        else:
            raise self._corrupt(
                f"failed finding central directory: {self.source.size} bytes that do not end as an archive does; "
                "the file is cut short or damaged"
            )
        end = base + at
        if end >= _LOCATOR.size:
            signature, _, where, _ = _LOCATOR.unpack(self.source.read(end - _LOCATOR.size, _LOCATOR.size))
            if signature == b"PK\6\7":
                return self._end64(where, end - _LOCATOR.size)
        return count, size, start, end

    def _end64(self, where: int, end: int) -> tuple[int, int, int, int]:
        if where + _END64.size > end:
            raise self._corrupt(
                f"the zip64 end record, said to be at byte {where}, does not fit before byte {end}"
            )
        signature, _, _, _, _, _, here, count, size, start = _END64.unpack(
            self.source.read(where, _END64.size)
        )
        if signature != b"PK\6\6" or here != count:
            raise self._corrupt(f"there is no zip64 end record of one file at byte {where}")
        return count, size, start, where

    def _entry(self, directory: bytes, at: int) -> tuple[Record, int]:
        if at + _CENTRAL.size > len(directory):
            raise self._corrupt(f"the central directory ends within the entry at its byte {at}")
        (
            signature,
            _,
            _,
            flags,
            method,
            _,
            _,
            crc,
            packed,
            size,
            name_size,
            extra_size,
            comment,
            disk,
            _,
            _,
            header,
        ) = _CENTRAL.unpack_from(directory, at)
        first = at + _CENTRAL.size
        extra = first + name_size
        end = extra + extra_size + comment
        if signature != b"PK\1\2" or end > len(directory):
            raise self._corrupt(f"the central directory is damaged at its byte {at}")
        try:
            name = directory[first:extra].decode("utf-8")
        except UnicodeDecodeError:
            raise self._corrupt(f"the name {directory[first:extra]!r} is not UTF-8") from None
        fields = self._zip64(directory[extra : extra + extra_size], name)
        size, packed, header = (next(fields) if value == LIMIT else value for value in (size, packed, header))
        problem = ""
        if flags & _ENCRYPTED:
            problem = "is encrypted"
        elif method != _STORED or packed != size:
            problem = (
                f"is compressed (method {method}, {packed} bytes for {size}), which torch.save never does: what it "
                "would take to unpack it is unknown"
            )
        elif disk:
            problem = f"is said to be on disk {disk} of several"
        return Record(name, header, size, crc, at, problem), end

    def _zip64(self, extra: bytes, name: str) -> Iterator[int]:
        """Return the 64-bit values in the extra field of a directory entry."""
        at = 0
        while at + 4 <= len(extra):
            kind, size = struct.unpack_from("<HH", extra, at)
            if kind == 1:
                yield from (
                    value for (value,) in struct.iter_unpack("<Q", extra[at + 4 : at + 4 + size // 8 * 8])
                )
            at += 4 + size
        raise self._corrupt(f"record {name!r} has no zip64 field for what does not fit into 32 bits")

    # -- records ------------------------------------------------------------------------------------------------------

    def __contains__(self, name: str) -> bool:
        return name in self.records

    def find(self, name: str) -> Record:
        if name not in self.records:
            raise RuntimeError(
                f"PytorchStreamReader failed locating file {name}: file not found in {self.source.name}"
            )
        record = self.records[name]
        if record.problem:
            raise self._corrupt(f"record {record.name!r} {record.problem}")
        if record.header + _LOCAL.size + len(record.name) + record.size > record.limit:
            raise self._corrupt(
                f"record {record.name!r} is said to have {record.size} bytes, but between its header at byte "
                f"{record.header} and what follows there are {max(record.limit - record.header, 0)}"
            )
        return record

    def offset(self, record: Record) -> int:
        """The position of the bytes of a record. Checks that they end before the next header."""
        header = self.source.read(record.header, _LOCAL.size + len(record.name.encode()))
        signature, _, flags, method, _, _, _, packed, size, name_size, extra_size = _LOCAL.unpack_from(header)
        name = header[_LOCAL.size : _LOCAL.size + name_size]
        start = record.header + _LOCAL.size + name_size + extra_size
        if signature != b"PK\3\4" or name != record.name.encode() or method != _STORED or flags & _ENCRYPTED:
            raise self._corrupt(
                f"the header of record {record.name!r} at byte {record.header} is another record's"
            )
        if not flags & _DESCRIPTOR and LIMIT not in (packed, size) and not packed == size == record.size:
            raise self._corrupt(
                f"record {record.name!r} has {size} bytes by its header and {record.size} by the central directory"
            )
        if start + record.size > record.limit:
            raise self._corrupt(
                f"record {record.name!r}, {record.size} bytes at byte {start}, overlaps what follows at byte "
                f"{record.limit}"
            )
        return start

    def read(self, name: str) -> bytes:
        """Return the bytes of a record."""
        record = self.find(name)
        content = self.source.read(self.offset(record), record.size)
        self._check(record, zlib.crc32(content))
        return content

    def read_into(self, record: Record, memory: memoryview) -> None:
        """Read the bytes of a record into `memory`, which has the same size."""
        self._check(record, reading(self.source, self.offset(record), memory))

    def _check(self, record: Record, crc: int) -> None:
        if record.crc not in (crc, 0):
            raise self._corrupt(
                f"the {record.size} bytes of record {record.name!r} are damaged: their checksum is {crc:#010x} instead "
                f"of {record.crc:#010x}"
            )


# ---- Writing ---------------------------------------------------------------------------------------------------------


class Hole(NamedTuple):
    """A record whose bytes are not written: the file has a hole in its place."""

    nbytes: int


class Writer:
    """Writes an archive sequentially, so that the target need not seek.

    `write` takes any buffer; `skip(n)` writes n zero bytes.
    """

    def __init__(
        self, write: Callable[[Any], Any], skip: Callable[[int], Any], top: str, checksums: bool = True
    ):
        self._write, self._skip = write, skip
        self.top, self.checksums = top, checksums
        self.position = 0
        self.directory: list[bytes] = []
        self.combined = 0  # a checksum of all checksums

    def _put(self, content: Any, size: int) -> None:
        self._write(content)
        self.position += size

    def add(self, name: str, content: Any) -> None:
        """Write a record: bytes, a memoryview, or a Hole."""
        encoded = f"{self.top}/{name}".encode()
        size, start = content.nbytes if not isinstance(content, bytes) else len(content), self.position
        wide = size >= LIMIT or start >= LIMIT
        flags = _UTF8 | (_DESCRIPTOR if size else 0)
        extra = _zip64_field(*[size] * 2 * (size >= LIMIT), *[start] * (start >= LIMIT))
        after = start + _LOCAL.size + len(encoded) + len(extra) + 4
        padding = -after % ALIGNMENT
        extra_size = len(extra) + 4 + padding
        local = _LOCAL.pack(b"PK\3\4", 0, flags, _STORED, 0, 0, 0, 0, 0, len(encoded), extra_size)
        filler = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
        self._put(local + encoded + extra + filler, _LOCAL.size + len(encoded) + extra_size)
        crc = self._content(content, size)
        if size:
            form = "<4sLQQ" if wide else "<4sLLL"
            self._put(struct.pack(form, b"PK\7\10", crc, size, size), struct.calcsize(form))
        narrow_size, narrow_start = min(size, LIMIT), min(start, LIMIT)
        self.directory.append(
            _CENTRAL.pack(
                *(b"PK\1\2", 0, 0, flags, _STORED, 0, 0, crc, narrow_size, narrow_size),
                *(len(encoded), len(extra), 0, 0, 0, 0, narrow_start),
            )
            + encoded
            + extra
        )
        self.combined = zlib.crc32(encoded + crc.to_bytes(4, "little"), self.combined)

    def _content(self, content: Any, size: int) -> int:
        """Write the content of a record, and return its checksum."""
        if isinstance(content, Hole):
            self._skip(size)
            self.position += size
            return 0
        if not self.checksums:
            self._put(content, size)
            return 0
        with checksum_of(content) as crc:  # computed while the bytes are written
            self._put(content, size)
            return crc()

    def close(self) -> None:
        """Write the directory and the end of the archive."""
        self.add(".data/serialization_id", b"%020d%020d" % (len(self.directory), self.combined))
        start, count = self.position, len(self.directory)
        directory = b"".join(self.directory)
        end = start + len(directory)
        self._put(
            directory
            + _END64.pack(b"PK\6\6", _END64.size - 12, 0x031E, 45, 0, 0, count, count, len(directory), start)
            + _LOCATOR.pack(b"PK\6\7", 0, end, 1)
            + _END.pack(
                *(b"PK\5\6", 0, 0, min(count, 0xFFFF), min(count, 0xFFFF)),
                *(min(len(directory), LIMIT), min(start, LIMIT), 0),
            ),
            len(directory) + _END64.size + _LOCATOR.size + _END.size,
        )


def _zip64_field(*values: int) -> bytes:
    return struct.pack(f"<HH{len(values)}Q", 1, 8 * len(values), *values) if values else b""
