"""Steps: what a rank does in a collective, as a list that machine code carries out without the interpreter's lock.

A rank copies, also from the memory of other processes, computes, tells the others how far it is, and waits for them. Python writes the list, and the machine code works through
it. It returns to Python at the end, where two ranks disagree, or when it has waited for a while, so that Python can handle signals.

A rank tells how far it is by a *line*, a cache line in shared memory: word 0 is a number that only grows, and word 1 counts the
processes that sleep until it does. Waiting polls for some time, and then sleeps in the system's futex.
"""

from __future__ import annotations

import functools
import platform
import sys
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ...engine.host import ERROR_CHECKS, RETURN_IF_FAILED, binder, builtin, compile_ir, expect_addresses

LINE = 64  # bytes
WORDS = 8  # of a step: what to do, and up to seven numbers
COPY, APPLY, ARRIVE, RING, AWAIT, SAME, STORE, PULL = range(8)
DONE = -1  # instead of a kind of step, at the end of the list
# Words of the header of a program, after the number of the step where it stands: how many steps, places of arguments and arguments it has.
COUNT, PLACES, ARGUMENTS, HEADER = range(1, 5)

# How many times a rank polls before it sleeps, at least 50 us in all. Waking a sleeping process takes 50 us. A rank that polls lets others
# have its processor, because the rank that it waits for may need it: on a machine with two busy processors a barrier of two ranks takes
# 19 us, and 114 us without yielding (AMD Zen 5).
LOOKS, YIELD = 4096, 16
SLICE_NS = (
    50_000_000  # how long machine code sleeps before Python looks at signals and at the other processes
)

_ARM = platform.machine() in ("aarch64", "arm64")
_PAUSE = "call void @llvm.aarch64.hint(i32 1)" if _ARM else "call void @llvm.x86.sse2.pause()"
_FUTEX, _READ_PROCESS = (
    (98, 270) if _ARM else (202, 310)
)  # the numbers of system calls in Linux: futex, process_vm_readv
_WAIT, _WAKE = 0, 1


def _arguments(*names: str) -> str:
    """The words of a step behind the first, by name."""
    return "\n".join(
        f"%q{name} = getelementptr i64, ptr %step, i64 {k}\n%{name} = load {'ptr' if name.startswith('p') else 'i64'}, ptr %q{name}"
        for k, name in enumerate(names, 1)
    )


