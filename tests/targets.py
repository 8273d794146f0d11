"""Compiles each kernel of a program for another system and processor, too: `python tests/targets.py TRIPLE program arguments...`.

The program runs here, and makes its kernels as it would on the other processor: on ARM without features that LLVM must be told of, else for
x86-64-v3. So macOS and Windows, where nobody runs weft's tests, at least have machine code for every kernel that the tests meet. Prints how many
kernels there were; a kernel that cannot be compiled ends the program.
"""

import atexit
import os
import platform
import runpy
import sys

import llvmlite.binding as llvm

_PAUSE = "call void @llvm.aarch64.hint(i32 1)"  # the only instruction of ARM in kernels, which this processor does not have


def compile_also_for(triple: str) -> None:
    """From now on, compile kernels for this processor and for the triple. Call before weft is imported."""
    own = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    if triple.startswith(("arm64", "aarch64")):
        platform.machine = lambda: "arm64"
        llvm.get_host_cpu_name, llvm.get_host_cpu_features = str, llvm.FeatureMap
    else:
        os.environ["WEFT_CPU"] = "x86-64-v3"
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()

    from weft.engine import host

    features = host.cpu()[1]
    machine = llvm.Target.from_triple(triple).create_target_machine(features=features, opt=3, reloc="pic")
    # Kernels for ARM convert float16 and multiply and add in one step, which this processor can do if LLVM is told so.
    host._compiler.machine = lambda codegen: host._target().create_target_machine(
        cpu=own[0], features=own[1], opt=codegen, jit=True
    )
    emitted, compiled = host._emitted, set()

    def both(ir, tier):
        if ir not in compiled:
            module = llvm.parse_assembly(ir + host.ATTRIBUTES)
            module.triple = triple
            if tier.passes is not None:
                host._apply(tier.passes, module, machine)
            assert machine.emit_object(module)
            compiled.add(ir)
        return emitted(ir.replace(_PAUSE, "").replace("declare void @llvm.aarch64.hint(i32)", ""), tier)

    host._emitted = both
    atexit.register(lambda: print(f"{len(compiled)} kernels for {triple}"))


if __name__ == "__main__":
    triple, program, *arguments = sys.argv[1:]
    compile_also_for(triple)
    sys.argv = [program, *arguments]
    if program.endswith(".py"):
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
