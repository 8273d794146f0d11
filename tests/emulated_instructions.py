"""NVIDIA's instructions in LLVM IR, as functions that do what the documentation of PTX says, so that kernels with tensor cores run over OpenCL.

All threads of a group must come to an instruction together, because the functions meet at barriers. Each thread stores its registers, and finds an
element in the register of the thread that has it by the inverse of the formulas in PTX ISA 9.0, section 9.7.14.5.8. Nothing here uses
`fragments.py`.
"""

import re

from weft.devices._gpu.target import SPIRV

_FOUR = "{ float, float, float, float }"
_WARPS, _WARP = 8, 32


def with_functions(ir):
    """The module of a kernel for OpenCL, with NVIDIA's instructions replaced."""
    found = ir
    for name, definition in _FUNCTIONS.items():
        if f"@{name}(" not in found:
            continue
        found = re.sub(rf"^declare .*@{re.escape(name)}\(.*\n", "", found, flags=re.M)
        found = found.replace(f"@{name}(", f"@emulated.{name.removeprefix('llvm.')}(") + definition
    found = re.sub(
        r"= fptrunc <2 x float> (%\w+) to <2 x bfloat>", r"= call i32 @rounded(<2 x float> \1)", found
    )
    found = re.sub(r"= bitcast <2 x bfloat> (%\w+) to i32", r"= add i32 \1, 0", found)
    if "@rounded(" in found:
        found += _ROUNDED
    if "nvvm" in found:
        found += _LANE
    assert not re.search(r"@llvm\.nvvm", found)
    return found


_LANE = f"""
@room.a = internal addrspace(3) global [{_WARPS * _WARP * 4} x i32] undef, align 16
@room.b = internal addrspace(3) global [{_WARPS * _WARP * 2} x i32] undef, align 16
@room.rows = internal addrspace(3) global [{_WARPS * _WARP} x i64] undef, align 16
@room.shuffle = internal addrspace(3) global [{_WARPS * _WARP} x float] undef, align 16
define i32 @position() alwaysinline {{
  %wide = {SPIRV.thread}
  %position = trunc i64 %wide to i32
  ret i32 %position
}}
"""

# To the nearest, ties to even; the first element is the low half.
_ROUNDED = """
define i32 @rounded(<2 x float> %values) alwaysinline {
  %bits = bitcast <2 x float> %values to <2 x i32>
  %upper = lshr <2 x i32> %bits, splat (i32 16)
  %odd = and <2 x i32> %upper, splat (i32 1)
  %more = add <2 x i32> %odd, splat (i32 32767)
  %sum = add <2 x i32> %bits, %more
  %half = lshr <2 x i32> %sum, splat (i32 16)
  %first = extractelement <2 x i32> %half, i32 0
  %second = extractelement <2 x i32> %half, i32 1
  %high = shl i32 %second, 16
  %both = or i32 %high, %first
  ret i32 %both
}
"""


def _mma(name, kind, widened):
    """D = A B + C. `kind`: of the registers; `widened`: code that makes a float %NAME of the half %NAME.half."""
    registers = ", ".join(f"{kind} %r{k}" for k in range(6))
    sums = ", ".join(f"float %c{k}" for k in range(4))
    stores = "\n".join(
        f"""  %i{k} = {"add i32" if kind == "i32" else "bitcast " + kind} %r{k}{", 0" if kind == "i32" else " to i32"}
  %s{k} = {"mul i32 %position, " + str(count)}
  %t{k} = add i32 %s{k}, {k - start}
  %p{k} = getelementptr i32, ptr addrspace(3) @room.{room}, i32 %t{k}
  store i32 %i{k}, ptr addrspace(3) %p{k}"""
        for room, start, count in (("a", 0, 4), ("b", 4, 2))
        for k in range(start, start + count)
    )
    elements = "\n".join(_sum(i, widened) for i in range(4))
    results = "\n".join(
        f"  %d{i} = insertvalue {_FOUR} {f'%d{i - 1}' if i else 'undef'}, float %e{i}.end, {i}"
        for i in range(4)
    )
    return f"""
define {_FOUR} @emulated.{name.removeprefix("llvm.")}({registers}, {sums}) {{
entry:
  %position = call i32 @position()
  %lane = and i32 %position, 31
  %first = sub i32 %position, %lane
{stores}
  {SPIRV.barrier}
  %group = lshr i32 %lane, 2
  %thread = and i32 %lane, 3
  %twice = mul i32 %thread, 2
{elements}
  {SPIRV.barrier}
{results}
  ret {_FOUR} %d3
}}
"""