_IR = f"""
; Wake the processes that sleep until the number of a line grows.
define void @wake(ptr %line) {{
%psleepers = getelementptr i64, ptr %line, i64 1
%sleepers = load atomic i64, ptr %psleepers seq_cst, align 8
%some = icmp sgt i64 %sleepers, 0
br i1 %some, label %call, label %done
call:
%woken = call i64 (i64, ...) @syscall(i64 {_FUTEX}, ptr %line, i64 {
    _WAKE
}, i64 2147483647, i64 0, i64 0, i64 0)
br label %done
done:
ret void
}}

; Sleep until the number of a line grows to `target`, at most for `nanoseconds`.
define void @sleep(ptr %line, i64 %target, i64 %nanoseconds) {{
%time = alloca [2 x i64], align 16
store i64 0, ptr %time
%pnanoseconds = getelementptr i64, ptr %time, i64 1
store i64 %nanoseconds, ptr %pnanoseconds
%psleepers = getelementptr i64, ptr %line, i64 1
%before = atomicrmw add ptr %psleepers, i64 1 seq_cst
%value = load atomic i64, ptr %line seq_cst, align 8
%reached = icmp sge i64 %value, %target
br i1 %reached, label %done, label %call
call: ; the system compares the lower half of the number, and does not sleep if it has changed
%low = and i64 %value, 4294967295
%result = call i64 (i64, ...) @syscall(i64 {_FUTEX}, ptr %line, i64 {
    _WAIT
}, i64 %low, ptr %time, i64 0, i64 0)
br label %done
done:
%after = atomicrmw sub ptr %psleepers, i64 1 seq_cst
ret void
}}

; Whether the numbers of `count` lines, `stride` bytes apart, have all grown to `target`, after waiting if need be.
define i1 @await(ptr %lines, i64 %stride, i64 %count, i64 %target, i64 %looks, i64 %nanoseconds) {{
start:
br label %next
next:
%k = phi i64 [0, %start], [%k1, %reached]
%looked = phi i64 [0, %start], [%so_far, %reached]
%all = icmp sge i64 %k, %count
br i1 %all, label %yes, label %begin
begin:
%offset = mul i64 %k, %stride
%line = getelementptr i8, ptr %lines, i64 %offset
br label %look
look:
%so_far = phi i64 [%looked, %begin], [%more, %pause]
%value = load atomic i64, ptr %line acquire, align 8
%there = icmp sge i64 %value, %target
br i1 %there, label %reached, label %wait
reached:
%k1 = add i64 %k, 1
br label %next
wait:
%more = add i64 %so_far, 1
%patient = icmp slt i64 %more, %looks
br i1 %patient, label %again, label %tired
again:
%since = and i64 %more, {YIELD - 1}
%long = icmp eq i64 %since, 0
br i1 %long, label %give_way, label %pause
give_way:
%yielded = call i32 @sched_yield()
br label %pause
pause:
{_PAUSE}
br label %look
tired:
call void @sleep(ptr %line, i64 %target, i64 %nanoseconds)
%late = load atomic i64, ptr %line acquire, align 8
%grown = icmp sge i64 %late, %target
br i1 %grown, label %reached_late, label %no
reached_late:
%rest = sub i64 %count, %k
%again_all = call i1 @await(ptr %line, i64 %stride, i64 %rest, i64 %target, i64 %looks, i64 %nanoseconds)
ret i1 %again_all
no:
ret i1 0
yes:
ret i1 1
}}

; Copy bytes from the memory of another process; whether it worked.
define i1 @pull(ptr %to, i64 %from, i64 %nbytes, i64 %process) {{
start:
%target = alloca [2 x i64], align 16
%source = alloca [2 x i64], align 16
%target_size = getelementptr i64, ptr %target, i64 1
%source_size = getelementptr i64, ptr %source, i64 1
%first = ptrtoint ptr %to to i64
br label %next
next:
%moved = phi i64 [0, %start], [%more, %some]
%left = sub i64 %nbytes, %moved
%over = icmp sle i64 %left, 0
br i1 %over, label %yes, label %read
read:
%here = add i64 %first, %moved
%there = add i64 %from, %moved
store i64 %here, ptr %target
store i64 %left, ptr %target_size
store i64 %there, ptr %source
store i64 %left, ptr %source_size
%count = call i64 (i64, ...) @syscall(i64 {
    _READ_PROCESS
}, i64 %process, ptr %target, i64 1, ptr %source, i64 1, i64 0)
%failed = icmp sle i64 %count, 0
br i1 %failed, label %no, label %some
some:
%more = add i64 %moved, %count
br label %next
yes:
ret i1 1
no:
ret i1 0
}}

; Carry out the steps of a program from where it stands; returns the kind of the step at which it stops, {
    DONE
} at the end.
define i64 @carry_out(ptr %program) {{
start:
%pcount = getelementptr i64, ptr %program, i64 {COUNT}
%count = load i64, ptr %pcount
%steps = getelementptr i64, ptr %program, i64 {HEADER}
%begin = load i64, ptr %program
br label %next
next:
%k = phi i64 [%begin, %start], [%k1, %done]
%ended = icmp sge i64 %k, %count
br i1 %ended, label %end, label %one
one:
%first = mul i64 %k, {WORDS}
%step = getelementptr i64, ptr %steps, i64 %first
{_arguments("pa", "pb", "c", "d")}
%a = ptrtoint ptr %pa to i64
%b = ptrtoint ptr %pb to i64
%kind = load i64, ptr %step
switch i64 %kind, label %stop [ i64 {COPY}, label %copy
  i64 {APPLY}, label %apply
  i64 {ARRIVE}, label %arrive
  i64 {RING}, label %ring
  i64 {AWAIT}, label %await
  i64 {SAME}, label %same
  i64 {STORE}, label %store
  i64 {PULL}, label %pull ]
copy: ; to, from, bytes
call void @llvm.memcpy.p0.p0.i64(ptr %pa, ptr %pb, i64 %c, i1 false)
br label %done
apply: ; the loop of a kernel, its meta, the number of elements, its row, then the addresses of the operands
%operands = getelementptr i64, ptr %step, i64 5
call void %pa(ptr %operands, ptr %pb, i64 0, i64 %c)
br label %done
arrive: ; line, number
store atomic i64 %b, ptr %pa seq_cst, align 8
call void @wake(ptr %pa)
br label %done
ring: ; line, whose number several processes change
%grown = atomicrmw add ptr %pa, i64 1 seq_cst
call void @wake(ptr %pa)
br label %done
await: ; lines, bytes between them, their number, the number that they shall have
%all = call i1 @await(ptr %pa, i64 %b, i64 %c, i64 %d, i64 {LOOKS}, i64 {SLICE_NS})
br i1 %all, label %done, label %stop
same: ; two addresses, bytes
%order = call i32 @memcmp(ptr %pa, ptr %pb, i64 %c)
%equal = icmp eq i32 %order, 0
br i1 %equal, label %done, label %stop
store: ; to, number
store i64 %b, ptr %pa
br label %done
pull: ; to, where the address in the other process is, bytes, the process
%remote = load i64, ptr %pb
%whole = call i1 @pull(ptr %pa, i64 %remote, i64 %c, i64 %d)
br i1 %whole, label %done, label %stop
done:
%k1 = add i64 %k, 1
br label %next
stop:
store i64 %k, ptr %program
ret i64 %kind
end:
store i64 %k, ptr %program
ret i64 {DONE}
}}

; start(arguments...), bound to the address of a program: write the arguments where the steps have a place for them, then `carry_out`.
define ptr @start(ptr %self, ptr %args, i64 %nargs) {{
begin:
%program = call ptr @PyLong_AsVoidPtr(ptr %self)
%parguments = getelementptr i64, ptr %program, i64 {ARGUMENTS}
%arguments = load i64, ptr %parguments
%given = icmp eq i64 %nargs, %arguments
br i1 %given, label %counted, label %miscounted
miscounted:
%raised = call i32 @PyErr_BadArgument()
ret ptr null
counted:
%pplaces = getelementptr i64, ptr %program, i64 {PLACES}
%places = load i64, ptr %pplaces
%pcount = getelementptr i64, ptr %program, i64 {COUNT}
%count = load i64, ptr %pcount
%length = mul i64 %count, {WORDS}
%steps = getelementptr i64, ptr %program, i64 {HEADER}
%table = getelementptr i64, ptr %steps, i64 %length
br label %next
next:
%k = phi i64 [0, %counted], [%k1, %write]
%ended = icmp sge i64 %k, %places
br i1 %ended, label %written, label %write
write: ; of each place: the word, the number of the argument, what is added to it
%first = mul i64 %k, 3
%place = getelementptr i64, ptr %table, i64 %first
{_arguments("number", "offset").replace("%step", "%place")}
%word = load i64, ptr %place
%pargument = getelementptr ptr, ptr %args, i64 %number
%argument = load ptr, ptr %pargument
%pvalue = call ptr @PyLong_AsVoidPtr(ptr %argument)
%value = ptrtoint ptr %pvalue to i64
%sum = add i64 %value, %offset
%target = getelementptr i64, ptr %steps, i64 %word
store i64 %sum, ptr %target
%k1 = add i64 %k, 1
br label %next
written:
{RETURN_IF_FAILED}
store i64 0, ptr %program
%result = call ptr @released(ptr %program)
ret ptr %result
}}

; go_on(program): `carry_out`.
define ptr @go_on(ptr %self, ptr %args, i64 %nargs) {{
{expect_addresses(1)}
%result = call ptr @released(ptr %x0)
ret ptr %result
}}

; `carry_out` without the interpreter's lock, its result as an object.
define ptr @released(ptr %program) {{
%thread = call ptr @PyEval_SaveThread()
%kind = call i64 @carry_out(ptr %program)
call void @PyEval_RestoreThread(ptr %thread)
%result = call ptr @PyLong_FromSsize_t(i64 %kind)
ret ptr %result
}}
{ERROR_CHECKS}
declare i64 @syscall(i64, ...)
declare i32 @sched_yield()
declare i32 @memcmp(ptr, ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromSsize_t(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void {"@llvm.aarch64.hint(i32)" if _ARM else "@llvm.x86.sse2.pause()"}
"""


