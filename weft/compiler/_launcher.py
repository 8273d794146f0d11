"""One machine-code function that runs a list of launches.

A kernel whose plan keeps a `Stage` (`engine/kernel.py`) is a loop in machine code, which gets the addresses and numbers of its
operands in an array. The launcher fills this array for one launch after the other: each address is that of a base (the
memory of an input, of a result, or of the block for intermediate values) plus a constant. So a launch costs a few nanoseconds besides its
kernel, and no Python.

The launcher also checks tensors from outside before the first launch, because machine code compares a class and a Spec in a
nanosecond. It answers True after the launches, MISS if a tensor is not as the record wants it, and None if a tensor has no
memory yet, so that Python must ask for it first.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.storage import Storage
from ..core.tensor import Tensor
from ..engine.host import ERROR_CHECKS, RETURN_IF_FAILED, builtin, compile_ir
from ..engine.kernel import SHARED_BYTES, Loop, Stage
from ..engine.objects import STORAGE, TENSOR, TYPE, add_object, name
from ..families.map_calls import new_tensor

MOST_ARGUMENTS = 62  # of a kernel; more would not fit into the launcher's array
CONSTANT = -1  # in place of a base: the word itself is the argument

# The words of a launch: its loop, the address and the count of its meta, its row, the number of its arguments; then two for each.
_HEAD = 5
# The self of the function: the address of the launches, their number, the number of bases, and four words for each base: what is given
# (NUMBER, STORAGE_ITSELF, or a tensor whose autograd must be None or not), and of a tensor its class and its Spec.
NUMBER, STORAGE_ITSELF, UNRECORDED, RECORDED = range(4)
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
%b = phi i64 [0, %unpack], [%b1, %found_base]
%more_bases = icmp slt i64 %b, %nargs
br i1 %more_bases, label %converted, label %check
converted:
%pb = getelementptr ptr, ptr %args, i64 %b
%object = load ptr, ptr %pb
%four = mul i64 %b, 4
%after = add i64 %four, 3
%pkind = getelementptr i64, ptr %words, i64 %after
%kind = load i64, ptr %pkind, align 1
switch i64 %kind, label %tensor [ i64 {NUMBER}, label %number
  i64 {STORAGE_ITSELF}, label %storage ]
number:
%given_number = call i64 @PyLong_AsUnsignedLongLongMask(ptr %object)
br label %found_base
storage:
%pfresh = getelementptr i8, ptr %object, i64 {STORAGE["ptr"]}
%fresh = load ptr, ptr %pfresh
%block = call i64 @PyLong_AsUnsignedLongLongMask(ptr %fresh)
br label %found_base
tensor:
%ptype = getelementptr i8, ptr %object, i64 {TYPE}
%type = load ptr, ptr %ptype
%pwanted = getelementptr i64, ptr %pkind, i64 1
%wanted_type = load ptr, ptr %pwanted, align 1
%is_type = icmp eq ptr %type, %wanted_type
br i1 %is_type, label %specs, label %miss
specs:
%pspec = getelementptr i8, ptr %object, i64 {TENSOR["spec"]}
%spec = load ptr, ptr %pspec
%pwanted_spec = getelementptr i64, ptr %pkind, i64 2
%wanted_spec = load ptr, ptr %pwanted_spec, align 1
%is_spec = icmp eq ptr %spec, %wanted_spec
br i1 %is_spec, label %edges, label %miss
edges:
%pedge = getelementptr i8, ptr %object, i64 {TENSOR["_autograd"]}
%edge = load ptr, ptr %pedge
%none = icmp eq ptr %edge, {name("none")}
%wants_none = icmp eq i64 %kind, {UNRECORDED}
%is_edge = icmp eq i1 %none, %wants_none
br i1 %is_edge, label %memory, label %miss
memory:
%pheld = getelementptr i8, ptr %object, i64 {TENSOR["_storage"]}
%held = load ptr, ptr %pheld
%pheld_type = getelementptr i8, ptr %held, i64 {TYPE}
%held_type = load ptr, ptr %pheld_type
%is_storage = icmp eq ptr %held_type, {name("storage")}
br i1 %is_storage, label %address, label %unusual
address:
%pptr = getelementptr i8, ptr %held, i64 {STORAGE["ptr"]}
%ptr_object = load ptr, ptr %pptr
%start = call i64 @PyLong_AsUnsignedLongLongMask(ptr %ptr_object)
%poffset = getelementptr i8, ptr %object, i64 {TENSOR["_byte_offset"]}
%offset_object = load ptr, ptr %poffset
%byte_offset = call i64 @PyLong_AsUnsignedLongLongMask(ptr %offset_object)
%place = add i64 %start, %byte_offset
br label %found_base
found_base:
%base_address = phi i64 [%given_number, %number], [%block, %storage], [%place, %address]
%slot = getelementptr i64, ptr %bases, i64 %b
store i64 %base_address, ptr %slot
%b1 = add i64 %b, 1
br label %base
miss:
call void @Py_IncRef(ptr {name("compiled.miss")})
ret ptr {name("compiled.miss")}
unusual:
call void @Py_IncRef(ptr {name("none")})
ret ptr {name("none")}
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
call void @Py_IncRef(ptr {name("true")})
ret ptr {name("true")}
}}
{new_tensor().text()}
define ptr @tensor(ptr %self, ptr %args, i64 %nargs) #0 {{
%given = icmp eq i64 %nargs, 2
br i1 %given, label %unpack, label %miscounted
miscounted:
%raised = call i32 @PyErr_BadArgument()
ret ptr null
unpack:
%storage = load ptr, ptr %args
%pspec = getelementptr ptr, ptr %args, i64 1
%spec = load ptr, ptr %pspec
call void @Py_IncRef(ptr %storage)
%new = call ptr @new_tensor(ptr %storage, ptr {name("zero")}, ptr %spec)
ret ptr %new
}}
declare ptr @PyType_GenericAlloc(ptr, i64)
declare void @Py_DecRef(ptr)
{"".join(f"{name(each)} = external global i8{chr(10)}" for each in ("none", "true", "zero", "tensor", "storage", "compiled.miss"))}
declare ptr @PyBytes_AsString(ptr)
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare void @Py_IncRef(ptr)
{ERROR_CHECKS}
"""


