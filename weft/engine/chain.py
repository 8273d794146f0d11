"""Chains: several launches that run as one, block by block, so that what one kernel writes is in the cache when the next reads it.

The loop of every kernel takes a range of its outermost dim. A chain runs the first rows through all its stages, then the next rows.
Softmax, for example, finds the maximum of a few rows, then their exponentials, then their sums. A value that one stage makes and
another one reads must be cut at the same places in both; `Chain.add` refuses a stage for which that is not so. The stages compute
what they would compute alone, so the bits are the same. A chain is one job for the workers.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from ..core.kernel_names import planned_name
from ..core.symbols import per_plan, trace_of
from . import tiers, workers
from .host import ERROR_CHECKS, RETURN_IF_FAILED, binder
from .kernel import PARALLEL_BYTES, SHARED_BYTES, Stage, block
from .structured import LOOP, Body, function

# Bytes that the stages touch for one block: half of a first-level cache (32 KiB). Measured on AMD Zen 4 with layer norm of 8192 x 512:
# 1.3 ms with blocks of 16 KiB, 1.8 ms with 64 KiB, 2.2 ms with 256 KiB.
BLOCK_BYTES = 1 << 14
# Bytes that the stages touch for one unit: a longer unit leaves the second-level cache between two stages anyway.
MOST_UNIT_BYTES = 1 << 20

# The words of meta: the units of a block and the number of stages, then for each stage the address of its loop, the place of its
# operands, the address of its meta, and the rows of a unit.
_HEADER, _STAGE = 2, 4
# The words of self: what `share` needs, then these, then the place and the kind of each argument.
_SELF = 8
_pack = struct.Struct(f"{_SELF}q").pack
_ADDRESS, _FLOAT, _DOUBLE = 0, 1, 2


def _chain(b: Body) -> None:
    """`chain(operands, meta, begin, end)`: units begin to end, a block of them after the other, each through all stages."""
    block, stages = b.meta(_HEADER)
    with b.loop("%begin", "%end", block) as first:
        behind = b.minimum(b.integer("add", first, block), "%end")
        with b.loop(0, stages) as k:
            own = b.at(b.place("%meta", (k, 8 * _STAGE)), 8 * _HEADER)
            loop, place, inner, rows = b.words(own, _STAGE)
            given = b.place("%operands", (place, 8))
            start, stop = (b.integer("mul", each, rows) for each in (first, behind))
            b.do(f"call void {b.pointer(loop)}(ptr {given}, ptr {b.pointer(inner)}, i64 {start}, i64 {stop})")


_CALL = f"""
define ptr @call(ptr %self, ptr %args, i64 %nargs) #0 {{
start:
%words = call ptr @PyBytes_AsString(ptr %self)
{
    "".join(
        f"%p{name} = getelementptr i64, ptr %words, i64 {k}{chr(10)}%{name} = load {kind}, ptr %p{name}, align 1{chr(10)}"
        for k, (kind, name) in enumerate(
            (
                ("ptr", "share"),
                ("ptr", "pool"),
                ("i64", "always"),
                ("ptr", "meta"),
                ("i64", "units"),
                ("ptr", "template"),
                ("i64", "length"),
                ("i64", "arguments"),
            )
        )
    )
}
%given = icmp eq i64 %nargs, %arguments
br i1 %given, label %unpack, label %miscounted
miscounted:
%raised = call i32 @PyErr_BadArgument()
ret ptr null
unpack:
%room = alloca i64, i64 %length, align 16
%bytes = mul i64 %length, 8
call void @llvm.memcpy.p0.p0.i64(ptr %room, ptr %template, i64 %bytes, i1 false)
%table = getelementptr i64, ptr %words, i64 {_SELF}
br label %argument
argument:
%k = phi i64 [0, %unpack], [%k1, %stored]
%parg = getelementptr ptr, ptr %args, i64 %k
%arg = load ptr, ptr %parg
%twice = mul i64 %k, 2
%pplace = getelementptr i64, ptr %table, i64 %twice
%place = load i64, ptr %pplace, align 1
%pkind = getelementptr i64, ptr %pplace, i64 1
%kind = load i64, ptr %pkind, align 1
%slot = getelementptr i64, ptr %room, i64 %place
switch i64 %kind, label %whole [ i64 {_FLOAT}, label %single
  i64 {_DOUBLE}, label %double ]
