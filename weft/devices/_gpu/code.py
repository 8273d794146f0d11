"""Compile the IR of a kernel: PTX for NVIDIA's driver, SPIR-V for OpenCL, an object for AMD's GPUs, which `linking.py` makes ready for HIP."""

from __future__ import annotations

import functools

import llvmlite.binding as llvm

from ...engine.archive import sha256
from ...engine.host import disk_cache
from .target import AMDGPU, NVPTX, Target


@functools.cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def _machine(target: Target, processor: str, ir: str) -> llvm.TargetMachine:
    """A new one for each module: LLVM's SPIR-V target keeps the types of a module and crashes on the next one."""
    _initialize()
    # For these LLVM writes version 7.8 of PTX, which lacks products of float8. NVIDIA's drivers read version 8.4 from 550 on.
    newer = processor in ("sm_89", "sm_90") and "@llvm.nvvm.mma.m16n8k32.row.col.f32" in ir
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=processor, features="+ptx84" if newer else "", opt=target.level
    )


def compiled(target: Target, ir: str, processor: str = "") -> bytes:
    """Compile a module with one kernel, `kernel`. `processor`: an architecture of NVIDIA or AMD, such as "sm_90" or "gfx942"."""
    processor = processor or target.processor
    machine = _machine(target, processor, ir)
    text = _text(target, machine, ir)
    key = sha256(f"{target.level} {processor}\n{llvm.llvm_version_info}\n{text}".encode())
    code = disk_cache().load(key)
    if code is None:
        module = _optimized(machine, text)
        if target is NVPTX:
            code = machine.emit_assembly(module).encode() + b"\0"
        else:
            code = machine.emit_object(module)
        disk_cache().store(key, code)
    return code


def _text(target: Target, machine: llvm.TargetMachine, ir: str) -> str:
    """Return the whole module."""
    head = [f'target triple = "{target.triple}"', target.declarations, ir]
    if target is AMDGPU:  # by the layout variables have an address space of their own
        head.insert(0, f'target datalayout = "{machine.target_data}"')
    return "\n".join(head)


def _optimized(machine: llvm.TargetMachine, text: str) -> llvm.ModuleRef:
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module