MISS: Any = type("Miss", (), {"__repr__": lambda self: "MISS"})()


@functools.cache
def _code() -> tuple[int, Callable]:
    """The address of the launcher, and a builtin `(storage, spec)` that makes a tensor at the begin of a storage."""
    for key, value in {
        "none": None,
        "true": True,
        "zero": 0,
        "tensor": Tensor,
        "storage": Storage,
        "compiled.miss": MISS,
    }.items():
        add_object(key, value)
    call, tensor = compile_ir(_IR, "call", "tensor")
    return call, builtin(tensor, "tensor")


def native_make() -> Callable:
    """A builtin `(storage, spec)` that makes a tensor at the begin of a storage."""
    return _code()[1]


def stage_of(keepalive: Any) -> Stage | Loop | None:
    """The loop of a launch whose plan is given, if the launcher can run it."""
    stage = getattr(keepalive, "keepalive", keepalive)
    if type(stage) is Loop:
        return stage
    fits = type(stage) is Stage and stage.work < SHARED_BYTES and len(stage.letters) <= MOST_ARGUMENTS
    return stage if fits else None


class Base(NamedTuple):
    """What the launcher gets for one base, see NUMBER."""

    kind: int = NUMBER
    type: Any = None
    spec: Any = None


def launcher(
    launches: Sequence[tuple[Stage | Loop, int, Sequence[tuple[int, Any]]]], bases: Sequence[Base]
) -> tuple[Callable, object]:
    """The function `(*bases)` that runs the launches, and what it needs alive.

    A launch is its stage, the count of its meta, and for each argument the number of its base and its offset; a number that is no
    address is (CONSTANT, number).
    """
    words: list[int] = []
    for stage, count, arguments in launches:
        words += [stage.loop, stage.meta.address, count, stage.row, len(arguments)]
        for letter, (base, value) in zip(stage.letters, arguments, strict=True):
            words += [base, value if base != CONSTANT else _word(letter, value)]
    memory = np.array(words, np.int64)
    described = [word for each in bases for word in (each.kind, id(each.type), id(each.spec), 0)]
    bound = struct.pack(f"{3 + len(described)}q", memory.ctypes.data, len(launches), len(bases), *described)
    return builtin(_code()[0], "launches", bound), (memory, launches, bases)


def _word(letter: str, value: Any) -> int:
    """A number as the kernel reads it from its word."""
    if letter in "fd":
        return int.from_bytes(struct.pack("f4x" if letter == "f" else "d", value), "little", signed=True)
    return (int(value) + (1 << 63)) % (1 << 64) - (1 << 63)
