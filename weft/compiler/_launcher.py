"""One machine-code function that runs a list of launches.

A kernel whose plan keeps a `Stage` (`engine/kernel.py`) is a loop in machine code, which gets the addresses and numbers of its
operands in an array. The launcher fills this array for one launch after the other: each address is that of a base (the
memory of an input, of a result, or of the block for intermediate values) plus a constant. So a launch costs a few nanoseconds besides its
kernel, and no Python.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..engine.host import ERROR_CHECKS, RETURN_IF_FAILED, builtin, compile_ir
from ..engine.kernel import SHARED_BYTES, Stage

MOST_ARGUMENTS = 62  # of a kernel; more would not fit into the launcher's array
CONSTANT = -1  # in place of a base: the word itself is the argument

# The words of a launch: its loop, the address and the count of its meta, its row, the number of its arguments; then two for each.
_HEAD = 5
# The self of the function: the address of the launches, their number, the number of bases.
_IR = f"""
define ptr @call(ptr %self, ptr %args, i64 %nargs) #0 {{
entry:
%words = call ptr @PyBytes_AsString(ptr %self)
%launches = load ptr, ptr %words, align 1
%pcount = getelementptr i64, ptr %words, i64 1
%count = load i64, ptr %pcount, align 1
%pbases = getelementptr i64, ptr %words, i64 2
%wanted = load i64, ptr %pbases, align 1
%given = icmp eq i64 %nargs, %wanted
br i1 %given, label %unpack, label %miscounted
miscounted:
%raised = call i32 @PyErr_BadArgument()
ret ptr null
unpack:
%bases = alloca i64, i64 %nargs, align 16
%room = alloca [{MOST_ARGUMENTS + 2} x i64], align 16
%ops = getelementptr i64, ptr %room, i64 1
br label %base
base:
%b = phi i64 [0, %unpack], [%b1, %converted]
%more_bases = icmp slt i64 %b, %nargs
br i1 %more_bases, label %converted, label %check
converted:
%pb = getelementptr ptr, ptr %args, i64 %b
%object = load ptr, ptr %pb
%number = call i64 @PyLong_AsUnsignedLongLongMask(ptr %object)
%slot = getelementptr i64, ptr %bases, i64 %b
store i64 %number, ptr %slot
%b1 = add i64 %b, 1
br label %base
check:
{RETURN_IF_FAILED}
br label %launch
launch:
%k = phi i64 [0, %unpacked], [%k1, %run]
%at = phi ptr [%launches, %unpacked], [%next, %run]
%more = icmp slt i64 %k, %count
br i1 %more, label %prepare, label %done
prepare:
%loop = load ptr, ptr %at
%pmeta = getelementptr i64, ptr %at, i64 1
%meta = load ptr, ptr %pmeta
%plength = getelementptr i64, ptr %at, i64 2
%length = load i64, ptr %plength
%prow = getelementptr i64, ptr %at, i64 3
%row = load i64, ptr %prow
%pn = getelementptr i64, ptr %at, i64 4
%n = load i64, ptr %pn
%first = getelementptr i64, ptr %at, i64 {_HEAD}
store i64 %row, ptr %room
br label %argument
argument:
%j = phi i64 [0, %prepare], [%j1, %put]
%more_arguments = icmp slt i64 %j, %n
br i1 %more_arguments, label %fetch, label %run
fetch:
%twice = mul i64 %j, 2
%pbase = getelementptr i64, ptr %first, i64 %twice
%base_number = load i64, ptr %pbase
%pvalue = getelementptr i64, ptr %pbase, i64 1
%value = load i64, ptr %pvalue
%is_constant = icmp slt i64 %base_number, 0
br i1 %is_constant, label %put, label %relative
relative:
%pfound = getelementptr i64, ptr %bases, i64 %base_number
%found = load i64, ptr %pfound
%moved = add i64 %found, %value
br label %put
put:
%argument_value = phi i64 [%value, %fetch], [%moved, %relative]
%pop = getelementptr i64, ptr %ops, i64 %j
store i64 %argument_value, ptr %pop
%j1 = add i64 %j, 1
br label %argument
run:
call void %loop(ptr %ops, ptr %meta, i64 0, i64 %length)
%size = mul i64 %n, 2
%next = getelementptr i64, ptr %first, i64 %size
%k1 = add i64 %k, 1
br label %launch
done:
call void @Py_IncRef(ptr %self)
ret ptr %self
}}
declare ptr @PyBytes_AsString(ptr)
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare void @Py_IncRef(ptr)
{ERROR_CHECKS}
"""


@functools.cache
def _code() -> int:
    (call,) = compile_ir(_IR, "call")
    return call


def stage_of(keepalive: Any) -> Stage | None:
    """The loop of a launch whose plan is given, if the launcher can run it."""
    stage = getattr(keepalive, "keepalive", keepalive)
    fits = type(stage) is Stage and stage.work < SHARED_BYTES and len(stage.letters) <= MOST_ARGUMENTS
    return stage if fits else None


def launcher(
    launches: Sequence[tuple[Stage, int, Sequence[tuple[int, Any]]]], bases: int
) -> tuple[Callable, object]:
    """The function `(*addresses of the bases)` that runs the launches, and what it needs alive.

    A launch is its stage, the count of its meta, and for each argument the number of its base and its offset; a number that is no
    address is (CONSTANT, number).
    """
    words: list[int] = []
    for stage, count, arguments in launches:
        words += [stage.loop, stage.meta.ctypes.data, count, stage.row, len(arguments)]
        for letter, (base, value) in zip(stage.letters, arguments, strict=True):
            words += [base, value if base != CONSTANT else _word(letter, value)]
    memory = np.array(words, np.int64)
    bound = struct.pack("3q", memory.ctypes.data, len(launches), bases)
    return builtin(_code(), "launches", bound), (memory, launches)


def _word(letter: str, value: Any) -> int:
    """A number as the kernel reads it from its word."""
    if letter in "fd":
        return int.from_bytes(struct.pack("f4x" if letter == "f" else "d", value), "little", signed=True)
    return (int(value) + (1 << 63)) % (1 << 64) - (1 << 63)
