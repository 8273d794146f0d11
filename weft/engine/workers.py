"""Threads that share large loops. The results of a loop do not depend on the number of threads."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..core.dtype import when_plans_expire
from ..core.locks import new_lock
from . import blas
from .background import at_end_of_warming, own_threads
from .host import ERROR_CHECKS, builtin, compile_ir, expect_addresses, keepalive


def available_cpus() -> int:
    """The number of processors that this process may use: those of its affinity, at most the quota of the container."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no affinity
        count = os.cpu_count() or 1
    quota = _cgroup_quota()
    return max(1, min(count, round(quota))) if quota else count


def _requested_threads() -> int | None:
    """How many threads the environment allows; None if it says nothing, or something that is no positive number.

    MKL_NUM_THREADS comes first, as in PyTorch, and OMP_NUM_THREADS may list numbers for nested loops: "4,2".
    """
    for name in ("MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").partition(",")[0].strip().removeprefix("+")
        if text.isdecimal() and int(text):
            return int(text)
    return None


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


# The layout of the pool, in int64 words: whether workers have jobs, the number of threads that programs ask for (the caller is
# one of them), the number of workers, the function that starts workers (a Python object), and the slots of the workers.
BUSY, WANTED, HIRED, HIRE, SLOTS = 0, 8, 9, 10, 11
MOST_WORKERS = 1024

# The layout of a worker's slot, in int64 words. Word 0, the generation, counts the jobs that the slot was given. CLAIM counts the
# jobs that a thread has begun: the worker, or the caller if the worker is slow to wake up. DONE counts the finished jobs. CLAIM and
# DONE have a cache line of their own. A parked worker waits for its lock, and the thread that sets AWAKE releases the lock.
_SLOT_WORDS = 24
AWAKE, LOCK, JOB, CLAIM, DONE = 1, 2, 3, 16, 17  # JOB: function, operands, meta, begin, end

# How many times an idle worker polls for the next job before it parks: about 100 us in all. Waking a parked worker takes 20 to
# 50 us, while a polling one answers within 1 us.
_LOOKS = 4096

_ARM = platform.machine() in ("aarch64", "arm64")
_PAUSE = "call void @llvm.aarch64.hint(i32 1)" if _ARM else "call void @llvm.x86.sse2.pause()"

# If there are more threads than processors, polling without a yield would keep the awaited thread from running.
_YIELD = "" if sys.platform == "win32" else "%yielded = call i32 @sched_yield()"

_JOB_WORDS = (("ptr", "function"), ("ptr", "operands"), ("ptr", "meta"), ("i64", "begin"), ("i64", "end"))