class _Code(NamedTuple):
    start: Callable[[int], Callable[..., int]]  # binds the machine code to the address of a program
    go_on: Callable[[int], int]


@functools.cache
def _code() -> _Code:
    if not sys.platform.startswith("linux"):
        raise NotImplementedError(
            "torch.distributed: groups of several processes need Linux, whose futex they wait in"
        )
    start, go_on = compile_ir(_IR, "start", "go_on", vectorize=False)
    return _Code(binder(start, "start"), builtin(go_on, "go_on"))


@dataclass(frozen=True, slots=True)
class Argument:
    """A word of a step that is known when the steps are carried out: an argument of `Steps.start` by its number, plus an offset."""

    number: int
    offset: int = 0

    def __add__(self, more: int) -> Argument:
        return Argument(self.number, self.offset + more)


Word = int | Argument


class Steps:
    """A program: a list of steps, in which some words may be arguments.

    In memory it is a header, the steps, and for each word that depends on an argument its place, the argument and the offset.
    """

    def __init__(self, arguments: int = 0) -> None:
        self.words: list[int] = []
        self._arguments = arguments
        self._places: list[int] = []

    def _add(self, *words: Word) -> None:
        for place, word in enumerate(words, len(self.words)):
            if isinstance(word, Argument):
                self._places += (place, word.number, word.offset)
        self.words += [0 if isinstance(word, Argument) else word for word in words]
        self.words += [0] * (WORDS - len(words))

    def copy(self, to: Word, source: Word, nbytes: int) -> None:
        if nbytes:
            self._add(COPY, to, source, nbytes)

    def apply(self, loop: int, meta: int, count: int, row: int, out: Word, *operands: Word) -> None:
        """Run the loop of a kernel over `count` elements; at most two operands."""
        if count:
            self._add(APPLY, loop, meta, count, row, out, *operands)

    def arrive(self, line: int, number: Word) -> None:
        self._add(ARRIVE, line, number)

    def ring(self, line: int) -> None:
        self._add(RING, line)

    def wait(self, lines: int, count: int, number: Word) -> None:
        self._add(AWAIT, lines, LINE, count, number)

    def same(self, a: int, b: int, nbytes: int) -> None:
        self._add(SAME, a, b, nbytes)

    def store(self, to: int, number: Word) -> None:
        self._add(STORE, to, number)

    def pull(self, to: Word, place: int, nbytes: int, process: int) -> None:
        """Copy from another process, in which the bytes are at the address that stands at `place`."""
        if nbytes:
            self._add(PULL, to, place, nbytes, process)

    @functools.cached_property
    def _packed(self) -> array:
        """The program in memory. No steps may be added after this."""
        header = (0, len(self.words) // WORDS, len(self._places) // 3, self._arguments)
        return array("q", [*header, *self.words, *self._places])

    @functools.cached_property
    def start(self) -> Callable[..., int]:
        """A function of the arguments that begins at the first step: the kind of step at which it stops, DONE at the end."""
        return _code().start(self._packed.buffer_info()[0])

    def carry_out(self) -> int:
        """Go on: the kind of step at which it stops, DONE at the end."""
        return _code().go_on(self._packed.buffer_info()[0])
