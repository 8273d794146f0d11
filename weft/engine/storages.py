"""Allocation and release of the blocks of storages, in machine code.

CPython runs signal handlers between Python bytecodes. A Ctrl-C between taking a block and storing its address would leak the
block, and a Ctrl-C in `Storage.__del__` would be lost, because a finalizer cannot raise. In machine code neither can happen. It is
also faster: making and freeing a storage takes 0.15 us instead of 0.4 us.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from ..core.device import CPU
from ..core.grad_mode import INFERENCE_VERSION, mode, open_inference
from ..core.storage import Storage
from ..core.symbols import Later, Symbol
from ..core.templates import add_atoms
from . import exits, memory
from .host import METH_NOARGS, binder, keepalive, method
from .objects import STORAGE, Function, add_memory, add_object, compile_functions, name, offset

add_atoms(memory.Bin)

# The names that machine code refers to.
_OBJECTS = {
    "storage": Storage,
    "cpu": CPU,
    "none": None,
    "false": False,
    "true": True,
    "zero": 0,
    "mode": mode,
    "inference": "inference",
    "inference_version": INFERENCE_VERSION,
    "bin": memory.Bin,
    "large_bin": memory.LargeBin,
    "open_inference": open_inference,
    "interrupt": KeyboardInterrupt,
    "trim": memory.trim,
    "grow": "grow",
    "append": "append",
    "pop": "pop",
}


# Calls of `when_busy` are counted down from here: the word is the number of storages until the next call, 0 for none.
_countdown = keepalive(ctypes.c_int64())
_busy: list[Callable[[], object]] = []


def when_busy(storages: int, function: Callable[[], object]) -> None:
    """Call `function` once, when so many more storages have been made."""
    _busy[:] = [function]
    _countdown.value = storages


def _run_busy() -> None:
    while _busy:
        _busy.pop()()


def _allocate() -> Function:
    """A Storage with a block of a bin. The self is a tuple (bin, nbytes)."""
    f = Function("allocate", "ptr %self, ptr %args, i64 %nargs")
    bin = f.tuple_item("%self", 0)
    left = f.load(name("countdown"), 0, "i64")
    f.require(f.differ(left, "0", "i64"), "uncounted")
    less = f.let(f"sub i64 {left}, 1")
    f.store(name("countdown"), 0, less, "i64")
    f.branch(f.same(less, "0", "i64"), "busy", "uncounted")
    f.label("busy")
    ran = f.call("PyObject_CallNoArgs", name("run_busy"))
    f.require(f.differ(ran, "null"), "failed")
    f.decref(ran)
    f.go("uncounted")
    f.label("uncounted")
    new = f.call("PyType_GenericAlloc", name("storage"), "0")
    f.branch(f.differ(new, "null"), "made", "failed")
    f.label("made")
    f.branch(f.same(f.list_size(name("open_inference")), "0", "i64"), "look", "mode")
    f.label("mode")
    inference = f.call("PyObject_GetAttr", name("mode"), name("inference"))
    f.branch(f.differ(inference, "null"), "asked", "drop")
    f.label("asked")
    f.decref(inference)  # True and False never die
    on = f.same(inference, name("true"))
    special = f.let(f"select i1 {on}, ptr {name('inference_version')}, ptr {name('zero')}")
    f.go("look")
    f.label("look")
    zero = name("zero")
    f.do(f"%version = phi ptr [{zero}, %made], [{special}, %asked], [%version, %late], [%version, %grown]")
    f.branch(f.same(f.list_size(bin), "0", "i64"), "grow", "take")
    f.label("grow")
    given = f.room(2)
    f.store(given, 0, bin)
    f.store(given, 8, f.tuple_item("%self", 1))
    result = f.call("PyObject_VectorcallMethod", name("grow"), given, "2", "null")
    f.branch(f.differ(result, "null"), "grown", "drop")
    f.label("grown")
    f.decref(result)
    f.go("look")
    f.label("late")  # another thread was faster
    f.call("PyErr_Clear")
    f.go("look")
    f.label("take")
    block = f.list_pop(bin)
    f.branch(f.differ(block, "null"), "fill", "late")
    f.label("fill")
    f.store(new, STORAGE["ptr"], block)
    parts = {
        "nbytes_": f.tuple_item("%self", 1),
        "bin": bin,
        "device": name("cpu"),
        "owner": name("none"),
        "version": "%version",
        "exposed": name("false"),
    }
    for slot, value in parts.items():
        f.incref(value)
        f.store(new, STORAGE[slot], value)
    f.ret(new)
    f.label("drop")
    f.decref(new)
    f.go("failed")
    f.label("failed")
    f.ret("null")
    return f


def _release() -> Function:
    """`Storage.__del__`: the block goes back to its bin."""
    f = Function("release", "ptr %self, ptr %unused")
    bin, block = f.load("%self", STORAGE["bin"]), f.load("%self", STORAGE["ptr"])
    f.require(f.differ(bin, "null"), "done")
    f.require(f.differ(block, "null"), "done")
    kind = f.type_of(bin)
    large = f.same(kind, name("large_bin"))
    f.branch(f.let(f"or i1 {large}, {f.same(kind, name('bin'))}"), "append", "other")
    f.label("append")
    failed = f.list_append(bin, block)
    f.require(f.same(failed, "0", "i32"), "raise")
    f.branch(large, "count", "done")
    f.label("count")
    size = f.call("PyLong_AsLongLongAndOverflow", f.load(bin, offset(memory.Bin, "size")), f.room(1))
    before = f.let(f"atomicrmw sub ptr {name('room')}, i64 {size} monotonic")
    f.branch(f.let(f"icmp slt i64 {before}, {size}"), "trim", "done")
    f.label("trim")
    trimmed = f.call("PyObject_CallNoArgs", name("trim"))
    f.go("called")
    f.label("other")
    pair = f.room(2)
    f.store(pair, 0, bin)
    f.store(pair, 8, block)
    returned = f.call("PyObject_VectorcallMethod", name("append"), pair, "2", "null")
    f.go("called")
    f.label("called")
    answer = f.let(f"phi ptr [{trimmed}, %trim], [{returned}, %other]")
    f.require(f.differ(answer, "null"), "caught")
    f.decref(answer)
    f.go("done")
    f.label("caught")
    # Ctrl-C in Python code: from here it would be printed and forgotten, so it is raised at the next place that can.
    matches = f.call("PyErr_ExceptionMatches", name("interrupt"))
    f.require(f.differ(matches, "0", "i32"), "raise")
    f.call("PyErr_Clear")
    f.call("PyErr_SetInterrupt")
    f.go("done")
    f.label("done")
    f.incref(name("none"))
    f.ret(name("none"))
    f.label("raise")
    f.ret("null")
    return f


@functools.cache
def _machine_code() -> int:
    """The address of `allocate`. The first call also installs the machine code of `Storage.__del__` and of exits of contexts."""
    for key, value in {**_OBJECTS, "run_busy": _run_busy}.items():
        add_object(key, value)
    add_memory("countdown", ctypes.addressof(_countdown))
    add_memory("room", ctypes.addressof(memory.room))
    allocate, release = compile_functions([_allocate(), _release()], "allocate", "release")
    add_memory("allocate", allocate)
    Storage.__del__ = method(Storage, "__del__", release, METH_NOARGS)  # type: ignore[method-assign]
    exits.install()
    return allocate


def install_finalizer() -> None:
    """Free blocks in machine code from now on, which knows that a storage whose bytes were never computed has none."""
    _machine_code()


def allocator(nbytes: int) -> Any:
    """A function that makes storages of this many bytes."""
    return Later(_allocator, (nbytes,), nbytes.trace) if type(nbytes) is Symbol else _allocator(nbytes)


def _allocator(nbytes: int) -> Callable[[], Storage]:
    bin = memory.bin_for(nbytes)
    if memory.FENCE:  # fenced blocks are never reused
        return lambda: Storage(bin.take(nbytes), nbytes, CPU, bin)
    return _binder()((bin, nbytes))


@functools.cache
def _binder() -> Callable[[tuple], Callable[[], Storage]]:
    return binder(_machine_code(), "allocate")