whole:
%integer = call i64 @PyLong_AsUnsignedLongLongMask(ptr %arg)
store i64 %integer, ptr %slot
br label %stored
single:
%wide = call double @PyFloat_AsDouble(ptr %arg)
%narrow = fptrunc double %wide to float
store float %narrow, ptr %slot
br label %stored
double:
%float = call double @PyFloat_AsDouble(ptr %arg)
store double %float, ptr %slot
br label %stored
stored:
%k1 = add i64 %k, 1
%more = icmp slt i64 %k1, %nargs
br i1 %more, label %argument, label %check
check:
{RETURN_IF_FAILED}
%alone = icmp eq ptr %pool, null
br i1 %alone, label %short, label %large
short:
call void @chain(ptr %room, ptr %meta, i64 0, i64 %units)
br label %finish
large:
call void %share(ptr %pool, ptr @chain, ptr %room, ptr %meta, i64 %units, i64 1, i64 %always)
br label %finish
finish:
%result = load ptr, ptr %args
call void @Py_IncRef(ptr %result)
ret ptr %result
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @PyBytes_AsString(ptr)
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare double @PyFloat_AsDouble(ptr)
declare void @Py_IncRef(ptr)
{ERROR_CHECKS}
"""


@functools.cache
def _code() -> int:
    declarations: set[str] = set()
    chain = function("chain", LOOP, declarations, _chain)
    (call,) = tiers.compile_ir("\n".join([*sorted(declarations), chain, _CALL]), "call")
    return call


class Operand(NamedTuple):
    """An operand that a launch gets the address of."""

    key: Hashable  # says which value it is; None for an input of the whole chain
    nbytes: int  # of the value
    offset: int  # bytes from the value's first byte to the operand's


class Chain:
    """Launches that are to run as one. The arguments of its entry are those of the launches, without their metas and counts."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.units = 0  # into which the work is cut
        self.work = 0
        self.nbytes: dict[Hashable, int] = {}  # of the values
        self.inputs = 0  # bytes
        self.made: set[Hashable] = set()

    def add(self, stage: object, operands: Sequence[Operand]) -> bool:
        """Append a launch, given what it keeps alive and its operands; whether it can be part of the chain."""
        if type(stage) is not Stage or any(each.key is None for each in operands[: stage.outputs]):
            return False
        written = {each.key for each in operands[: stage.outputs]}
        if not written.isdisjoint(self.nbytes.keys() - self.made):
            return False  # an earlier stage reads what this one writes over
        units = _common_divisor(self.units, stage.length) if self._cuts_alike(stage, operands) else 1
        nbytes = self.nbytes | {each.key: each.nbytes for each in operands if each.key is not None}
        inputs = self.inputs + sum(each.nbytes for each in operands if each.key is None)
        work = self.work + stage.work
        if self.stages and (units == 1 or inputs + sum(nbytes.values()) > units * MOST_UNIT_BYTES):
            if work >= SHARED_BYTES:
                return False
        self.stages.append(stage)
        self.units, self.work, self.nbytes, self.inputs = units, work, nbytes, inputs
        self.made |= written
        return True

    def _cuts_alike(self, stage: Stage, operands: Sequence[Operand]) -> bool:
        """Whether each part of the stage's outermost dim touches the same part of every value that the chain makes."""
        if not stage.divisible or self.units == 1:
            return False
        written = {each.key for each in operands[: stage.outputs]}
        for each, (outer, covered) in zip(operands, stage.reaches(), strict=True):
            if each.key in self.made or each.key in written:
                if each.offset or outer * stage.length != each.nbytes or covered > outer:
                    return False
        return True

    def entry(self) -> tuple[Callable, object]:
        """The function that runs the chain, and the memory that it reads besides that of its launches."""
        template: list[int] = []
        table: list[int] = []
        units = self.units or 1  # 0 for a chain without elements
        meta = [_units_of_block(self.inputs + sum(self.nbytes.values()), units), len(self.stages)]
        for stage in self.stages:
            template.append(stage.row)  # stands before the operands
            meta += [stage.loop, len(template), stage.meta.address, stage.length // units]
            for k, letter in enumerate(stage.letters):
                table += [len(template) + k, {"f": _FLOAT, "d": _DOUBLE}.get(letter, _ADDRESS)]
            template += [0] * len(stage.letters)
        words = block((*meta, *template))
        given = (words.address, units, words.address + 8 * len(meta), len(template), len(table) // 2)
        return _entry(planned_name(), self.work, given, _packed(tuple(table))), words


@per_plan
def _units_of_block(nbytes: int, units: int) -> int:
    return max(1, BLOCK_BYTES // max(nbytes // units, 1))


@per_plan
def _entry(name: str, work: int, given: tuple[int, ...], table: bytes) -> Callable:
    """The function that runs a chain with so much work, in bytes."""
    share, pool, _, always = workers.share_words(1, work >= PARALLEL_BYTES)
    return binder(_code(), name)(_pack(share, pool if work >= SHARED_BYTES else 0, always, *given) + table)


@functools.lru_cache(maxsize=1024)
def _packed(table: tuple[int, ...]) -> bytes:
    return struct.pack(f"{len(table)}q", *table)


def _common_divisor(a: int, b: int) -> int:
    if a == 0 or a == b:
        return b
    if trace_of((a, b)) is None:
        return math.gcd(a, b)
    return a if b % a == 0 else b if a % b == 0 else 1