def _sum(i, widened):
    """Element i of D: row `group` or `group + 8`, column `thread * 2 + (i & 1)`; the terms in order."""
    previous = "entry" if i == 0 else f"done{i - 1}"
    lines = [
        f"  br label %loop{i}\nloop{i}:",
        f"  %k{i} = phi i32 [ 0, %{previous} ], [ %next{i}, %loop{i} ]",
        f"  %e{i} = phi float [ %c{i}, %{previous} ], [ %e{i}.next, %loop{i} ]",
        f"  %half{i} = and i32 %k{i}, 1",
        f"  %shift{i} = mul i32 %half{i}, 16",
        f"  %within{i} = and i32 %k{i}, 7",
        f"  %pair{i} = lshr i32 %within{i}, 1",
        f"  %upper{i} = lshr i32 %k{i}, 3",
        # A: thread (row % 8) * 4 + pair, register row / 8 + 2 * (k / 8).
        f"  %al{i} = mul i32 %group, 4",
        f"  %am{i} = add i32 %al{i}, %pair{i}",
        f"  %an{i} = add i32 %am{i}, %first",
        f"  %ao{i} = mul i32 %an{i}, 4",
        f"  %ap{i} = mul i32 %upper{i}, 2",
        f"  %aq{i} = add i32 %ap{i}, {i // 2}",
        f"  %ar{i} = add i32 %ao{i}, %aq{i}",
        # B: thread column * 4 + pair, register k / 8.
        f"  %bl{i} = add i32 %twice, {i % 2}",
        f"  %bm{i} = mul i32 %bl{i}, 4",
        f"  %bn{i} = add i32 %bm{i}, %pair{i}",
        f"  %bo{i} = add i32 %bn{i}, %first",
        f"  %bp{i} = mul i32 %bo{i}, 2",
        f"  %br{i} = add i32 %bp{i}, %upper{i}",
    ]
    for side in "ab":
        lines += [
            f"  %{side}x{i} = getelementptr i32, ptr addrspace(3) @room.{side}, i32 %{side}r{i}",
            f"  %{side}y{i} = load i32, ptr addrspace(3) %{side}x{i}",
            f"  %{side}z{i} = lshr i32 %{side}y{i}, %shift{i}",
            f"  %{side}{i}.half = trunc i32 %{side}z{i} to i16",
            widened.replace("NAME", f"{side}{i}"),
        ]
    lines += [
        f"  %product{i} = fmul float %a{i}, %b{i}",  # exact
        f"  %e{i}.next = fadd float %e{i}, %product{i}",
        f"  %next{i} = add i32 %k{i}, 1",
        f"  %more{i} = icmp ult i32 %next{i}, 16",
        f"  br i1 %more{i}, label %loop{i}, label %done{i}\ndone{i}:",
        f"  %e{i}.end = fadd float %e{i}.next, 0.0",
    ]
    return "\n".join(lines)


_OF_BFLOAT16 = """  %NAME.wide = zext i16 %NAME.half to i32
  %NAME.bits = shl i32 %NAME.wide, 16
  %NAME = bitcast i32 %NAME.bits to float"""
_OF_FLOAT16 = """  %NAME.number = bitcast i16 %NAME.half to half
  %NAME = fpext half %NAME.number to float"""

