"""Compile LLVM IR to machine code that Python can call.

A kernel becomes a *builtin function*: its machine code follows CPython's METH_FASTCALL convention, reads the integers and floats
from its arguments, and runs the loop. A call costs about 40 ns; through ctypes it would cost 300 ns.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm

from ..core.locks import add_lock, new_lock
from ..core.settings import refuse_setting
from . import code_memory, image
from .archive import sha256
from .diskcache import DiskCache
from .source import Source

METH_KEYWORDS, METH_NOARGS, METH_FASTCALL = 0x02, 0x04, 0x80

# The functions of the interpreter that kernels call.
_PYTHON_API = (
    "PyList_Append", "PyList_New", "PyList_Size", "PyTuple_GetItem", "PyType_GenericAlloc",
    "PyObject_VectorcallMethod", "PyObject_GetAttr", "PyErr_ExceptionMatches", "PyErr_Fetch", "PyErr_Restore",
    "Py_DecRef", "PyLong_AsVoidPtr", "PyLong_AsSsize_t", "PyLong_FromSsize_t",
    "PyLong_AsUnsignedLongLongMask", "PyFloat_AsDouble", "PyBytes_AsString", "Py_IncRef", "PyEval_SaveThread",
    "PyEval_RestoreThread", "PyErr_BadArgument", "PyErr_Clear", "PyErr_Occurred", "PyErr_SetInterrupt",
    "PyObject_Call", "PyObject_CallNoArgs", "PyObject_Vectorcall", "PyLong_AsLongLong",
    "PyLong_AsLongLongAndOverflow", "PyIter_Next", "PyNumber_Add", "PySequence_Tuple", "PyNumber_Positive",
    "PyBool_FromLong", "PyBytes_FromStringAndSize", "PyFloat_FromDouble", "PyLong_FromLongLong",
    "PyDict_DelItem", "PyDict_GetItemWithError", "PyDict_New", "PyDict_SetItem", "PyDict_Size",
    "PyObject_GenericGetDict", "PyObject_RichCompareBool", "PyObject_SetAttr", "PyType_IsSubtype",
    "PyLong_FromVoidPtr", "PySlice_AdjustIndices", "PySlice_Unpack", "PyTuple_New", "PyThread_acquire_lock",
    "PyThread_release_lock",
)  # fmt: skip

_linking = new_lock()
# llvmlite's own, which another library that compiles with it may hold at a fork.
_llvm_lock = llvm.ffi.lib._lock._lock
add_lock(_llvm_lock)
# Code and method definitions. The interpreter and the workers refer to them until the process ends, so they are never freed.
_alive: list[Any] = []
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_alive))


def keepalive(value: Any) -> Any:
    """`value`, which this keeps alive until the process ends."""
    _alive.append(value)
    return value


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("code", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


# What each level of x86-64 adds to the one before (the System V ABI for AMD64, section 3.1.1), in LLVM's names.
_LEVELS = {
    "x86-64": "cx8 cmov fxsr sse sse2",
    "x86-64-v2": "cx16 sahf popcnt sse3 ssse3 sse4.1 sse4.2",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}


@functools.cache
def cpu() -> tuple[str, str]:
    """The name and the features of the processor that kernels are compiled for, as LLVM knows them.

    It is this processor, or the level of x86-64 that the environment variable WEFT_CPU names.
    Raises: ValueError if there is no such level, or if this processor is below it.
    """
    own = llvm.get_host_cpu_features()
    level = os.environ.get("WEFT_CPU")
    return _level(level, own) if level else (llvm.get_host_cpu_name(), own.flatten())


def _level(name: str, own: Mapping[str, bool]) -> tuple[str, str]:
    """The name and the features of a level. own: the features of this processor."""
    if name not in _LEVELS:
        refuse_setting(f"WEFT_CPU must be one of {', '.join(_LEVELS)}, not {name!r}")
    names = list(_LEVELS)
    features = " ".join(_LEVELS[each] for each in names[: names.index(name) + 1]).split()
    missing = [each for each in features if not own.get(each)]
    if missing:
        refuse_setting(f"WEFT_CPU is {name!r}, but this processor lacks {', '.join(missing)}")
    return name, ",".join(f"+{each}" for each in features)


if os.environ.get("WEFT_CPU"):
    cpu()  # refuses a wrong level when weft is imported, not in the first call


def converts_half() -> bool:
    """Whether this processor converts between float16 and float32. If not, LLVM would call functions that are not linked."""
    return "+f16c" in cpu()[1].split(",") or platform.machine() in ("aarch64", "arm64")


def scales_by_powers() -> bool:
    """Whether this processor has an instruction for y * 2**k (AVX-512). If not, LLVM would call functions that are not linked."""
    return "+avx512f" in cpu()[1].split(",")


@functools.cache
def _target():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in _PYTHON_API:
        llvm.add_symbol(name, _python_function(name))
    return llvm.Target.from_default_triple()


@functools.cache
def disk_cache() -> DiskCache:
    """Object code of earlier runs, for this processor and these versions of LLVM and llvmlite."""
    version = ".".join(map(str, llvm.llvm_version_info))
    linker = "image" if code_memory.is_supported() else "LLVM"
    return DiskCache.for_user(f"{llvmlite.__version__}|{version}|{cpu()}|{linker}|{sys.version_info[:2]}")


ATTRIBUTES = 'attributes #0 = { nounwind "prefer-vector-width"="512" }\n'


Passes = Callable[[llvm.PassBuilder], llvm.ModulePassManager]


class Tier(NamedTuple):
    """How a module is compiled."""

    name: str  # a line of the key in the disk cache
    passes: Passes | None  # none for baseline code
    codegen: int  # LLVM's level of code generation


IR = str | Source


def compile_ir(ir: IR, *names: str, vectorize: bool = True) -> tuple[int, ...]:
    """Compile a module and return the addresses of its functions `names`.

    `vectorize`: whether LLVM shall vectorize loops. Code without such loops, or with vectors already, compiles in a third of the time.
    """
    tier = OPTIMIZED if vectorize else SIMPLIFIED
    code = cached(ir, tier)
    if code is None:
        start = time.monotonic()
        code = compiled(ir, tier)
        announce(time.monotonic() - start)
    return link(code, names)


def cached(ir: IR, tier: Tier) -> bytes | None:
    """Return the machine code of a module from the disk cache, or None."""
    return disk_cache().load(_key(ir, tier))


def compiled(ir: IR, tier: Tier) -> bytes:
    """The machine code of a module, which this compiles, and stores in the disk cache: an image, or object code where LLVM must link."""
    code = _object_code(ir if isinstance(ir, str) else ir.text(), tier)
    code = image.packed(code) or code
    disk_cache().store(_key(ir, tier), code)
    return code


def _key(ir: IR, tier: Tier) -> bytes:
    return sha256(tier.name.encode() + (ir.encode() if isinstance(ir, str) else ir.description()))


NOTICE_AFTER = 1.0  # seconds of compiling, after which the user is told what the program waits for
_compiling_s = 0.0


def announce(seconds: float) -> None:
    """Add to the time that the program has waited for LLVM, and tell the user once if it is long and stderr is a terminal."""
    global _compiling_s
    if threading.current_thread() is not threading.main_thread():
        return
    before, _compiling_s = _compiling_s, _compiling_s + seconds
    # A program may have closed stderr, or replaced it by an object that can only be written to.
    with contextlib.suppress(AttributeError, ValueError, OSError):
        if before < NOTICE_AFTER <= _compiling_s and sys.stderr.isatty():
            kept = disk_cache().directory
            outlook = f"they are kept in {kept}" if kept else "they cannot be kept: see weft doctor"
            print(f"weft: compiling kernels that this machine has not run before; {outlook}", file=sys.stderr)


# ---- Object code -------------------------------------------------------------------------------------------------------------

# llvmlite calls LLVM under a lock of its own, so that a thread that compiles would stop all other threads that compile or link, for
# 0.5 s in the worst case. LLVM itself needs no lock if each thread has a context and target machines of its own. So the two
# calls that take long are made without the lock.
_run_passes = llvm.ffi.lib.LLVMPY_RunNewModulePassManager._cfn
_emit = llvm.ffi.lib.LLVMPY_TargetMachineEmitToMemory._cfn


class _Compiler(threading.local):
    """What a thread compiles with."""

    def __init__(self):
        self.lock = new_lock()  # so that a fork waits until LLVM has finished
        self.context = llvm.create_context()
        self.machines: dict[int, llvm.TargetMachine] = {}  # by level of code generation

    def machine(self, codegen: int) -> llvm.TargetMachine:
        """The target machine that makes object code for this processor."""
        if codegen not in self.machines:
            name, features = cpu()
            self.machines[codegen] = _target().create_target_machine(
                cpu=name, features=features, opt=codegen, jit=True
            )
        return self.machines[codegen]


_compiler = _Compiler()


def _object_code(ir: str, tier: Tier) -> bytes:
    with _compiler.lock:
        interrupts = _llvm_lock._is_owned()
        try:
            return _emitted(ir, tier)
        finally:
            _release_llvm(interrupts)


def _emitted(ir: str, tier: Tier) -> bytes:
    machine = _compiler.machine(tier.codegen)
    module = llvm.parse_assembly(ir + ATTRIBUTES, _compiler.context)
    module.verify()
    if tier.passes is not None:
        _apply(tier.passes, module, machine)
    with llvm.ffi.OutputString() as error:
        memory = _emit(machine, module, 1, error)
        if not memory:
            raise RuntimeError(str(error))
    start, size = llvm.ffi.lib.LLVMPY_GetBufferStart(memory), llvm.ffi.lib.LLVMPY_GetBufferSize(memory)
    code = ctypes.string_at(start, size)
    llvm.ffi.lib.LLVMPY_DisposeMemoryBuffer(memory)
    _dispose(module)
    return code


def _apply(passes: Passes, module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    manager = passes(builder)
    _run_passes(manager, module, builder)
    for each in (manager, builder, options):
        _dispose(each)


def _release_llvm(interrupts: bool) -> None:
    """Release llvmlite's lock, which llvmlite takes in Python code: a Ctrl-C there could leave it taken for ever.

    `interrupts`: the thread had it from the beginning, because its signal handler or a finalizer compiles while llvmlite works.
    """
    while not interrupts and _llvm_lock._is_owned():
        _llvm_lock.release()


def _few_passes(builder: llvm.PassBuilder) -> llvm.ModulePassManager:
    """What turns variables into registers and removes what is computed twice.

    Measured on AMD Zen 4 with the kernels of 17 reductions: these passes take a tenth of the time of all of LLVM's, and the machine
    code, which is a quarter smaller, takes two thirds.
    """
    manager = llvm.create_new_module_pass_manager()
    manager.add_sroa_pass()
    manager.add_simplify_cfg_pass()
    manager.add_instruction_combine_pass()
    manager.add_loop_rotate_pass()
    manager.add_new_gvn_pass()
    manager.add_instruction_combine_pass()
    manager.add_simplify_cfg_pass()
    return manager


OPTIMIZED = Tier("", llvm.PassBuilder.getModulePassManager, 3)
SIMPLIFIED = Tier("; as it is\n", _few_passes, 3)


def _dispose(resource: llvm.ffi.ObjectRef) -> None:
    """Free the memory of an object of LLVM at most once, so that a Ctrl-C in between causes a leak and nothing worse.

    llvmlite's `close` sets its mark only after it has freed the memory. If it is interrupted, the finalizer would free it again.
    """
    resource._owned = True
    resource._dispose()


def add_symbol(name: str, address: int) -> None:
    """Let machine code that is linked from now on refer to an address by this name."""
    _symbols[name] = address
    llvm.add_symbol(name, address)


_symbols: dict[str, int] = {}


def address_of(symbol: str) -> int:
    return _symbols.get(symbol) or _python_function(symbol)


@functools.cache
def _python_function(name: str) -> int:
    """Return the address of a function of the interpreter, or of the C library."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def link(code: bytes, names: Sequence[str]) -> tuple[int, ...]:
    """Load what `compiled` returned, and give the addresses of these functions and variables."""
    found = image.unpacked(code)
    if found is not None:
        start = image.loaded(found, address_of)
        return tuple([start + found.functions[name] for name in names])
    with _linking:
        interrupts = _llvm_lock._is_owned()
        try:
            return _linked(code, names)
        finally:
            _release_llvm(interrupts)