_IR = f"""
; Serve the jobs of a slot for ever, without the interpreter's lock.
define void @serve(ptr %slot) {{
start:
%awake = getelementptr i64, ptr %slot, i64 {AWAKE}
%plock = getelementptr i64, ptr %slot, i64 {LOCK}
%lock = load ptr, ptr %plock
%claim = getelementptr i64, ptr %slot, i64 {CLAIM}
br label %park
park:
%known = phi i64 [0, %start], [%seen, %leave], [%seen, %missed]
%got = call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
br label %look
look:
%seen = phi i64 [%known, %park], [%seen, %again], [%new, %run], [%new, %try]
%looks = phi i64 [0, %park], [%more, %again], [0, %run], [0, %try]
%wanted = load atomic i64, ptr %slot acquire, align 8
%come = icmp ne i64 %wanted, %seen
br i1 %come, label %try, label %again
again:
{_PAUSE}
%more = add i64 %looks, 1
%patient = icmp slt i64 %more, {_LOOKS}
br i1 %patient, label %look, label %leave
try:
%new = phi i64 [%wanted, %look], [%late, %missed]
%mine = call i1 @claim(ptr %slot, i64 %new)
br i1 %mine, label %run, label %look
run:
call void @work(ptr %slot, i64 %new)
br label %look
leave:
store atomic i64 0, ptr %awake seq_cst, align 8
%late = load atomic i64, ptr %slot seq_cst, align 8
%unseen = icmp ne i64 %late, %seen
br i1 %unseen, label %missed, label %park
missed: ; whoever gave that job may have released the lock already: then it has to be taken
%exchange = cmpxchg ptr %awake, i64 0, i64 1 seq_cst seq_cst, align 8
%still = extractvalue {{ i64, i1 }} %exchange, 1
br i1 %still, label %try, label %park
}}

; Whether the caller is the one to do job `generation` of a slot.
define i1 @claim(ptr %slot, i64 %generation) {{
%claim = getelementptr i64, ptr %slot, i64 {CLAIM}
%earlier = sub i64 %generation, 1
%exchange = cmpxchg ptr %claim, i64 %earlier, i64 %generation seq_cst seq_cst, align 8
%mine = extractvalue {{ i64, i1 }} %exchange, 1
ret i1 %mine
}}

; Do job `generation` of a slot.
define void @work(ptr %slot, i64 %generation) {{
{
    "".join(
        f"%p{name} = getelementptr i64, ptr %slot, i64 {JOB + k}{chr(10)}%{name} = load {kind}, ptr %p{name}{chr(10)}"
        for k, (kind, name) in enumerate(_JOB_WORDS)
    )
}
call void %function(ptr %operands, ptr %meta, i64 %begin, i64 %end)
%done = getelementptr i64, ptr %slot, i64 {DONE}
store atomic i64 %generation, ptr %done release, align 8
ret void
}}

; Wake the worker of a slot, if it is parked.
define void @wake(ptr %slot) {{
%awake = getelementptr i64, ptr %slot, i64 {AWAKE}
%exchange = cmpxchg ptr %awake, i64 0, i64 1 seq_cst seq_cst, align 8
%parked = extractvalue {{ i64, i1 }} %exchange, 1
br i1 %parked, label %ring, label %done
ring:
%plock = getelementptr i64, ptr %slot, i64 {LOCK}
%lock = load ptr, ptr %plock
call void @PyThread_release_lock(ptr %lock)
br label %done
done:
ret void
}}

; Put a job into a slot.
define void @give(ptr %slot, ptr %function, ptr %operands, ptr %meta, i64 %begin, i64 %end) {{
{
    "".join(
        f"%p{name} = getelementptr i64, ptr %slot, i64 {JOB + k}{chr(10)}store {kind} %{name}, ptr %p{name}{chr(10)}"
        for k, (kind, name) in enumerate(_JOB_WORDS)
    )
}
%before = load i64, ptr %slot
%next = add i64 %before, 1
store atomic i64 %next, ptr %slot seq_cst, align 8
call void @wake(ptr %slot)
ret void
}}

; See that the job of a slot is done: do it, unless its worker has begun.
define void @await(ptr %slot) {{
start:
%wanted = load i64, ptr %slot
%pdone = getelementptr i64, ptr %slot, i64 {DONE}
%mine = call i1 @claim(ptr %slot, i64 %wanted)
br i1 %mine, label %own, label %wait
own:
call void @work(ptr %slot, i64 %wanted)
ret void
wait:
%waits = phi i64 [0, %start], [%waits1, %pause]
%reached = load atomic i64, ptr %pdone acquire, align 8
%there = icmp eq i64 %reached, %wanted
br i1 %there, label %done, label %hold
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
done:
ret void
}}

; share(pool, function, operands, meta, count, grain, always): run function(operands, meta, 0..count), split over the threads
; at multiples of `grain`, but alone where the pool is busy, or its first worker parked and the job not worth waking it.
define void @share(ptr %pool, ptr %function, ptr %operands, ptr %meta, i64 %count, i64 %grain, i64 %always) {{
start:
%phired = getelementptr i64, ptr %pool, i64 {HIRED}
%slots = getelementptr i64, ptr %pool, i64 {SLOTS}
%large = icmp ne i64 %always, 0
%pwanted = getelementptr i64, ptr %pool, i64 {WANTED}
%wanted = load i64, ptr %pwanted
%units = sdiv i64 %count, %grain
%most = call i64 @llvm.smin.i64(i64 %units, i64 %wanted)
%needed = sub i64 %most, 1
%few = icmp sle i64 %needed, 0
br i1 %few, label %alone, label %staff
staff:
%there = load i64, ptr %phired
%staffed = icmp sge i64 %there, %needed
br i1 %staffed, label %ask, label %hire
hire:
%phire = getelementptr i64, ptr %pool, i64 {HIRE}
%function_hire = load ptr, ptr %phire
%answer = call ptr @PyObject_CallNoArgs(ptr %function_hire)
%interrupted = icmp eq ptr %answer, null
br i1 %interrupted, label %again_later, label %ask
again_later: ; Ctrl-C: this is no place to raise it
call void @PyErr_Clear()
call void @PyErr_SetInterrupt()
br label %ask
ask:
%hired = load i64, ptr %phired
%helpers = call i64 @llvm.smin.i64(i64 %hired, i64 %needed)
%parts = add i64 %helpers, 1
%none = icmp eq i64 %helpers, 0
br i1 %none, label %alone, label %value
value:
%first = load ptr, ptr %slots
%pawake = getelementptr i64, ptr %first, i64 {AWAKE}
%awake = load atomic i64, ptr %pawake seq_cst, align 8
%waiting = icmp ne i64 %awake, 0
%worth = or i1 %large, %waiting
br i1 %worth, label %take, label %later
later: ; for the work that comes after this; a worker that saw no job while this one ran has parked again
call void @wake(ptr %first)
call void %function(ptr %operands, ptr %meta, i64 0, i64 %count)
call void @wake(ptr %first)
ret void
take:
%exchange = cmpxchg ptr %pool, i64 0, i64 1 seq_cst seq_cst, align 8
%free = extractvalue {{ i64, i1 }} %exchange, 1
br i1 %free, label %begin, label %alone
begin:
%thread = call ptr @PyEval_SaveThread()
br label %next
next:
%k = phi i64 [1, %begin], [%k1, %one]
%from = phi i64 [0, %begin], [%to, %one]
%product = mul i64 %count, %k
%share = sdiv i64 %product, %parts
%whole = sdiv i64 %share, %grain
%edge = mul i64 %whole, %grain
%last = icmp eq i64 %k, %parts
%to = select i1 %last, i64 %count, i64 %edge
br i1 %last, label %own, label %one
one:
%before = sub i64 %k, 1
%pslot = getelementptr ptr, ptr %slots, i64 %before
%slot = load ptr, ptr %pslot
call void @give(ptr %slot, ptr %function, ptr %operands, ptr %meta, i64 %from, i64 %to)
%k1 = add i64 %k, 1
br label %next
own:
call void %function(ptr %operands, ptr %meta, i64 %from, i64 %to)
br label %collect
collect:
%w = phi i64 [0, %own], [%w1, %await]
%all = icmp sge i64 %w, %helpers
br i1 %all, label %done, label %await
await:
%pother = getelementptr ptr, ptr %slots, i64 %w
%other = load ptr, ptr %pother
call void @await(ptr %other)
%w1 = add i64 %w, 1
br label %collect
done:
store atomic i64 0, ptr %pool seq_cst, align 8
call void @PyEval_RestoreThread(ptr %thread)
ret void
alone:
br i1 %large, label %long, label %short
long: ; other threads of Python may go on
%saved = call ptr @PyEval_SaveThread()
call void %function(ptr %operands, ptr %meta, i64 0, i64 %count)
call void @PyEval_RestoreThread(ptr %saved)
ret void
short:
call void %function(ptr %operands, ptr %meta, i64 0, i64 %count)
ret void
}}

; run(pool, function, operands, meta, count, always): `share` for Python.
define ptr @run(ptr %self, ptr %args, i64 %nargs) {{
{expect_addresses(6)}
%count = ptrtoint ptr %x4 to i64
%always = ptrtoint ptr %x5 to i64
call void @share(ptr %x0, ptr %x1, ptr %x2, ptr %x3, i64 %count, i64 1, i64 %always)
call void @Py_IncRef(ptr %a0)
ret ptr %a0
}}
{ERROR_CHECKS}
declare ptr @PyLong_AsVoidPtr(ptr)
declare void @Py_IncRef(ptr)
declare i32 @PyThread_acquire_lock(ptr, i32)
declare void @PyThread_release_lock(ptr)
declare ptr @PyObject_CallNoArgs(ptr)
declare void @PyErr_Clear()
declare void @PyErr_SetInterrupt()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i64 @llvm.smin.i64(i64, i64)
declare i32 @sched_yield()
declare void {"@llvm.aarch64.hint(i32)" if _ARM else "@llvm.x86.sse2.pause()"}
"""


