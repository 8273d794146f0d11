"""Threads that share large loops. What a loop computes never depends on how many there are."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np

from . import blas
from .host import builtin, compile_ir


def available_cpus() -> int:
    """How many processors this process may use: its affinity, cut down to the container's quota."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no affinity
        count = os.cpu_count() or 1
    quota = _cgroup_quota()
    return max(1, min(count, round(quota))) if quota else count


def _cgroup_quota() -> float | None:
    """Processors granted by the cgroup (version 2, then 1), or None without a limit."""
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        return None if quota == "max" else float(quota) / float(period)
    except (OSError, ValueError):
        pass
    try:
        with open("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") as file:
            microseconds = int(file.read())
        with open("/sys/fs/cgroup/cpu/cpu.cfs_period_us") as file:
            return microseconds / int(file.read()) if microseconds > 0 else None
    except (OSError, ValueError):
        return None


# A worker's slot, in int64 words. `generation` counts the jobs given, `claim` those that somebody has begun (the worker,
# or the caller, if the worker is slow to wake up), `done` those that are finished; those two have their own cache line.
_SLOT_WORDS = 16
AWAKE, JOB, CLAIM, DONE = 1, 2, 8, 9  # GENERATION is word 0; JOB: function, operands, meta, begin, end

# How often an idle worker looks for the next job before it parks: about 100 us. Waking a parked one takes 20 to 50 us,
# one that looks answers within a microsecond.
_LOOKS = 4096

_ARM = platform.machine() in ("aarch64", "arm64")
_PAUSE = "call void @llvm.aarch64.hint(i32 1)" if _ARM else "call void @llvm.x86.sse2.pause()"

# Where more threads than processors wait for each other, looking alone would keep the others from running.
_YIELD = "" if sys.platform == "win32" else "%yielded = call i32 @sched_yield()"


def _arguments_ir() -> str:
    """%x0 to %x4: the first five arguments of a call: three addresses and two numbers."""
    lines = []
    for k in range(5):
        lines.append(f"%g{k} = getelementptr ptr, ptr %args, i64 {k}\n%o{k} = load ptr, ptr %g{k}")
        lines.append(f"%x{k} = call ptr @PyLong_AsVoidPtr(ptr %o{k})" if k < 3 else
                     f"%q{k} = call ptr @PyLong_AsVoidPtr(ptr %o{k})\n%x{k} = ptrtoint ptr %q{k} to i64")  # fmt: skip
    return "\n".join(lines)


def _words_ir() -> str:
    """Store the arguments after the first one as the job of %slot."""
    lines = []
    for k in range(5):
        lines.append(f"%g{k} = getelementptr ptr, ptr %args, i64 {k + 1}\n%o{k} = load ptr, ptr %g{k}")
        lines.append(f"%x{k} = call ptr @PyLong_AsVoidPtr(ptr %o{k})")
        lines.append(f"%w{k} = getelementptr i64, ptr %slot, i64 {JOB + k}\nstore ptr %x{k}, ptr %w{k}")
    return "\n".join(lines)


def _job_ir(prefix: str) -> str:
    """Run the job in %slot."""
    names = ("function", "operands", "meta", "begin", "end")
    lines = []
    for k, name in enumerate(names):
        kind = "ptr" if k < 3 else "i64"
        lines.append(f"%{prefix}p{name} = getelementptr i64, ptr %slot, i64 {JOB + k}")
        lines.append(f"%{prefix}{name} = load {kind}, ptr %{prefix}p{name}")
    given = f"ptr %{prefix}operands, ptr %{prefix}meta, i64 %{prefix}begin, i64 %{prefix}end"
    lines.append(f"call void %{prefix}function({given})")
    return "\n".join(lines)


def _claim_ir(generation: str) -> str:
    """%mine: whether the caller is the one to do job `generation` of %slot."""
    return f"""
%pclaim = getelementptr i64, ptr %slot, i64 {CLAIM}
%earlier = sub i64 {generation}, 1
%exchange = cmpxchg ptr %pclaim, i64 %earlier, i64 {generation} seq_cst seq_cst, align 8
%mine = extractvalue {{ i64, i1 }} %exchange, 1"""


