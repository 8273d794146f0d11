"""The kinds of code that GPUs run: how a kernel is declared, and how a thread learns its position.

A kernel is LLVM IR over a few named things: the position of a thread in its group and of the group in the grid, a barrier, and memory of the
group. Each target spells these its own way. All else is in `kernel.py`, for all targets.

Arguments of a kernel are int64 words: addresses, numbers, sizes and strides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

THREADS = 256  # of a group, in all kernels


class Target(NamedTuple):
    """What differs between the targets of the generator."""

    name: str
    triple: str
    processor: str  # that code is made for where none is named
    convention: str  # of a kernel
    attributes: str  # of a kernel, of LLVM
    thread: str  # the call that gives the position of a thread in its group
    group: str  # of the group in the grid
    groups: str  # how many groups there are
    kind: str  # the type of these numbers
    barrier: str
    space: str  # the address space of the variables of a thread, see `Structured.space`
    declarations: str
    level: int  # of optimization when LLVM writes the code, after its passes over the IR

    def kernel(self, parameters: Iterable[str], body: Iterable[str]) -> str:
        """Return the definition of a kernel with int64 parameters."""
        given = ", ".join(f"i64 %{name}" for name in parameters)
        lines = "\n".join(body)
        head = f"define {self.convention} void @kernel({given}) {self.attributes}"
        return f"{head} {{\nentry:\n{lines}\nret void\n}}\n"


def _register(name: str) -> str:
    return f"call i32 @llvm.nvvm.read.ptx.sreg.{name}()"


NVPTX = Target(
    name="nvptx",
    triple="nvptx64-nvidia-cuda",
    processor="sm_70",
    convention="ptx_kernel",
    attributes="",
    thread=_register("tid.x"),
    group=_register("ctaid.x"),
    groups=_register("nctaid.x"),
    kind="i32",
    barrier="call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)",
    space="",
    declarations="\n".join(
        [f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}()" for name in ("tid.x", "ctaid.x", "nctaid.x")]
        + ["declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)"]
    ),
    level=3,
)

# The functions are those of OpenCL C, under the names that C++ gives them.
_LOCAL_ID, _GROUP_ID, _NUM_GROUPS = "_Z12get_local_idj", "_Z12get_group_idj", "_Z14get_num_groupsj"
_FENCES = 1 | 2  # of the memory of the group, and of the device

SPIRV = Target(
    name="spirv",
    triple="spirv64-unknown-unknown",
    processor="",
    convention="spir_kernel",
    attributes="",
    thread=f"call spir_func i64 @{_LOCAL_ID}(i32 0)",
    group=f"call spir_func i64 @{_GROUP_ID}(i32 0)",
    groups=f"call spir_func i64 @{_NUM_GROUPS}(i32 0)",
    kind="i64",
    barrier=f"call spir_func void @_Z7barrierj(i32 {_FENCES})",
    space="",
    declarations="\n".join(
        [f"declare spir_func i64 @{name}(i32)" for name in (_LOCAL_ID, _GROUP_ID, _NUM_GROUPS)]
        + ["declare spir_func void @_Z7barrierj(i32) convergent"]
    ),
    # From level 1 on LoopStrengthReduce narrows a masked int64 through an integer of a few bits. LLVM 22 then writes an instruction whose
    # operands have two widths. An OpenCL driver optimizes the code in any case.
    level=0,
)

# HIP puts words of its own behind the arguments of a kernel. The first is the number of groups.
_GROUPS = """
define internal i32 @groups() alwaysinline {
%words = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
%count = load i32, ptr addrspace(4) %words, align 4
ret i32 %count
}
"""

# The barrier of the processor waits for threads, and not for what they have stored.
_BARRIER = """fence syncscope("workgroup") release
call void @llvm.amdgcn.s.barrier()
fence syncscope("workgroup") acquire"""

AMDGPU = Target(
    name="amdgpu",
    triple="amdgcn-amd-amdhsa",
    processor="gfx906",
    convention="amdgpu_kernel",
    # Without the size of groups LLVM leaves registers for groups of 1024 threads, which are a quarter as many for each thread.
    attributes=f'"amdgpu-flat-work-group-size"="{THREADS},{THREADS}" "uniform-work-group-size"="true"',
    thread="call i32 @llvm.amdgcn.workitem.id.x()",
    group="call i32 @llvm.amdgcn.workgroup.id.x()",
    groups="call i32 @groups()",
    kind="i32",
    barrier=_BARRIER,
    space=" addrspace(5)",
    declarations="\n".join(
        [f"declare i32 @llvm.amdgcn.{name}.id.x()" for name in ("workitem", "workgroup")]
        + ["declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()", "declare void @llvm.amdgcn.s.barrier()"]
        # Version 5 of code objects is the oldest that has the number of groups there. ROCm 6 and 7 load it.
        + ["!llvm.module.flags = !{!0}", '!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}', _GROUPS]
    ),
    level=3,
)
