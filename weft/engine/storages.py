"""Allocation and release of the blocks of storages, in machine code.

CPython runs signal handlers between Python bytecodes. A Ctrl-C between taking a block and storing its address would leak the
block, and a Ctrl-C in `Storage.__del__` would be lost, because a finalizer cannot raise. In machine code neither can happen. It is
also faster: making and freeing a storage takes 0.15 us instead of 0.4 us.

The offsets of slots in an object are read from their member descriptors, so that no layout is assumed.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import llvmlite.binding as llvm

from ..core.device import CPU
from ..core.grad_mode import INFERENCE_VERSION, mode, open_inference
from ..core.storage import Storage
from . import exits, memory
from .host import METH_NOARGS, builtin, compile_ir, keepalive, method

# The offset of the type in an object, in bytes; free-threaded builds have more fields before it.
_TYPE = object.__basicsize__ - 8


def _offset(slot: str) -> int:
    """The offset of a slot in a Storage, in bytes: PyMemberDef.offset of its descriptor."""
    member = ctypes.c_void_p.from_address(id(Storage.__dict__[slot]) + object.__basicsize__ + 24).value
    assert member is not None
    return ctypes.c_ssize_t.from_address(member + 16).value


# The names that machine code refers to. It comes from the disk cache, so it must not contain addresses.
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
    "append": "append",
    "pop": "pop",
}


def _load(name: str, base: str, offset: int) -> str:
    return f"%p_{name} = getelementptr i8, ptr {base}, i64 {offset}\n%{name} = load ptr, ptr %p_{name}\n"


def _store(slot: str, value: str) -> str:
    return f"%s_{slot} = getelementptr i8, ptr %new, i64 {_offset(slot)}\nstore ptr {value}, ptr %s_{slot}\n"


def _ir() -> str:
    return f"""
; A Storage with a block of a bin. The self is a tuple (bin, nbytes, what makes the bin grow).
define ptr @allocate(ptr %self, ptr %args, i64 %nargs) #0 {{
start:
%pair = alloca [2 x ptr]
%bin = call ptr @PyTuple_GetItem(ptr %self, i64 0)
%modes = call i64 @PyList_Size(ptr @"weft.open_inference")
%usual = icmp eq i64 %modes, 0
br i1 %usual, label %look, label %mode
mode:
%inference = call ptr @PyObject_GetAttr(ptr @"weft.mode", ptr @"weft.inference")
%unknown = icmp eq ptr %inference, null
br i1 %unknown, label %failed, label %asked
asked:
call void @Py_DecRef(ptr %inference)
%on = icmp eq ptr %inference, @"weft.true"
%special = select i1 %on, ptr @"weft.inference_version", ptr @"weft.zero"
br label %look
look:
%version = phi ptr [@"weft.zero", %start], [%special, %asked], [%version, %late], [%version, %grown]
%blocks = call i64 @PyList_Size(ptr %bin)
%empty = icmp eq i64 %blocks, 0
br i1 %empty, label %grow, label %make
grow:
%function = call ptr @PyTuple_GetItem(ptr %self, i64 2)
%result = call ptr @PyObject_CallNoArgs(ptr %function)
%exhausted = icmp eq ptr %result, null
br i1 %exhausted, label %failed, label %grown
grown:
call void @Py_DecRef(ptr %result)
br label %look
make:
%nbytes = call ptr @PyTuple_GetItem(ptr %self, i64 1)
%new = call ptr @PyType_GenericAlloc(ptr @"weft.storage", i64 0)
%without = icmp eq ptr %new, null
br i1 %without, label %failed, label %take
take:
store ptr %bin, ptr %pair
%block = call ptr @PyObject_VectorcallMethod(ptr @"weft.pop", ptr %pair, i64 1, ptr null)
%none_left = icmp eq ptr %block, null
br i1 %none_left, label %late, label %fill
fill:
call void @Py_IncRef(ptr %nbytes)
call void @Py_IncRef(ptr %bin)
call void @Py_IncRef(ptr @"weft.cpu")
call void @Py_IncRef(ptr @"weft.none")
call void @Py_IncRef(ptr %version)
call void @Py_IncRef(ptr @"weft.false")
{_store("ptr", "%block")}
{_store("bin", "%bin")}
{_store("nbytes_", "%nbytes")}
{_store("device", '@"weft.cpu"')}
{_store("owner", '@"weft.none"')}
{_store("version", "%version")}
{_store("exposed", '@"weft.false"')}
ret ptr %new
late: ; another thread was faster
call void @PyErr_Clear()
call void @Py_DecRef(ptr %new)
br label %look
failed:
ret ptr null
}}

