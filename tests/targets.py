"""Compiles each kernel of a program for another system and processor, too: `python tests/targets.py TRIPLE program arguments...`.

The program runs here, and makes its kernels as it would on the other system: on ARM without features that LLVM must be told of, else for
x86-64-v3. So macOS and Windows, where nobody runs weft's tests, at least have machine code for every kernel that the tests meet. It is compiled as
weft does there, with all passes, and may refer only to functions that are found there. Prints how many kernels there were; a kernel that
cannot be compiled, or that nothing could link, ends the program.
"""

import atexit
import os
import platform
import runpy
import sys
import threading
from unittest import mock

import llvmlite.binding as llvm
import numpy  # noqa: F401 (on this system, before `sys.platform` names the other one)
import object_files

_PAUSE = "call void @llvm.aarch64.hint(i32 1)"  # the only instruction of ARM in kernels, which this processor does not have

# Functions of the system that LLVM finds in every process: of the C library, and on Windows the one that touches the pages of a large
# stack frame, which ntdll.dll exports. No relocation refers to `_fltused`, a mark of objects that compute with floats.
_FOUND = set("memcpy memmove memset fmod fmodf pow exp log log1p sin cos tan lgamma".split())
_FOUND_ON = {
    "darwin": {"sched_yield", "bzero", "__bzero"},
    "linux": {"sched_yield"},
    "win32": {"__chkstk", "_fltused"},
}


def compile_also_for(triple: str) -> None:
    """From now on, compile kernels for this processor and for the triple. Call before weft is imported."""
    own = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    system = "win32" if "windows" in triple else "darwin" if "apple" in triple else "linux"
    if triple.startswith(("arm64", "aarch64")):
        platform.machine = lambda: "arm64"
        llvm.get_host_cpu_name, llvm.get_host_cpu_features = str, llvm.FeatureMap
    else:
        os.environ["WEFT_CPU"] = "x86-64-v3"
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()

    with mock.patch.object(sys, "platform", system):
        from weft.engine import host, tiers, workers  # noqa: F401

    name, features = host.cpu()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=name if name in host._LEVELS else "", features=features, opt=3, jit=True
    )

    def own_machine(compiler, codegen):
        # Kernels for ARM convert float16 and multiply and add in one step, which this processor can do if LLVM is told so.
        if codegen not in compiler.machines:
            compiler.machines[codegen] = host._target().create_target_machine(
                cpu=own[0], features=own[1], opt=codegen, jit=True
            )
        return compiler.machines[codegen]

    host._Compiler.machine = own_machine  # of all threads
    emitted, compiled, alone = host._emitted, set(), threading.Lock()
    host.code_memory.is_supported = lambda: False  # LLVM links there

    def check(ir, tier):
        with alone:  # threads compile at the same time, and a machine is for one of them
            if ir in compiled:
                return
            compiled.add(ir)
            module = llvm.parse_assembly(ir + host.ATTRIBUTES)
            module.triple = triple
            if tier is not host.SIMPLIFIED:  # all passes later compile baseline code again
                host._apply(host.OPTIMIZED.passes, module, machine)
            missing = object_files.undefined(machine.emit_object(module)) - _FOUND - _FOUND_ON[system]
            missing = {each for each in missing - set(host._PYTHON_API) if not each.startswith("weft.")}
            if missing:
                print(
                    f"{triple} has no {', '.join(sorted(missing))}, which a kernel needs:\n{ir}",
                    file=sys.stderr,
                )
                os._exit(1)  # whatever the program would do about an exception

    def both(ir, tier):
        check(ir, tier)
        return emitted(ir.replace(_PAUSE, "").replace("declare void @llvm.aarch64.hint(i32)", ""), tier)

    host._emitted = both
    # Only stubs depend on where a system passes arguments (tests/engine/test_tiers.py). These have to run here.
    tiers._STUB = tiers.stub_ir("x86_64", "linux")
    atexit.register(lambda: print(f"{len(compiled)} kernels for {triple}"))


if __name__ == "__main__":
    triple, program, *arguments = sys.argv[1:]
    compile_also_for(triple)
    sys.argv = [program, *arguments]
    if program.endswith(".py"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
