"""The symbols that an object file needs from elsewhere, for ELF (Linux), Mach-O (macOS) and COFF (Windows).

Sources: System V ABI, chapter 4; Apple's mach-o/loader.h and nlist.h; Microsoft's PE format.
"""

import struct


def undefined(code: bytes) -> set[str]:
    """The names of the symbols that the object file refers to and does not define."""
    if code.startswith(b"\x7fELF"):
        return set(_of_elf(code))
    if code.startswith(b"\xcf\xfa\xed\xfe"):
        return {name.removeprefix("_") for name in _of_macho(code)}
    return set(_of_coff(code))


def _text(code, start):
    return code[start : code.index(b"\0", start)].decode()


def _of_elf(code):
    (table,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, table + size * k) for k in range(count)]
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind == 2:  # SHT_SYMTAB
            for entry in range(offset, offset + length, 24):
                name, _, _, section, _, _ = struct.unpack_from("<IBBHQQ", code, entry)
                if section == 0 and name:
                    yield _text(code, sections[link][4] + name)


def _of_macho(code):
    (commands,) = struct.unpack_from("<I", code, 16)
    place = 32
    for _ in range(commands):
        command, size = struct.unpack_from("<II", code, place)
        if command == 2:  # LC_SYMTAB
            symbols, count, strings, _ = struct.unpack_from("<4I", code, place + 8)
            for k in range(count):
                name, kind, *_ = struct.unpack_from("<IBBHQ", code, symbols + 16 * k)
                if kind & 0x0E == 0 and kind & 1:  # N_UNDF, N_EXT
                    yield _text(code, strings + name)
        place += size


def _of_coff(code):
    symbols, count = struct.unpack_from("<II", code, 8)
    strings, k = symbols + 18 * count, 0
    while k < count:
        name, _, section, _, storage, more = struct.unpack_from("<8sIhHBB", code, symbols + 18 * k)
        if section == 0 and storage == 2:  # IMAGE_SYM_UNDEFINED, IMAGE_SYM_CLASS_EXTERNAL
            zeros, offset = struct.unpack("<II", name)
            yield name.rstrip(b"\0").decode() if zeros else _text(code, strings + offset)
        k += 1 + more