; Storage.__del__: the block goes back to its bin.
define ptr @release(ptr %self, ptr %unused) #0 {{
%pair = alloca [2 x ptr]
{_load("bin", "%self", _offset("bin"))}
{_load("block", "%self", _offset("ptr"))}
%no_bin = icmp eq ptr %bin, null
%no_block = icmp eq ptr %block, null
%unfinished = or i1 %no_bin, %no_block
br i1 %unfinished, label %done, label %ask
ask:
{_load("type", "%bin", _TYPE)}
%plain = icmp eq ptr %type, @"weft.bin"
%large = icmp eq ptr %type, @"weft.large_bin"
%listed = or i1 %plain, %large
br i1 %listed, label %append, label %other
append:
%failed = call i32 @PyList_Append(ptr %bin, ptr %block)
%full = icmp ne i32 %failed, 0
br i1 %full, label %raise, label %appended
appended:
br i1 %large, label %trim, label %done
trim:
%trimmed = call ptr @PyObject_CallNoArgs(ptr @"weft.trim")
br label %called
other:
store ptr %bin, ptr %pair
%second = getelementptr ptr, ptr %pair, i64 1
store ptr %block, ptr %second
%returned = call ptr @PyObject_VectorcallMethod(ptr @"weft.append", ptr %pair, i64 2, ptr null)
br label %called
called:
%answer = phi ptr [%trimmed, %trim], [%returned, %other]
%error = icmp eq ptr %answer, null
br i1 %error, label %caught, label %fine
fine:
call void @Py_DecRef(ptr %answer)
br label %done
caught:
%matches = call i32 @PyErr_ExceptionMatches(ptr @"weft.interrupt")
%interrupted = icmp ne i32 %matches, 0
br i1 %interrupted, label %again_later, label %raise
again_later: ; Ctrl-C in Python code: from here it would be printed and forgotten, so it is raised at the next place that can
call void @PyErr_Clear()
call void @PyErr_SetInterrupt()
br label %done
done:
call void @Py_IncRef(ptr @"weft.none")
ret ptr @"weft.none"
raise:
ret ptr null
}}
{"".join(f'@"weft.{name}" = external global i8{chr(10)}' for name in _OBJECTS)}
declare i64 @PyList_Size(ptr)
declare i32 @PyList_Append(ptr, ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyObject_CallNoArgs(ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)
declare i32 @PyErr_ExceptionMatches(ptr)
declare void @PyErr_Clear()
declare void @PyErr_SetInterrupt()
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
"""


@functools.cache
def _allocate() -> int:
    """The address of `allocate`. The first call also installs the machine code of `Storage.__del__` and of exits of contexts."""
    keepalive(list(_OBJECTS.values()))
    for name, value in _OBJECTS.items():
        llvm.add_symbol(f"weft.{name}", id(value))
    allocate, release = compile_ir(_ir(), "allocate", "release")
    Storage.__del__ = method(Storage, "__del__", release, METH_NOARGS)  # type: ignore[method-assign]
    exits.install()
    return allocate


@functools.lru_cache(maxsize=4096, typed=True)
def allocator(nbytes: int) -> Callable[[], Storage]:
    """A function that makes storages of this many bytes."""
    bin, allocate = memory.bin_for(nbytes), _allocate()
    if memory.FENCE:  # fenced blocks are never reused
        return lambda: Storage(bin.take(nbytes), nbytes, CPU, bin)
    return builtin(allocate, "allocate", (bin, nbytes, functools.partial(bin.grow, nbytes)))