def _linked(code: bytes, names: Sequence[str]) -> tuple[int, ...]:
    # One engine for each object: functions of different kernels have the same names.
    # An engine frees its target machine when it dies, so each has its own. The engine only links, so a machine for a generic
    # processor is enough; one for this processor takes 0.3 ms to make.
    empty = llvm.parse_assembly("")
    engine = keepalive(llvm.create_mcjit_compiler(empty, _target().create_target_machine(jit=True)))
    engine.remove_module(empty)  # else LLVM would compile it, which takes four times as long as all else here
    binary = llvm.ObjectFileRef.from_data(code)
    if not binary:
        raise RuntimeError(f"LLVM cannot read {len(code)} bytes as object code of this processor")
    engine.add_object_file(binary)
    engine.finalize_object()
    _dispose(binary)
    _dispose(empty)
    return tuple(engine.get_function_address(name) for name in names)


def builtin(address: int, name: str, bound: object = None, keywords: bool = False) -> Callable:
    """A Python function from the address of METH_FASTCALL machine code, which gets `bound` as its self.

    `keywords`: the machine code gets the names of keyword arguments as its fourth argument, a tuple or null.
    """
    if bound is not None:
        return binder(address, name, keywords)(bound)
    flags = METH_FASTCALL | (METH_KEYWORDS if keywords else 0)
    return _new_function(ctypes.addressof(_method_definition(address, name, flags)), None, None)


