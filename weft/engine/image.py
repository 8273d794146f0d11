"""Images: object code that is linked once, when it is compiled, so that loading it is a copy.

LLVM's linker takes 0.25 ms for a kernel, in every process. An image is the bytes of all sections one behind the other,
and the places in them where an address must be added. Only object files of the format ELF for x86-64, without variables, become
images; LLVM links all others.
"""

from __future__ import annotations

import marshal
import mmap
import struct
from collections.abc import Callable
from typing import NamedTuple

from . import code_memory

_PREFIX = b"weft image 1\n"

# See "System V Application Binary Interface, AMD64 Architecture Processor Supplement", chapter 4.
_SYMBOLS, _RELA, _NOBITS, _UNWIND = 2, 4, 8, 0x70000001  # types of sections
_WRITE, _ALLOC, _TLS = 0x1, 0x2, 0x400  # flags of sections
_ABSOLUTE_64 = 1  # R_X86_64_64, the only relocation in code for memory of any size
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_UNDEFINED = 0  # the number of the section of a symbol that another file defines
_WORD = struct.Struct("<Q")


class Image(NamedTuple):
    code: bytes
    inner: tuple[tuple[int, int], ...]  # (place, offset in the code whose address belongs there)
    outer: tuple[tuple[int, str, int], ...]  # (place, symbol, number to add to its address)
    functions: dict[str, int]  # offsets


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


def packed(code: bytes) -> bytes | None:
    """The image of an object file, as bytes; None if only LLVM can link the file."""
    if not code_memory.is_supported() or code[:6] != b"\x7fELF\x02\x01":
        return None
    image = _Linker(code).image()
    return None if image is None else _PREFIX + marshal.dumps(tuple(image))


def unpacked(content: bytes) -> Image | None:
    """The image that was packed; None if the content is an object file."""
    return Image(*marshal.loads(content[len(_PREFIX) :])) if content.startswith(_PREFIX) else None


def loaded(image: Image, address_of: Callable[[str], int]) -> int:
    """The address of the image, which this puts into executable memory. `address_of` gives the addresses of symbols."""
    start = code_memory.reserve(len(image.code))
    code = image.code
    if image.inner or image.outer:
        words = bytearray(code)
        for place, offset in image.inner:
            _WORD.pack_into(words, place, start + offset)
        for place, symbol, addend in image.outer:
            _WORD.pack_into(words, place, address_of(symbol) + addend)
        code = bytes(words)
    code_memory.place(code, start)
    return start


def repeated(image: Image, count: int, step: int) -> Image:
    """The code several times, one behind the other. Each refers to addresses that are `step` bytes beyond those of the one before."""
    code = image.code + bytes(-len(image.code) % 16)
    outer = [
        (k * len(code) + place, symbol, addend + k * step)
        for k in range(count)
        for place, symbol, addend in image.outer
    ]
    inner = [
        (k * len(code) + place, k * len(code) + offset) for k in range(count) for place, offset in image.inner
    ]
    return Image(code * count, tuple(inner), tuple(outer), image.functions)


class _Linker:
    """Makes the image of one object file."""

    def __init__(self, code: bytes):
        self.code = code
        (table,) = struct.unpack_from("<Q", code, 40)
        size, count = struct.unpack_from("<HH", code, 58)
        self.sections = [_Section(*_SECTION.unpack_from(code, table + size * k)) for k in range(count)]
        self.starts: dict[int, int] = {}  # number of a section -> where it begins in the image
        self.symbols: list[tuple[str, int | None]] = []  # (name, place in the image or None)

    def image(self) -> Image | None:
        data = self._lay_out()
        self._read_symbols()
        relocations = self._relocations()
        if data is None or relocations is None:
            return None
        functions = {name: place for name, place in self.symbols if name and place is not None}
        return Image(data, *relocations, functions)

    def _lay_out(self) -> bytes | None:
        """The bytes of all sections that are needed at run time, None if one of them is not only read."""
        data = bytearray()
        for number, section in enumerate(self.sections):
            if not section.flags & _ALLOC or not section.size or section.type == _UNWIND:
                continue
            if (
                section.flags & (_WRITE | _TLS)
                or section.type == _NOBITS
                or section.alignment > mmap.PAGESIZE
            ):
                return None
            data += bytes(-len(data) % section.alignment)
            self.starts[number] = len(data)
            data += self.code[section.offset : section.offset + section.size]
        return bytes(data)

    def _read_symbols(self) -> None:
        for table in self.sections:
            if table.type == _SYMBOLS:
                names = self.sections[table.link].offset
                for entry in range(table.offset, table.offset + table.size, _SYMBOL.size):
                    start, _, _, number, value, _ = _SYMBOL.unpack_from(self.code, entry)
                    name = self.code[names + start : self.code.index(b"\0", names + start)].decode()
                    place = self.starts[number] + value if number in self.starts else None
                    self.symbols.append((name if place is not None or number == _UNDEFINED else "", place))

    def _relocations(self) -> tuple[tuple, tuple] | None:
        """`inner` and `outer` of the image, None if there is a relocation of another kind."""
        inner, outer = [], []
        for table in self.sections:
            if table.type != _RELA or table.info not in self.starts:
                continue
            for entry in range(table.offset, table.offset + table.size, _RELOCATION.size):
                offset, info, addend = _RELOCATION.unpack_from(self.code, entry)
                name, target = self.symbols[info >> 32]
                place = self.starts[table.info] + offset
                if info & 0xFFFFFFFF != _ABSOLUTE_64 or (target is None and not name):
                    return None
                if target is None:
                    outer.append((place, name, addend))
                else:
                    inner.append((place, target + addend))
        return tuple(inner), tuple(outer)
