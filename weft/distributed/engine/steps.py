"""Steps: what a rank does in a collective, as a list that machine code carries out without the interpreter's lock.

A rank copies, computes, tells the others how far it is, and waits for them. Python writes the list, and the machine code works through
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

from ...engine.host import ERROR_CHECKS, builtin, compile_ir, expect_addresses

LINE = 64  # bytes
WORDS = 8  # of a step: what to do, and up to seven numbers
COPY, APPLY, ARRIVE, RING, AWAIT, SAME = range(6)

# How many times a rank polls before it sleeps, at least 50 us in all. Waking a sleeping process takes 50 us. A rank that polls lets others
# have its processor, because the rank that it waits for may need it: on a machine with two busy processors a barrier of two ranks takes
# 19 us, and 114 us without yielding (AMD Zen 5).
LOOKS, YIELD = 4096, 16
SLICE_NS = (
    50_000_000  # how long machine code sleeps before Python looks at signals and at the other processes
)

_ARM = platform.machine() in ("aarch64", "arm64")
_PAUSE = "call void @llvm.aarch64.hint(i32 1)" if _ARM else "call void @llvm.x86.sse2.pause()"
_FUTEX = 98 if _ARM else 202  # the number of the system call in Linux
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

; Carry out the steps from `begin` on; returns the number of the first one that is not done.
define i64 @carry_out(ptr %steps, i64 %begin, i64 %count, i64 %looks, i64 %nanoseconds) {{
start:
br label %next
next:
%k = phi i64 [%begin, %start], [%k1, %done]
%ended = icmp sge i64 %k, %count
br i1 %ended, label %stop, label %one
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
  i64 {SAME}, label %same ]
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
%all = call i1 @await(ptr %pa, i64 %b, i64 %c, i64 %d, i64 %looks, i64 %nanoseconds)
br i1 %all, label %done, label %stop
same: ; two addresses, bytes
%order = call i32 @memcmp(ptr %pa, ptr %pb, i64 %c)
%equal = icmp eq i32 %order, 0
br i1 %equal, label %done, label %stop
done:
%k1 = add i64 %k, 1
br label %next
stop:
ret i64 %k
}}

; run(steps, begin, count, looks, nanoseconds): `carry_out` for Python.
define ptr @run(ptr %self, ptr %args, i64 %nargs) {{
{expect_addresses(5)}
{chr(10).join(f"%n{k} = ptrtoint ptr %x{k} to i64" for k in range(1, 5))}
%thread = call ptr @PyEval_SaveThread()
%reached = call i64 @carry_out(ptr %x0, i64 %n1, i64 %n2, i64 %n3, i64 %n4)
call void @PyEval_RestoreThread(ptr %thread)
%result = call ptr @PyLong_FromSsize_t(i64 %reached)
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


@functools.cache
def _run() -> Callable[..., int]:
    if not sys.platform.startswith("linux"):
        raise NotImplementedError(
            "torch.distributed: groups of several processes need Linux, whose futex they wait in"
        )
    (run,) = compile_ir(_IR, "run", vectorize=False)
    return builtin(run, "run")


class Steps:
    """A list of steps."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self._done = 0
        self._packed: array | None = None

    def copy(self, to: int, source: int, nbytes: int) -> None:
        if nbytes:
            self.words += (COPY, to, source, nbytes, 0, 0, 0, 0)

    def apply(self, loop: int, meta: int, count: int, row: int, out: int, *operands: int) -> None:
        """Run the loop of a kernel over `count` elements; at most two operands."""
        if count:
            self.words += (APPLY, loop, meta, count, row, out, *operands, *(0,) * (2 - len(operands)))

    def arrive(self, line: int, number: int) -> None:
        self.words += (ARRIVE, line, number, 0, 0, 0, 0, 0)

    def ring(self, line: int) -> None:
        self.words += (RING, line, 0, 0, 0, 0, 0, 0)

    def wait(self, lines: int, count: int, number: int) -> None:
        self.words += (AWAIT, lines, LINE, count, number, 0, 0, 0)

    def same(self, a: int, b: int, nbytes: int) -> None:
        self.words += (SAME, a, b, nbytes, 0, 0, 0, 0)

    def carry_out(self) -> int | None:
        """Go on; what kind of step it stands at, None at the end."""
        if self._packed is None:
            self._packed = array("q", self.words)
        address, length = self._packed.buffer_info()
        count = length // WORDS
        self._done = _run()(address, self._done, count, LOOKS, SLICE_NS)
        return None if self._done == count else self._packed[self._done * WORDS]