@functools.cache
def binder(address: int, name: str, keywords: bool = False) -> Callable[[object], Callable]:
    """A function that makes `builtin(address, name, bound, keywords)` from `bound`.

    It is a descriptor, which takes a tenth of the time of a call through ctypes.
    """
    flags = METH_FASTCALL | (METH_KEYWORDS if keywords else 0)
    return method(object, name, address, flags).__get__


_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def method(cls: type, name: str, address: int, flags: int) -> Any:
    """Return a method for a class, from the address of METH_NOARGS or METH_FASTCALL machine code."""
    make = ctypes.pythonapi.PyDescr_NewMethod
    make.restype, make.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p]
    return make(cls, ctypes.addressof(_method_definition(address, name, flags)))


@functools.cache
def _method_definition(address: int, name: str, flags: int = METH_FASTCALL) -> _MethodDef:
    return keepalive(_MethodDef(name.encode(), address, flags, None))


def entry_ir(operands: int, params: str, bound: bool = False) -> str:
    """`call`: the METH_FASTCALL face of `loop`; `share`: one that shares it among the workers.

    Arguments: `operands` addresses, a number for each letter of `params` (f: float32, d: float64, else the
    width of an integer in bytes), the address of meta, the size of the outermost dim. Returns the first argument.
    Arguments of another number or type raise TypeError, too large ones OverflowError, before the loop runs.
    `bound`: the loop needs the address of the kernel's row before the operands; for `call` it is the function's self.
    The self of `share` is the bytes of: the address of the row, `workers.share_words`, and more that it does not read.
    """
    row = "%row = call ptr @PyLong_AsVoidPtr(ptr %self)\nstore ptr %row, ptr %room" if bound else ""
    return "\n".join(
        [
            "define ptr @call(ptr %self, ptr %args, i64 %nargs) #0 {",
            operands_ir(operands, params),
            row,
            "call void @loop(ptr %ops, ptr %meta, i64 0, i64 %count)",
            "call void @Py_IncRef(ptr %a0)\nret ptr %a0\n}",
            "define ptr @share(ptr %self, ptr %args, i64 %nargs) #0 {",
            operands_ir(operands, params),
            "%words = call ptr @PyBytes_AsString(ptr %self)",
            *[
                f"%pw{k} = getelementptr i64, ptr %words, i64 {k}\n%{name} = load {kind}, ptr %pw{k}, align 1"
                for k, (kind, name) in enumerate(_SHARE_WORDS)
            ],
            "store ptr %row, ptr %room",
            "call void %share(ptr %pool, ptr @loop, ptr %ops, ptr %meta, i64 %count, i64 %grain, i64 %always)",
            "call void @Py_IncRef(ptr %a0)\nret ptr %a0\n}",
            "declare ptr @PyLong_AsVoidPtr(ptr)\ndeclare i64 @PyLong_AsSsize_t(ptr)\ndeclare void @Py_IncRef(ptr)",
            "declare double @PyFloat_AsDouble(ptr)\ndeclare i64 @PyLong_AsUnsignedLongLongMask(ptr)",
            "declare ptr @PyBytes_AsString(ptr)\n",
            ERROR_CHECKS,
        ]
    )


