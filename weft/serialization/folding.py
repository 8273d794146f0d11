"""CRC-32 at the speed of memory, with carry-less multiplication if the processor has it.

A message is a polynomial over GF(2). Its checksum is the remainder of the division by the polynomial of CRC-32. Two 64-bit
multiplications replace 16 bytes of the message by 16 bytes further on with the same remainder. So four registers, of 16 or of
64 bytes each, fold the message into its last block, and zlib computes the checksum of this block.

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
REGISTERS = 4  # registers that fold in parallel


def power(n: int) -> int:
    """x**n modulo the polynomial. The lowest power is in the highest of 33 bits, as the algorithm needs it."""
    value = 1
    for _ in range(n):
        value <<= 1
        value ^= _POLYNOMIAL * (value >> 32)
    return int(f"{value:032b}"[::-1], 2) << 1


def combine(first: int, second: int, size: int) -> int:
    """Return the checksum of two pieces in a row, from their checksums and the size of the second in bytes."""
    return _product(_shift(size), first) ^ second


@functools.cache
def _shift(size: int) -> int:
    """Compute x**(8 * size) modulo the polynomial, lowest power in the highest of 32 bits."""
    result, base = 0x80000000, 0x00800000  # 1 and x**8
    while size:
        if size & 1:
            result = _product(result, base)
        base = _product(base, base)
        size >>= 1
    return result


def _product(a: int, b: int) -> int:
    """Return the product of two polynomials modulo that of CRC-32, lowest power in the highest of 32 bits."""
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
        """LLVM code that sets %name to `value`, moved on by `distance` bytes, plus `other`."""
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
        """@fold(out, data, blocks, register) folds the register and `blocks` > 0 blocks into one block."""
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
    """Compiled code, and the number of bytes that it processes at a time."""

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
    """The widths of the registers for which this processor has carry-less multiplication, largest first."""
    features = cpu()[1].split(",")
    wide = (4,) if {"+vpclmulqdq", "+avx512f"} <= {*features} else ()
    return (*wide, 1) if "+pclmul" in features else ()


def crc32(content: Any, crc: int = 0) -> int:
    """zlib.crc32 of a buffer of bytes, but faster. Releases the GIL."""
    rest = memoryview(content)
    for width in widths():
        block, run = folder(width)
        count = len(rest) // block
        if count:
            folded = ctypes.create_string_buffer(block)
            run(folded, np.frombuffer(rest, np.uint8).ctypes.data, count, crc ^ 0xFFFFFFFF)
            crc = zlib.crc32(folded, 0xFFFFFFFF)  # the state of a register that was 0 before the folded block
            rest = rest[block * count :]
    return zlib.crc32(rest, crc)
