"""`__exit__` of context managers in machine code, so that no signal handler can raise before the state is restored."""

from __future__ import annotations

from ..core.restoring import Restoring
from . import tiers
from .host import METH_FASTCALL, add_symbol, keepalive, method

_RESTORE = keepalive("_restore")

_IR = """
@"weft.restore" = external global i8
define ptr @exit(ptr %self, ptr %args, i64 %nargs) #0 {
%room = alloca ptr
%kind = alloca ptr
%value = alloca ptr
%traceback = alloca ptr
store ptr %self, ptr %room
%first = call ptr @PyObject_VectorcallMethod(ptr @"weft.restore", ptr %room, i64 1, ptr null)
%failed = icmp eq ptr %first, null
br i1 %failed, label %again, label %done
again:
call void @PyErr_Fetch(ptr %kind, ptr %value, ptr %traceback)
%second = call ptr @PyObject_VectorcallMethod(ptr @"weft.restore", ptr %room, i64 1, ptr null)
%k = load ptr, ptr %kind
%v = load ptr, ptr %value
%t = load ptr, ptr %traceback
call void @PyErr_Restore(ptr %k, ptr %v, ptr %t)
%still = icmp eq ptr %second, null
br i1 %still, label %raise, label %drop
drop:
call void @Py_DecRef(ptr %second)
br label %raise
raise:
ret ptr null
done:
ret ptr %first
}
declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare void @Py_DecRef(ptr)
"""


def install() -> None:
    """Replace `Restoring.__exit__` by machine code."""
    add_symbol("weft.restore", id(_RESTORE))
    (address,) = tiers.compile_ir(_IR, "exit")
    Restoring.__exit__ = method(Restoring, "__exit__", address, METH_FASTCALL)  # type: ignore[method-assign]
