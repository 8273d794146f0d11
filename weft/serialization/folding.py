"""CRC-32 at the speed of memory, by multiplication without carries where the processor has it.

A message is a polynomial over two elements, and its checksum what it leaves when divided by the polynomial of CRC-32.
16 bytes can be replaced by what they leave at a place further on, with two multiplications of 64 bits. So four
registers, of 16 bytes or of 64 each, fold the message into its last block, and zlib does that.

Source: V. Gopal et al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction, Intel 2009.
"""

from __future__ import annotations

import ctypes
import functools
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..engine.host import compile_ir, cpu

_POLYNOMIAL = 0x104C11DB7
REGISTERS = 4  # that fold side by side


def power(n: int) -> int:
    """x**n modulo the polynomial, bits in the order of the algorithm: the lowest power is the highest of 33 bits."""
    value = 1
    for _ in range(n):
        value <<= 1
        value ^= _POLYNOMIAL * (value >> 32)
    return int(f"{value:032b}"[::-1], 2) << 1


def combine(first: int, second: int, size: int) -> int:
    """The checksum of two pieces one after the other, from those of the pieces and the size of the second in bytes."""
    return _product(_shift(size), first) ^ second


@functools.cache
def _shift(size: int) -> int:
    """x**(8 * size) modulo the polynomial, lowest power in the highest of 32 bits."""
    result, base = 0x80000000, 0x00800000  # 1 and x**8
    while size:
        if size & 1:
            result = _product(result, base)
        base = _product(base, base)
        size >>= 1
    return result


def _product(a: int, b: int) -> int:
    """Product of two polynomials modulo that of CRC-32, lowest power in the highest of 32 bits."""
    result = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            result ^= b
        b = (b >> 1) ^ (0xEDB88320 if b & 1 else 0)
    return result


class _Code:
    """The LLVM code for registers of `width` times 16 bytes."""

    def __init__(self, width: int):
        self.width = width
        self.block = 16 * width * REGISTERS
        self.type = f"<{2 * width} x i64>"
        self.intrinsic = "@llvm.x86.pclmulqdq" + {1: "", 2: ".256", 4: ".512"}[width]

    def fold(self, name: str, value: str, distance: int, other: str) -> str:
        """%name: `value` moved `distance` bytes on, added to `other`."""
        low, high = power(8 * distance + 32), power(8 * distance - 32)
        constant = "<" + ", ".join([f"i64 {low}, i64 {high}"] * self.width) + ">"
        return f"""
%{name}l = call {self.type} {self.intrinsic}({self.type} {value}, {self.type} {constant}, i8 0)
%{name}h = call {self.type} {self.intrinsic}({self.type} {value}, {self.type} {constant}, i8 17)
%{name}s = xor {self.type} %{name}l, %{name}h
%{name} = xor {self.type} %{name}s, {other}"""

    def load(self, name: str, base: str, k: int) -> str:
        return (
            f"%{name}p{k} = getelementptr i8, ptr {base}, i64 {16 * self.width * k}\n"
            f"%{name}{k} = load {self.type}, ptr %{name}p{k}, align 1"
        )

    def main(self) -> str:
        """@fold(out, data, blocks, register): the register and `blocks` > 0 blocks, folded into one block."""
        each = range(REGISTERS)
        phi = f"phi {self.type} [%start, %entry], [%b0, %loop]"
        phis = [phi, *(f"phi {self.type} [%v{k}, %entry], [%b{k}, %loop]" for k in each[1:])]
        return "\n".join(
            [
                f"declare {self.type} {self.intrinsic}({self.type}, {self.type}, i8)",
                "define void @fold(ptr %out, ptr %data, i64 %blocks, i64 %register) #0 {\nentry:",
                *(self.load("v", "%data", k) for k in each),
                f"%first = insertelement {self.type} zeroinitializer, i64 %register, i32 0",
                f"%start = xor {self.type} %v0, %first",
                "%single = icmp eq i64 %blocks, 1",
                "br i1 %single, label %exit, label %loop\nloop:",
                "%i = phi i64 [1, %entry], [%next, %loop]",
                *(f"%a{k} = {phis[k]}" for k in each),
                f"%offset = mul i64 %i, {self.block}\n%block = getelementptr i8, ptr %data, i64 %offset",
                *(self.load("w", "%block", k) for k in each),
                *(self.fold(f"b{k}", f"%a{k}", self.block, f"%w{k}") for k in each),
                "%next = add i64 %i, 1\n%more = icmp ult i64 %next, %blocks",
                "br i1 %more, label %loop, label %exit\nexit:",
                *(f"%c{k} = {phis[k]}" for k in each),
                *(
                    f"%o{k} = getelementptr i8, ptr %out, i64 {16 * self.width * k}\n"
                    f"store {self.type} %c{k}, ptr %o{k}, align 1"
                    for k in each
                ),
                "ret void\n}\n",
            ]
        )


class Folder(NamedTuple):
    """Compiled code, and how many bytes it takes at a time."""

    block: int
    run: Callable[[Any, int, int, int], None]


@functools.cache
def folder(width: int) -> Folder:
    """The code for registers of `width` times 16 bytes."""
    code = _Code(width)
    (address,) = compile_ir(code.main(), "fold")
    kind = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    return Folder(code.block, kind(address))


@functools.cache
def widths() -> tuple[int, ...]:
    """The widths of registers that this processor has for multiplication without carries, widest first."""
    features = cpu()[1].split(",")
    wide = (4,) if {"+vpclmulqdq", "+avx512f"} <= {*features} else ()
    return (*wide, 1) if "+pclmul" in features else ()


def crc32(content: Any, crc: int = 0) -> int:
    """zlib.crc32 of a buffer of bytes, faster; other threads run meanwhile."""
    rest = memoryview(content)
    for width in widths():
        block, run = folder(width)
        count = len(rest) // block
        if count:
            folded = ctypes.create_string_buffer(block)
            run(folded, np.frombuffer(rest, np.uint8).ctypes.data, count, crc ^ 0xFFFFFFFF)
            crc = zlib.crc32(folded, 0xFFFFFFFF)  # a register that was 0 before the folded block
            rest = rest[block * count :]
    return zlib.crc32(rest, crc)