# For functions that unpack Python arguments: nothing may be done with what a failed conversion gave (0, -1 or null).
RETURN_IF_FAILED = """
%error = call ptr @PyErr_Occurred()
%bad = icmp ne ptr %error, null
br i1 %bad, label %failed, label %unpacked
failed:
ret ptr null
unpacked:
"""

ERROR_CHECKS = "declare ptr @PyErr_Occurred()\ndeclare i32 @PyErr_BadArgument()\n"


def expect_arguments(count: int) -> str:
    """The beginning of a METH_FASTCALL function with this number of arguments, which it checks."""
    return f"""
%given = icmp eq i64 %nargs, {count}
br i1 %given, label %unpack, label %miscounted
miscounted:
%raised = call i32 @PyErr_BadArgument()
ret ptr null
unpack:
"""


def expect_addresses(count: int) -> str:
    """As `expect_arguments`, of arguments that are addresses or other words: %a0, ... are the objects, and %x0, ... the words, as pointers."""
    words = (
        f"%pa{k} = getelementptr ptr, ptr %args, i64 {k}\n%a{k} = load ptr, ptr %pa{k}\n"
        f"%x{k} = call ptr @PyLong_AsVoidPtr(ptr %a{k})\n"
        for k in range(count)
    )
    return expect_arguments(count) + "".join(words) + RETURN_IF_FAILED