class _Native(NamedTuple):
    serve: Callable  # (slot): through ctypes, which gives up the interpreter's lock
    share: int  # the address
    run: Callable


@functools.cache
def _native() -> _Native:
    serve, share, run = compile_ir(_IR, "serve", "share", "run", vectorize=False)
    return _Native(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(serve), share, builtin(run, "run"))


at_end_of_warming(_native)


class _Worker:
    """A thread with a slot for jobs. It polls and waits for them in machine code, without the interpreter's lock."""

    def __init__(self):
        python = ctypes.pythonapi
        python.PyThread_allocate_lock.restype = ctypes.c_void_p
        lock = python.PyThread_allocate_lock()
        python.PyThread_acquire_lock(ctypes.c_void_p(lock), 1)
        # The thread outlives the interpreter's objects.
        self.words = keepalive(np.zeros(_SLOT_WORDS, np.int64))
        self.words[LOCK] = lock
        self.slot = self.words.ctypes.data
        thread = threading.Thread(target=_native().serve, args=(self.slot,), name="weft-worker", daemon=True)
        thread.start()
        own_threads.append(thread)


_pool = keepalive(np.zeros(SLOTS + MOST_WORKERS, np.int64))
_pool_address = _pool.ctypes.data  # NumPy makes two objects for it, in 1 us
_workers: list[_Worker] = []
_hiring = new_lock()