_SHUFFLE = f"""
define float @emulated.nvvm.shfl.sync.bfly.f32(i32 %mask, float %value, i32 %distance, i32 %last) {{
  %position = call i32 @position()
  %own = getelementptr float, ptr addrspace(3) @room.shuffle, i32 %position
  store float %value, ptr addrspace(3) %own
  {SPIRV.barrier}
  %other = xor i32 %position, %distance
  %there = getelementptr float, ptr addrspace(3) @room.shuffle, i32 %other
  %found = load float, ptr addrspace(3) %there
  {SPIRV.barrier}
  ret float %found
}}
"""


def _ldmatrix(turned):
    """Thread 8 * k + j of a warp gives the address of row j of matrix k (8x8), of which thread t gets row t / 4 and columns 2 * (t % 4) and the next;
    turned, column t / 4 of these rows.
    """
    name = f"emulated.nvvm.ldmatrix.sync.aligned.m8n8.x4{'.trans' * turned}.b16.p3"
    kinds = "{ i32, i32, i32, i32 }"
    lines = []
    for k in range(4):
        for j in range(2):
            n = f"{k}.{j}"
            row, column = ("%twice", "%group") if turned else ("%group", "%twice")
            moved = (j, 0) if turned else (0, j)
            lines += [
                f"  %row{n} = add i32 {row}, {moved[0] + 8 * k}",
                f"  %lane{n} = add i32 %row{n}, %first",
                f"  %slot{n} = getelementptr i64, ptr addrspace(3) @room.rows, i32 %lane{n}",
                f"  %address{n} = load i64, ptr addrspace(3) %slot{n}",
                f"  %begin{n} = inttoptr i64 %address{n} to ptr addrspace(3)",
                f"  %column{n} = add i32 {column}, {moved[1]}",
                f"  %place{n} = getelementptr i16, ptr addrspace(3) %begin{n}, i32 %column{n}",
                f"  %half{n} = load i16, ptr addrspace(3) %place{n}",
                f"  %wide{n} = zext i16 %half{n} to i32",
            ]
        lines += [f"  %upper{k} = shl i32 %wide{k}.1, 16", f"  %both{k} = or i32 %upper{k}, %wide{k}.0"]
    results = "\n".join(
        f"  %d{k} = insertvalue {kinds} {f'%d{k - 1}' if k else 'undef'}, i32 %both{k}, {k}" for k in range(4)
    )
    code = "\n".join(lines)
    return f"""
define {kinds} @{name}(ptr addrspace(3) %row) {{
  %position = call i32 @position()
  %lane = and i32 %position, 31
  %first = sub i32 %position, %lane
  %own = getelementptr i64, ptr addrspace(3) @room.rows, i32 %position
  %number = ptrtoint ptr addrspace(3) %row to i64
  store i64 %number, ptr addrspace(3) %own
  {SPIRV.barrier}
  %group = lshr i32 %lane, 2
  %thread = and i32 %lane, 3
  %twice = mul i32 %thread, 2
{code}
  {SPIRV.barrier}
{results}
  ret {kinds} %d3
}}
"""


def _approximated(name, exact):
    return f"""
declare float @llvm.{exact}.f32(float)
define float @emulated.{name.removeprefix("llvm.")}(float %value) {{
  %found = call float @llvm.{exact}.f32(float %value)
  ret float %found
}}
"""


_FUNCTIONS = {
    name: _mma(name, kind, widened)
    for name, kind, widened in (
        ("llvm.nvvm.mma.m16n8k16.row.col.bf16", "i32", _OF_BFLOAT16),
        ("llvm.nvvm.mma.m16n8k16.row.col.f32.f32", "<2 x half>", _OF_FLOAT16),
    )
} | {
    "llvm.nvvm.shfl.sync.bfly.f32": _SHUFFLE,
    "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3": _ldmatrix(turned=False),
    "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3": _ldmatrix(turned=True),
    "llvm.nvvm.ex2.approx.ftz.f": _approximated("llvm.nvvm.ex2.approx.ftz.f", "exp2"),
    "llvm.nvvm.lg2.approx.ftz.f": _approximated("llvm.nvvm.lg2.approx.ftz.f", "log2"),
}
