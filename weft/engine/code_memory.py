"""Memory for machine code: written first, executable afterwards, never both at once, and never freed."""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
import sys

from ..core.locks import new_lock

_CHUNK = 1 << 20  # bytes that are mapped at once
_PRIVATE = 0x02 | 0x20  # MAP_PRIVATE | MAP_ANONYMOUS of Linux
_READ_AND_EXECUTE = 0x1 | 0x4  # PROT_READ | PROT_EXEC

_lock = new_lock()
_next, _end = 0, 0  # addresses of the pages that are mapped and free


@functools.cache
def is_supported() -> bool:
    """Whether `place` works on this system."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    try:
        place(b"\xc3", reserve(1))
    except OSError:  # a policy of the system may forbid it
        return False
    return True


def reserve(size: int) -> int:
    """The address of so many bytes, which begin a page, and share no page with others."""
    global _next, _end
    pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    with _lock:
        if _end - _next < pages:
            mapped = max(pages, _CHUNK)
            address = _mmap(None, mapped, mmap.PROT_READ | mmap.PROT_WRITE, _PRIVATE, -1, 0)
            if address == ctypes.c_size_t(-1).value:
                raise OSError(ctypes.get_errno(), f"no memory for {mapped} bytes of machine code")
            _next, _end = address, address + mapped
        address, _next = _next, _next + pages
    return address


def place(code: bytes, address: int) -> None:
    """Write code to reserved memory, and make it executable."""
    ctypes.memmove(address, code, len(code))
    if _mprotect(address, len(code), _READ_AND_EXECUTE):
        raise OSError(ctypes.get_errno(), f"{len(code)} bytes of machine code cannot be made executable")


if sys.platform == "linux":
    _libc = ctypes.CDLL(None, use_errno=True)
    _mmap, _mprotect = _libc.mmap, _libc.mprotect
    _mmap.restype = ctypes.c_size_t
    _mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    _mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
