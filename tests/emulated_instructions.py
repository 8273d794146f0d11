"""NVIDIA's instructions in LLVM IR, as functions that do what the documentation of PTX says, so that kernels with tensor cores run over OpenCL.

All threads of a group must come to an instruction together, because the functions meet at barriers. Each thread stores its registers, and finds an
element in the register of the thread that has it by the inverse of the formulas in PTX ISA 9.0, sections 9.7.14.5.8 and 9.7.14.5.10. Nothing here
uses `fragments.py`.
"""

import re

from weft.core.dtype import float8_e4m3fn, float8_e5m2, float32
from weft.devices._gpu.kernel import Kernel
from weft.devices._gpu.target import SPIRV
from weft.engine.convert import convert
from weft.engine.expr import load
from weft.engine.llvm import emit

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
    for dtype in _FLOAT8.values():
        if f"@of.{dtype.name}(" in found:
            found += _conversion(dtype)
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


def _mma(name, kind, each, left, right, total="float"):
    """D = A B + C. `kind`: of the registers; `each`: elements of a register; `left` and `right`: code that makes a number %NAME of the bits %NAME.bits;
    `total`: the type of the sums.
    """
    four = f"{{ {', '.join([total] * 4)} }}"
    registers = ", ".join(f"{kind} %r{k}" for k in range(6))
    sums = ", ".join(f"{total} %c{k}" for k in range(4))
    stores = "\n".join(
        f"""  %i{k} = {"add i32" if kind == "i32" else "bitcast " + kind} %r{k}{", 0" if kind == "i32" else " to i32"}
  %s{k} = {"mul i32 %position, " + str(count)}
  %t{k} = add i32 %s{k}, {k - start}
  %p{k} = getelementptr i32, ptr addrspace(3) @room.{room}, i32 %t{k}
  store i32 %i{k}, ptr addrspace(3) %p{k}"""
        for room, start, count in (("a", 0, 4), ("b", 4, 2))
        for k in range(start, start + count)
    )
    elements = "\n".join(_sum(i, each, {"a": left, "b": right}, total) for i in range(4))
    results = "\n".join(
        f"  %d{i} = insertvalue {four} {f'%d{i - 1}' if i else 'undef'}, {total} %e{i}.end, {i}"
        for i in range(4)
    )
    return f"""
define {four} @emulated.{name.removeprefix("llvm.")}({registers}, {sums}) {{
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
  ret {four} %d3
}}
"""


def _sum(i, each, conversions, total):
    """Element i of D: row `group` or `group + 8`, column `thread * 2 + (i & 1)`; the terms in order."""
    previous = "entry" if i == 0 else f"done{i - 1}"
    bits = 32 // each
    lines = [
        f"  br label %loop{i}\nloop{i}:",
        f"  %k{i} = phi i32 [ 0, %{previous} ], [ %next{i}, %loop{i} ]",
        f"  %e{i} = phi {total} [ %c{i}, %{previous} ], [ %e{i}.next, %loop{i} ]",
        f"  %part{i} = urem i32 %k{i}, {each}",
        f"  %shift{i} = mul i32 %part{i}, {bits}",
        f"  %register{i} = udiv i32 %k{i}, {each}",
        f"  %pair{i} = and i32 %register{i}, 3",
        f"  %upper{i} = lshr i32 %register{i}, 2",
        # A: thread (row % 8) * 4 + (k / each) % 4, register row / 8 + 2 * (k / (4 * each)).
        f"  %al{i} = mul i32 %group, 4",
        f"  %am{i} = add i32 %al{i}, %pair{i}",
        f"  %an{i} = add i32 %am{i}, %first",
        f"  %ao{i} = mul i32 %an{i}, 4",
        f"  %ap{i} = mul i32 %upper{i}, 2",
        f"  %aq{i} = add i32 %ap{i}, {i // 2}",
        f"  %ar{i} = add i32 %ao{i}, %aq{i}",
        # B: thread column * 4 + (k / each) % 4, register k / (4 * each).
        f"  %bl{i} = add i32 %twice, {i % 2}",
        f"  %bm{i} = mul i32 %bl{i}, 4",
        f"  %bn{i} = add i32 %bm{i}, %pair{i}",
        f"  %bo{i} = add i32 %bn{i}, %first",
        f"  %bp{i} = mul i32 %bo{i}, 2",
        f"  %br{i} = add i32 %bp{i}, %upper{i}",
    ]
    for side, conversion in conversions.items():
        lines += [
            f"  %{side}x{i} = getelementptr i32, ptr addrspace(3) @room.{side}, i32 %{side}r{i}",
            f"  %{side}y{i} = load i32, ptr addrspace(3) %{side}x{i}",
            f"  %{side}z{i} = lshr i32 %{side}y{i}, %shift{i}",
            f"  %{side}{i}.bits = trunc i32 %{side}z{i} to i{bits}",
            conversion.replace("NAME", f"{side}{i}"),
        ]
    letter, zero = ("f", "0.0") if total == "float" else ("", "0")
    lines += [
        f"  %product{i} = {letter}mul {total} %a{i}, %b{i}",  # exact
        f"  %e{i}.next = {letter}add {total} %e{i}, %product{i}",
        f"  %next{i} = add i32 %k{i}, 1",
        f"  %more{i} = icmp ult i32 %next{i}, {8 * each}",
        f"  br i1 %more{i}, label %loop{i}, label %done{i}\ndone{i}:",
        f"  %e{i}.end = {letter}add {total} %e{i}.next, {zero}",
    ]
    return "\n".join(lines)


