"""The kinds of code that GPUs run: how a kernel is declared, and how a thread learns its position.

A kernel is LLVM IR over a few named things: the position of a thread in its group and of the group in the grid, a barrier, and memory of the
group. Each target spells these its own way. All else is in `kernel.py`, for all targets.

Arguments of a kernel are int64 words: addresses, numbers, sizes and strides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Target(NamedTuple):
    """What differs between the targets of the generator."""

    name: str
    triple: str
    convention: str  # of a kernel
    thread: str  # the call that gives the position of a thread in its group
    group: str  # of the group in the grid
    groups: str  # how many groups there are
    kind: str  # the type of these numbers
    barrier: str
    declarations: str
    level: int  # of optimization when LLVM writes the code, after its passes over the IR

    def kernel(self, parameters: Iterable[str], body: Iterable[str]) -> str:
        """Return the definition of a kernel with int64 parameters."""
        given = ", ".join(f"i64 %{name}" for name in parameters)
        lines = "\n".join(body)
        return f"define {self.convention} void @kernel({given}) {{\nentry:\n{lines}\nret void\n}}\n"


def _register(name: str) -> str:
    return f"call i32 @llvm.nvvm.read.ptx.sreg.{name}()"


NVPTX = Target(
    name="nvptx",
    triple="nvptx64-nvidia-cuda",
    convention="ptx_kernel",
    thread=_register("tid.x"),
    group=_register("ctaid.x"),
    groups=_register("nctaid.x"),
    kind="i32",
    barrier="call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)",
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
    convention="spir_kernel",
    thread=f"call spir_func i64 @{_LOCAL_ID}(i32 0)",
    group=f"call spir_func i64 @{_GROUP_ID}(i32 0)",
    groups=f"call spir_func i64 @{_NUM_GROUPS}(i32 0)",
    kind="i64",
    barrier=f"call spir_func void @_Z7barrierj(i32 {_FENCES})",
    declarations="\n".join(
        [f"declare spir_func i64 @{name}(i32)" for name in (_LOCAL_ID, _GROUP_ID, _NUM_GROUPS)]
        + ["declare spir_func void @_Z7barrierj(i32) convergent"]
    ),
    # From level 1 on LoopStrengthReduce narrows a masked int64 through an integer of a few bits. LLVM 22 then writes an instruction whose
    # operands have two widths. An OpenCL driver optimizes the code in any case.
    level=0,
)
