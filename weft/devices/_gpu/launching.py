"""The entry of a launch by a driver, in machine code: it copies addresses and numbers into the arguments of the kernel and launches it.

The drivers of NVIDIA and AMD are called in the same way. `api` is "CUDA" or "HIP".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ...core.kernel_names import named_per_plan, planned_name
from ...engine.host import binder, builtin, compile_ir, operands_ir

# Words of the meta of a launch. Behind them are the place of each argument among the words that the kernel gets, and these words.
_WORDS = (
    "launch",
    "enter",
    "context",
    "busy",
    "before",
    "kernel",
    "compile",
    "turn",
    "turning",
    "groups",
    "threads",
    "count",
)


def meta_ir(words: Sequence[str]) -> str:
    """Load the words at `%meta`: %m.NAME for each name."""
    return "\n".join(
        f"%w{k} = getelementptr i64, ptr %meta, i64 {k}\n%m.{name} = load i64, ptr %w{k}"
        for k, name in enumerate(words)
    )


def _call_if_ir(word: str, condition: str, called: str) -> str:
    """Call the object at `%m.{called}` if the word at `%m.{word}` is 0 ("eq"), or is not ("ne"). If it raises, the entry does."""
    return f"""
%{word} = inttoptr i64 %m.{word} to ptr
%{word}.now = load i64, ptr %{word}
%{called}.is_due = icmp {condition} i64 %{word}.now, 0
br i1 %{called}.is_due, label %{called}.call, label %{called}.done
{call_ir(called, f"{called}.done")}
{called}.done:
"""


def call_ir(called: str, then: str) -> str:
    """The block `{called}.call`, which calls the object at `%m.{called}` and goes on to the block `then`. If the object raises, the entry does."""
    return f"""
{called}.call:
%{called} = inttoptr i64 %m.{called} to ptr
%{called}.result = call ptr @PyObject_CallNoArgs(ptr %{called})
%{called}.worked = icmp ne ptr %{called}.result, null
br i1 %{called}.worked, label %{called}.forget, label %failed
{called}.forget:
call void @Py_DecRef(ptr %{called}.result)
br label %{then}
"""


# Call what has to be done before other work, see `Runtime.call_before_work`.
BEFORE_WORK = _call_if_ir("busy", "ne", "before")

# Compile the kernel if this is its first launch, see `LazyKernel`.
_COMPILED = f"""
{_call_if_ir("kernel", "eq", "compile")}
%handle = load i64, ptr %kernel
%function = inttoptr i64 %handle to ptr
"""

# Load the queue of the current stream of this thread: %queue, and %turn.words, which are described in `driver.py`. Another thread may run while `turning` is
# called, so the words are looked at again afterwards. Nothing behind this calls Python before the launch.
TURN = f"""
br label %turn
turn:
%turn.words = inttoptr i64 %m.turn to ptr
%turn.thread = load i64, ptr %turn.words
%thread = call i64 @PyThread_get_thread_ident()
%turn.is_own = icmp eq i64 %turn.thread, %thread
br i1 %turn.is_own, label %turned, label %turning.call
{call_ir("turning", "turn")}
turned:
%queue.word = getelementptr i64, ptr %turn.words, i64 1
%queue = load ptr, ptr %queue.word
"""

_DECLARATIONS = """
@PyExc_RuntimeError = external global ptr
declare ptr @PyErr_Format(ptr, ptr, ...)
declare ptr @PyObject_CallNoArgs(ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @PyLong_AsVoidPtr(ptr)
declare i64 @PyLong_AsSsize_t(ptr)
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare ptr @PyErr_Occurred()
declare i32 @PyErr_BadArgument()
declare i64 @PyThread_get_thread_ident()
"""


def ending_ir(message: str) -> str:
    """The end of an entry: it returns its first argument if the driver's answer `%code` is 0, else it raises RuntimeError with this message."""
    return f"""
%fine = icmp eq i32 %code, 0
br i1 %fine, label %launched, label %report
launched:
call void @Py_IncRef(ptr %a0)
ret ptr %a0
report:
%kind = load ptr, ptr @PyExc_RuntimeError
%none = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %kind, ptr @message, i32 %code)
br label %failed
}}
@message = private constant [{len(message) + 1} x i8] c"{message}\\00"
{_DECLARATIONS}
"""


# The last of the words by which a driver finds the arguments: CU_LAUNCH_PARAM_END and HIP_LAUNCH_PARAM_END.
_ENDS = {"CUDA": 0, "HIP": 3}


def launcher(letters: str, api: str) -> Callable:
    """The entry of launches whose arguments have these kinds: p for an address, else as in `param_letters`; then `meta` and `count`."""
    return _named_launcher(letters, api, planned_name())


@functools.cache
def _named_launcher(letters: str, api: str, name: str) -> Callable:
    return builtin(_code(letters, api, bound=False), name)


@named_per_plan
def bound_launcher(letters: str, api: str, meta: int) -> Callable:
    """Return the same without `meta` and `count`, for one meta."""
    return binder(_code(letters, api, bound=True), planned_name())(meta)


@functools.cache
def _code(letters: str, api: str, bound: bool) -> int:
    (address,) = compile_ir(_launch_ir(letters, api, bound), "call", vectorize=False)
    return address


def _launch_ir(letters: str, api: str, bound: bool) -> str:
    stores = "\n".join(
        f"%pp{k} = getelementptr i64, ptr %meta, i64 {len(_WORDS) + k}\n%place{k} = load i64, ptr %pp{k}\n"
        f"%from{k} = getelementptr i64, ptr %ops, i64 {k}\n%word{k} = load i64, ptr %from{k}\n"
        f"%to{k} = getelementptr i64, ptr %buffer, i64 %place{k}\nstore i64 %word{k}, ptr %to{k}"
        for k in range(len(letters))
    )
    return f"""
define ptr @call(ptr %self, ptr %args, i64 %nargs) #0 {{
{operands_ir(0, letters, bound)}
{meta_ir(_WORDS)}
{BEFORE_WORK}
{_COMPILED}
{TURN}
%nbytes = mul i64 %m.count, 8
%buffer = alloca i8, i64 %nbytes, align 16
%own = getelementptr i64, ptr %meta, i64 {len(_WORDS) + len(letters)}
call void @llvm.memcpy.p0.p0.i64(ptr %buffer, ptr %own, i64 %nbytes, i1 false)
{stores}
%size = alloca i64
store i64 %nbytes, ptr %size
%extra = alloca [5 x ptr]
store ptr inttoptr (i64 1 to ptr), ptr %extra
%e1 = getelementptr ptr, ptr %extra, i64 1
store ptr %buffer, ptr %e1
%e2 = getelementptr ptr, ptr %extra, i64 2
store ptr inttoptr (i64 2 to ptr), ptr %e2
%e3 = getelementptr ptr, ptr %extra, i64 3
store ptr %size, ptr %e3
%e4 = getelementptr ptr, ptr %extra, i64 4
store ptr inttoptr (i64 {_ENDS[api]} to ptr), ptr %e4
%enter = inttoptr i64 %m.enter to ptr
%context = inttoptr i64 %m.context to ptr
%entered = call i32 %enter(ptr %context)
%launch = inttoptr i64 %m.launch to ptr
%groups = trunc i64 %m.groups to i32
%threads = trunc i64 %m.threads to i32
%code = call i32 %launch(ptr %function, i32 %groups, i32 1, i32 1, i32 %threads, i32 1, i32 1, i32 0, ptr %queue, ptr null, ptr %extra)
{ending_ir(f"{api} error %d in the launch of a kernel")}
"""