_OF_BFLOAT16 = """  %NAME.wide = zext i16 %NAME.bits to i32
  %NAME.upper = shl i32 %NAME.wide, 16
  %NAME = bitcast i32 %NAME.upper to float"""
_OF_FLOAT16 = """  %NAME.number = bitcast i16 %NAME.bits to half
  %NAME = fpext half %NAME.number to float"""
_OF_INT8 = "  %NAME = sext i8 %NAME.bits to i32"


def _of_float8(dtype):
    """e4m3 and e5m2 by weft's own conversion, which has tests of its own."""
    return f"  %NAME = call float @of.{dtype.name}(i8 %NAME.bits)"


def _conversion(dtype):
    body = Kernel(SPIRV)
    leaf = load(0, dtype)
    (value,) = emit(body, [convert(leaf, float32)], {leaf: "%bits"})
    lines = "\n".join([*body.variables, *body.lines])
    declarations = "\n".join(sorted(body.declarations))
    return f"""
{declarations}
define float @of.{dtype.name}(i8 %bits) {{
entry:
{lines}
  ret float {value}
}}
"""


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


_FLOAT8 = {"e4m3": float8_e4m3fn, "e5m2": float8_e5m2}
_MMA = [
    ("llvm.nvvm.mma.m16n8k16.row.col.bf16", "i32", 2, _OF_BFLOAT16, _OF_BFLOAT16),
    ("llvm.nvvm.mma.m16n8k16.row.col.f32.f32", "<2 x half>", 2, _OF_FLOAT16, _OF_FLOAT16),
    ("llvm.nvvm.mma.m16n8k32.row.col.s8", "i32", 4, _OF_INT8, _OF_INT8, "i32"),
    *(
        (f"llvm.nvvm.mma.m16n8k32.row.col.f32.{a}.{b}.f32", "i32", 4, _of_float8(left), _of_float8(right))
        for a, left in _FLOAT8.items()
        for b, right in _FLOAT8.items()
    ),
]
_FUNCTIONS = {row[0]: _mma(*row) for row in _MMA} | {
    "llvm.nvvm.shfl.sync.bfly.f32": _SHUFFLE,
    "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3": _ldmatrix(turned=False),
    "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3": _ldmatrix(turned=True),
    "llvm.nvvm.ex2.approx.ftz.f": _approximated("llvm.nvvm.ex2.approx.ftz.f", "exp2"),
    "llvm.nvvm.lg2.approx.ftz.f": _approximated("llvm.nvvm.lg2.approx.ftz.f", "log2"),
}
