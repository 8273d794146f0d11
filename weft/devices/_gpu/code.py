"""Compile the IR of a kernel: PTX for NVIDIA's driver, SPIR-V for OpenCL."""

from __future__ import annotations

import functools

import llvmlite.binding as llvm

from ...engine.archive import sha256
from ...engine.host import disk_cache
from .target import NVPTX, SPIRV, Target

# What code is made for where no architecture of NVIDIA is named.
_OLDEST = "sm_70"


@functools.cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def _machine(target: Target, processor: str) -> llvm.TargetMachine:
    """A new one for each module: LLVM's SPIR-V target keeps the types of a module and crashes on the next one."""
    _initialize()
    found = llvm.Target.from_triple(target.triple)
    return found.create_target_machine(cpu=processor if target is NVPTX else "", opt=target.level)


def compiled(target: Target, ir: str, processor: str = _OLDEST) -> bytes:
    """Compile a module with one kernel, `kernel`. `processor`: an architecture of NVIDIA, such as "sm_90"."""
    key = sha256(f"{target.name} {target.level} {processor}\n{llvm.llvm_version_info}\n{ir}".encode())
    code = disk_cache().load(key)
    if code is None:
        code = _compile(target, ir, processor)
        disk_cache().store(key, code)
    return code


def _compile(target: Target, ir: str, processor: str) -> bytes:
    machine = _machine(target, processor)
    module = llvm.parse_assembly(f'target triple = "{target.triple}"\n{target.declarations}\n{ir}')
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    if target is SPIRV:
        return machine.emit_object(module)
    return machine.emit_assembly(module).encode() + b"\0"