def _hire() -> None:
    """Start workers until there are as many as programs ask for, or as the system allows."""
    with _hiring:
        try:
            while len(_workers) < min(get_num_threads() - 1, MOST_WORKERS):
                worker = _Worker()
                _pool[SLOTS + len(_workers)] = worker.slot
                _workers.append(worker)
        except (RuntimeError, MemoryError):  # no more threads
            _set_num_threads(len(_workers) + 1)
        _pool[HIRED] = len(_workers)


def share_words(grain: int, always: bool) -> tuple[int, ...]:
    """The words that `share` needs beside a job: its address, and its arguments pool, grain and always."""
    get_num_threads()  # writes the number of threads into the pool
    return _native().share, _pool_address, grain, always


def run(function: int, operands: int, meta: int, count: int, always: bool) -> None:
    """Run `function(operands, meta, 0..count)`, split over the threads. always: also where workers must be woken for it."""
    get_num_threads()  # writes the number of threads into the pool
    _native().run(_pool_address, function, operands, meta, count, always)


def get_num_threads() -> int:
    """How many threads share large loops and matrix products.

    At first it is the number of processors, or what MKL_NUM_THREADS or OMP_NUM_THREADS says if that is less.

    >>> import weft
    >>> weft.get_num_threads() >= 1
    True
    """
    if _pool[WANTED] == 0:
        _pool[WANTED] = cpus = available_cpus()
        _pool[HIRE] = id(_hire)
        requested = _requested_threads()
        if requested is not None and requested < cpus:
            _set_num_threads(requested)
    return int(_pool[WANTED])


def set_num_threads(count: int) -> None:
    """Use `count` threads for large loops and matrix products.

    Raises: RuntimeError unless `count` is a positive int.
    """
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"set_num_threads expects an int, but got {type(count).__name__}")
    if not 1 <= count < 2**31:
        raise RuntimeError(f"set_num_threads expects a positive integer, got {count}")
    before = get_num_threads()
    _set_num_threads(count)
    if count != before:
        for forget in when_plans_expire:  # plans cut products for a number of threads
            forget()


def _set_num_threads(count: int) -> None:
    _pool[WANTED] = count
    blas.set_threads(count)


def _after_fork() -> None:
    _workers.clear()  # threads do not survive a fork
    _pool[BUSY] = _pool[HIRED] = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