_IR = f"""
; Serve the jobs of a slot until none has come for a while. Runs without the interpreter's lock.
define void @serve(ptr %slot) {{
start:
%awake = getelementptr i64, ptr %slot, i64 {AWAKE}
%pdone = getelementptr i64, ptr %slot, i64 {DONE}
%first = load atomic i64, ptr %pdone acquire, align 8
store atomic i64 1, ptr %awake seq_cst, align 8
br label %look
look:
%seen = phi i64 [%first, %start], [%seen, %again], [%new, %served], [%new, %claim]
%looks = phi i64 [0, %start], [%more, %again], [0, %served], [0, %claim]
%wanted = load atomic i64, ptr %slot acquire, align 8
%come = icmp ne i64 %wanted, %seen
br i1 %come, label %claim, label %again
again:
{_PAUSE}
%more = add i64 %looks, 1
%patient = icmp slt i64 %more, {_LOOKS}
br i1 %patient, label %look, label %leave
claim:
%new = phi i64 [%wanted, %look], [%late, %missed]
{_claim_ir("%new")}
br i1 %mine, label %job, label %look
job:
{_job_ir("")}
store atomic i64 %new, ptr %pdone release, align 8
br label %served
served:
br label %look
leave:
store atomic i64 0, ptr %awake seq_cst, align 8
%late = load atomic i64, ptr %slot seq_cst, align 8
%unseen = icmp ne i64 %late, %seen
br i1 %unseen, label %missed, label %parked
missed:
store atomic i64 1, ptr %awake seq_cst, align 8
br label %claim
parked:
ret void
}}

; give(slot, function, operands, meta, begin, end): put a job into a slot. Returns whether its worker is awake.
define ptr @give(ptr %self, ptr %args, i64 %nargs) {{
%a0 = load ptr, ptr %args
%slot = call ptr @PyLong_AsVoidPtr(ptr %a0)
{_words_ir()}
%before = load i64, ptr %slot
%next = add i64 %before, 1
store atomic i64 %next, ptr %slot seq_cst, align 8
%pawake = getelementptr i64, ptr %slot, i64 {AWAKE}
%awake = load atomic i64, ptr %pawake seq_cst, align 8
%answer = call ptr @PyLong_FromSsize_t(i64 %awake)
ret ptr %answer
}}

; finish(function, operands, meta, begin, end, slots...): do the caller's part, then see that the slots' jobs are done.
define ptr @finish(ptr %self, ptr %args, i64 %nargs) {{
start:
%slots = alloca [1024 x ptr]
%a0 = load ptr, ptr %args
{_arguments_ir()}
br label %unpack
unpack:
%k = phi i64 [5, %start], [%k1, %unpack.one]
%unpacked = icmp sge i64 %k, %nargs
br i1 %unpacked, label %work, label %unpack.one
unpack.one:
%gk = getelementptr ptr, ptr %args, i64 %k
%ak = load ptr, ptr %gk
%given = call ptr @PyLong_AsVoidPtr(ptr %ak)
%place = getelementptr ptr, ptr %slots, i64 %k
store ptr %given, ptr %place
%k1 = add i64 %k, 1
br label %unpack
work:
%thread = call ptr @PyEval_SaveThread()
call void %x0(ptr %x1, ptr %x2, i64 %x3, i64 %x4)
br label %next
next:
%w = phi i64 [5, %work], [%w1, %finished]
%all = icmp sge i64 %w, %nargs
br i1 %all, label %done, label %one
one:
%pw = getelementptr ptr, ptr %slots, i64 %w
%slot = load ptr, ptr %pw
%pdone = getelementptr i64, ptr %slot, i64 {DONE}
%wanted = load i64, ptr %slot
{_claim_ir("%wanted")}
br i1 %mine, label %own, label %wait
own:
{_job_ir("own.")}
store atomic i64 %wanted, ptr %pdone release, align 8
br label %finished
wait:
%waits = phi i64 [0, %one], [%waits1, %pause]
%reached = load atomic i64, ptr %pdone acquire, align 8
%there = icmp eq i64 %reached, %wanted
br i1 %there, label %finished, label %hold
hold:
%waits1 = add i64 %waits, 1
%long = and i64 %waits1, 1023
%tired = icmp eq i64 %long, 0
br i1 %tired, label %give_way, label %pause
give_way:
{_YIELD}
br label %pause
pause:
{_PAUSE}
br label %wait
finished:
%w1 = add i64 %w, 1
br label %next
done:
call void @PyEval_RestoreThread(ptr %thread)
call void @Py_IncRef(ptr %a0)
ret ptr %a0
}}
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromSsize_t(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare i32 @sched_yield()
declare void {"@llvm.aarch64.hint(i32)" if _ARM else "@llvm.x86.sse2.pause()"}
"""