_SHARE_WORDS = (("ptr", "row"), ("ptr", "share"), ("ptr", "pool"), ("i64", "grain"), ("i64", "always"))


def operands_ir(operands: int, params: str, bound: bool = False) -> str:
    """%ops, with a word before it, %meta and %count from the arguments of a call; %a0 is the first argument.

    `bound`: the address of meta is the function's self instead of an argument, and there is no count.
    """
    total = operands + len(params)
    given = total if bound else total + 2
    lines = [
        f"%room = alloca [{total + 1} x i64], align 16",
        "%ops = getelementptr i64, ptr %room, i64 1",
        expect_arguments(given),
    ]
    for k in range(given):
        lines.append(f"%pa{k} = getelementptr ptr, ptr %args, i64 {k}\n%a{k} = load ptr, ptr %pa{k}")
    for k in range(total):
        lines.append(f"%po{k} = getelementptr i64, ptr %ops, i64 {k}")
        lines.append(_unpack(k, "p" if k < operands else params[k - operands]))
    lines.append(f"%meta = call ptr @PyLong_AsVoidPtr(ptr {'%self' if bound else f'%a{total}'})")
    if not bound:
        lines.append(f"%count = call i64 @PyLong_AsSsize_t(ptr %a{total + 1})")
    lines.append(RETURN_IF_FAILED)
    return "\n".join(lines)


def _unpack(k: int, letter: str) -> str:
    if letter == "p":
        return f"%x{k} = call ptr @PyLong_AsVoidPtr(ptr %a{k})\nstore ptr %x{k}, ptr %po{k}"
    if letter == "d":
        return f"%x{k} = call double @PyFloat_AsDouble(ptr %a{k})\nstore double %x{k}, ptr %po{k}"
    if letter == "f":
        return (
            f"%x{k} = call double @PyFloat_AsDouble(ptr %a{k})\n%y{k} = fptrunc double %x{k} to float\n"
            f"store float %y{k}, ptr %po{k}"
        )
    return f"%x{k} = call i64 @PyLong_AsUnsignedLongLongMask(ptr %a{k})\nstore i64 %x{k}, ptr %po{k}"
