"""Link the object of a kernel, as LLVM writes it for AMD's GPUs, into the shared object that HIP loads.

An object has the code of a kernel, its descriptor, and a note about its arguments. To link it is to give its sections addresses, to fill in
the distances between them, and to add what loaders read: segments, and tables of the symbols. HIP looks symbols up in `.symtab`, and
copies the segments to the device. In the result all offsets in the file are addresses, too. Names of fields are those of ELF.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterable

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_PAGE = 4096  # code begins on one of its own
_SEGMENTS = 4  # data, code, the dynamic section and the note

_SHARED = 3  # ET_DYN
_PROGBITS, _SYMTAB, _STRTAB, _RELA, _HASH, _DYNAMIC, _NOTE, _NOBITS, _DYNSYM = 1, 2, 3, 4, 5, 6, 7, 8, 11
_WRITE, _ALLOCATE, _EXECUTE = 1, 2, 4  # flags of sections
_LOAD_SEGMENT, _DYNAMIC_SEGMENT, _NOTE_SEGMENT = 1, 2, 4
_READABLE, _EXECUTABLE = 4, 5  # flags of segments
_DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_NULL = 4, 5, 6, 10, 11, 0
_REL32, _REL64, _REL32_LO, _REL32_HI = 4, 5, 10, 11  # R_AMDGPU_...
_LOCAL = 0  # the binding of a symbol


@dataclasses.dataclass(eq=False)
class _Section:
    name: str
    kind: int
    flags: int
    align: int
    content: bytearray
    link: str = ""
    info: int = 0
    entry: int = 0  # bytes of an entry
    place: int = 0  # in the file, and in memory if it is loaded


@dataclasses.dataclass(eq=False)
class _Symbol:
    name: str
    info: int  # binding << 4 | type
    other: int
    section: _Section | None
    value: int
    size: int

    def address(self) -> int:
        if self.section is None:
            raise NotImplementedError(
                f"code for AMD's GPUs that refers to {self.name}, which is not in its object"
            )
        return self.section.place + self.value


def linked(code: bytes) -> bytes:
    """Return the shared object of the object of one kernel.

    Raises: NotImplementedError for sections, symbols and relocations that kernels do not have.
    """
    header = _HEADER.unpack_from(code)
    given = _sections(code, header)
    symbols = _symbols(given)
    loaded = [each for each in given if each.flags & _ALLOCATE and each.content]
    if any(each.flags & _WRITE or each.kind == _NOBITS for each in loaded):
        raise NotImplementedError("code for AMD's GPUs with variables in the memory of the device")
    exported = [each for each in symbols if each.info >> 4 != _LOCAL]
    sections = [
        *_dynamic_tables(exported),
        *(each for each in loaded if not each.flags & _EXECUTE),
        *(each for each in loaded if each.flags & _EXECUTE),
        _table(".symtab", _SYMTAB, 0, exported, ".strtab"),
        _strings(".strtab", 0, (each.name for each in exported)),
    ]
    sections.append(_strings(".shstrtab", 0, [".shstrtab", *(each.name for each in sections)]))
    end = _place(sections)
    for each in given:
        if each.kind == _RELA and (target := given[each.info]) in loaded:
            _relocate(each, target, symbols)
    _fill_tables(sections, exported)
    return _written(header, sections, end)


# ---- Reading -------------------------------------------------------------------------------------------------------------


def _sections(code: bytes, header: tuple) -> list[_Section]:
    start, count, names = header[6], header[12], header[13]
    fields = [_SECTION.unpack_from(code, start + k * _SECTION.size) for k in range(count)]
    strings = code[fields[names][4] :]
    return [
        _Section(
            _string(strings, name),
            kind,
            flags,
            align,
            bytearray(size) if kind == _NOBITS else bytearray(code[place : place + size]),
            info=info,
            entry=entry,
        )
        for name, kind, flags, _, place, size, _, info, align, entry in fields
    ]


def _symbols(sections: list[_Section]) -> list[_Symbol]:
    (table,) = (each for each in sections if each.kind == _SYMTAB)
    (strings,) = (each.content for each in sections if each.kind == _STRTAB)
    return [
        _Symbol(
            _string(strings, name), info, other, sections[at] if 0 < at < len(sections) else None, value, size
        )
        for name, info, other, at, value, size in _SYMBOL.iter_unpack(table.content)
    ]


def _string(strings: bytes | bytearray, start: int) -> str:
    return strings[start : strings.index(0, start)].decode()


# ---- Tables --------------------------------------------------------------------------------------------------------------


def _dynamic_tables(symbols: list[_Symbol]) -> list[_Section]:
    # All symbols are in the only bucket, each followed by the next, so nobody has to compute hashes.
    chain = [*range(2, len(symbols) + 1), 0]
    hashes = struct.pack(f"<{len(symbols) + 4}I", 1, len(symbols) + 1, 1, 0, *chain)
    return [
        _table(".dynsym", _DYNSYM, _ALLOCATE, symbols, ".dynstr"),
        _Section(".hash", _HASH, _ALLOCATE, 4, bytearray(hashes), ".dynsym", entry=4),
        _strings(".dynstr", _ALLOCATE, (each.name for each in symbols)),
        _Section(".dynamic", _DYNAMIC, _ALLOCATE, 8, bytearray(6 * 16), ".dynstr", entry=16),
    ]


def _table(name: str, kind: int, flags: int, symbols: list[_Symbol], strings: str) -> _Section:
    """A table of symbols, still empty."""
    room = bytearray((1 + len(symbols)) * _SYMBOL.size)
    return _Section(name, kind, flags, 8, room, strings, info=1, entry=_SYMBOL.size)


def _strings(name: str, flags: int, strings: Iterable[str]) -> _Section:
    content = b"".join(each.encode() + b"\0" for each in ("", *strings))
    return _Section(name, _STRTAB, flags, 1, bytearray(content))


def _place(sections: list[_Section]) -> int:
    """Give each section its place; return the end of the last one."""
    end = _HEADER.size + _SEGMENTS * _SEGMENT.size
    is_code = False
    for each in sections:
        was_code, is_code = is_code, bool(each.flags & _EXECUTE)
        align = _PAGE if is_code != was_code else each.align
        each.place = _up(end, align)
        end = each.place + len(each.content)
    return end


def _fill_tables(sections: list[_Section], symbols: list[_Symbol]) -> None:
    """Write addresses into the tables."""
    named = {each.name: each for each in sections}
    for table in (named[".dynsym"], named[".symtab"]):
        for k, each in enumerate(symbols, 1):
            at = 1 + next(n for n, section in enumerate(sections) if section is each.section)
            name = named[table.link].content.index(f"\0{each.name}\0".encode()) + 1
            fields = name, each.info, each.other, at, each.address(), each.size
            _SYMBOL.pack_into(table.content, k * _SYMBOL.size, *fields)
    strings = named[".dynstr"]
    entries = {
        _DT_HASH: named[".hash"].place,
        _DT_SYMTAB: named[".dynsym"].place,
        _DT_SYMENT: _SYMBOL.size,
        _DT_STRTAB: strings.place,
        _DT_STRSZ: len(strings.content),
        _DT_NULL: 0,
    }
    named[".dynamic"].content[:] = b"".join(struct.pack("<QQ", *each) for each in entries.items())


# ---- Relocations ---------------------------------------------------------------------------------------------------------


def _relocate(relocations: _Section, target: _Section, symbols: list[_Symbol]) -> None:
    """Write distances from places in a section to symbols."""
    for offset, info, addend in _RELOCATION.iter_unpack(relocations.content):
        kind, symbol = info & 0xFFFFFFFF, symbols[info >> 32]
        distance = symbol.address() + addend - (target.place + offset)
        if kind == _REL64:
            struct.pack_into("<q", target.content, offset, distance)
        elif kind in (_REL32, _REL32_LO):
            struct.pack_into("<I", target.content, offset, distance & 0xFFFFFFFF)
        elif kind == _REL32_HI:
            struct.pack_into("<i", target.content, offset, distance >> 32)
        else:
            raise NotImplementedError(f"relocation {kind} in code for AMD's GPUs, of {symbol.name}")


# ---- Writing -------------------------------------------------------------------------------------------------------------


def _written(header: tuple, sections: list[_Section], end: int) -> bytes:
    start = _up(
        end, 8
    )  # of the headers of sections. They stand last, because HIP takes their end for that of the object.
    file = bytearray(start)
    for each in sections:
        file[each.place : each.place + len(each.content)] = each.content
    ident, _, machine, version, _, _, _, flags, *_ = header
    _HEADER.pack_into(
        file,
        0,
        *(ident, _SHARED, machine, version, 0, _HEADER.size, start, flags, _HEADER.size),
        *(_SEGMENT.size, _SEGMENTS, _SECTION.size, 1 + len(sections), len(sections)),
    )
    _write_segments(file, sections)
    return bytes(file) + b"".join([bytes(_SECTION.size), *(_entry(each, sections) for each in sections)])


def _write_segments(file: bytearray, sections: list[_Section]) -> None:
    named = {each.name: each for each in sections}
    loaded = [each for each in sections if each.flags & _ALLOCATE]
    code = [each for each in loaded if each.flags & _EXECUTE]
    data = loaded[: -len(code)]
    spans = [
        (_LOAD_SEGMENT, _READABLE, _PAGE, 0, _end(data[-1])),
        (_LOAD_SEGMENT, _EXECUTABLE, _PAGE, code[0].place, _end(code[-1])),
        (_DYNAMIC_SEGMENT, _READABLE, 8, named[".dynamic"].place, _end(named[".dynamic"])),
        (_NOTE_SEGMENT, _READABLE, 4, named[".note"].place, _end(named[".note"])),
    ]
    for k, (kind, flags, align, start, end) in enumerate(spans):
        fields = kind, flags, start, start, start, end - start, end - start, align
        _SEGMENT.pack_into(file, _HEADER.size + k * _SEGMENT.size, *fields)


def _entry(section: _Section, sections: list[_Section]) -> bytes:
    """Return the header of a section."""
    numbers = {each.name: k for k, each in enumerate(sections, 1)}
    name = sections[-1].content.index(f"\0{section.name}\0".encode()) + 1
    address = section.place if section.flags & _ALLOCATE else 0
    size, link = len(section.content), numbers.get(section.link, 0)
    return _SECTION.pack(
        *(name, section.kind, section.flags, address, section.place, size),
        *(link, section.info, section.align, section.entry),
    )


def _end(section: _Section) -> int:
    return section.place + len(section.content)


def _up(place: int, align: int) -> int:
    return -(-place // align) * align