class _Native(NamedTuple):
    serve: Callable  # (slot): through ctypes, which gives up the interpreter's lock
    give: Callable
    finish: Callable


@functools.cache
def _native() -> _Native:
    serve, give, finish = compile_ir(_IR, "serve", "give", "finish")
    return _Native(
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(serve), builtin(give, "give"), builtin(finish, "finish")
    )


class _Worker:
    """A thread with a slot for jobs. It parks in Python, where any system has locks, and looks for jobs in machine code."""

    def __init__(self):
        self.words = np.zeros(_SLOT_WORDS, np.int64)
        self.slot = self.words.ctypes.data
        self.bell: SimpleQueue = SimpleQueue()
        threading.Thread(target=self._work, name="weft-worker", daemon=True).start()

    def _work(self):
        while True:
            self.bell.get()
            _native().serve(self.slot)


_threads = 0  # 0: not yet chosen
_workers: list[_Worker] = []


def get_num_threads() -> int:
    """How many threads share large loops and matrix products.

    >>> import weft
    >>> weft.get_num_threads() >= 1
    True
    """
    global _threads
    if _threads == 0:
        _threads = available_cpus()
    return _threads


def set_num_threads(count: int) -> None:
    """Use `count` threads for large loops and matrix products.

    Raises: RuntimeError unless `count` is a positive int.
    """
    global _threads
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"set_num_threads expects an int, but got {type(count).__name__}")
    if not 1 <= count < 2**31:
        raise RuntimeError(f"set_num_threads expects a positive integer, got {count}")
    _threads = count
    blas.set_threads(count)


# Held while the workers have a job; a Python thread that does not get it works alone.
busy = threading.Lock()


def _hire(count: int) -> None:
    while len(_workers) < count:
        _workers.append(_Worker())


def awake() -> bool:
    """Whether a worker is looking for its next job, so that even little work is worth sharing.

    One that is parked is woken, for the work that comes after this.
    """
    if get_num_threads() == 1:
        return False
    _hire(1)
    worker = _workers[0]
    if worker.words[AWAKE]:
        return True
    if worker.bell.empty():
        worker.bell.put(None)
    return False


def run(function: int, operands: int, meta: int, count: int, grain: int = 1) -> None:
    """Run `function(operands, meta, 0..count)`, split over the threads at multiples of `grain`. `busy` must be held."""
    native = _native()
    parts = min(get_num_threads(), count // grain)
    if parts <= 1:
        native.finish(function, operands, meta, 0, count)
        return
    _hire(parts - 1)
    edges = [*(count * part // parts // grain * grain for part in range(parts)), count]
    slots = []
    for part in range(1, parts):
        worker = _workers[part - 1]
        slots.append(worker.slot)
        if not native.give(worker.slot, function, operands, meta, edges[part], edges[part + 1]):
            worker.bell.put(None)
    native.finish(function, operands, meta, 0, edges[1], *slots)


def share(function: int, operands: int, meta: int, count: int, wanted: bool) -> None:
    """Run `function(operands, meta, 0..count)`, split over the threads if that is wanted and they are free."""
    if wanted and busy.acquire(blocking=False):
        try:
            run(function, operands, meta, count)
        finally:
            busy.release()
    else:
        _native().finish(function, operands, meta, 0, count)


def _after_fork() -> None:
    global busy
    _workers.clear()  # threads do not survive a fork
    busy = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
