"""Translate Exprs to LLVM IR text. Loops are in `loops.py`; `devices/_gpu/rules.py` has what GPUs compute in another way."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping

from ..core.dtype import DType, bool_, float16, float32, float64, int16, int32, int64, uint32, uint64
from .bounds import bounds
from .expr import Expr, load, postorder
from .host import converts_half, scales_by_powers

# A float value whose conversion to an integer type leaves its range becomes this ("integer indefinite" on x86).
_INT_MIN = {int32: -(2**31), int64: -(2**63)}


def value_type(dtype: DType, lanes: int = 1) -> str:
    """The LLVM type of a value in a register; `lanes` > 1 makes a vector."""
    scalar = "i1" if dtype is bool_ else memory_type(dtype)
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def memory_type(dtype: DType) -> str:
    """The LLVM type of an element in memory; floats that LLVM cannot compute with are plain bits."""
    if dtype is float32:
        return "float"
    if dtype is float64:
        return "double"
    if dtype is float16 and converts_half():
        return "half"
    return f"i{8 * dtype.itemsize}"


def suffix(dtype: DType, lanes: int) -> str:
    """Return the suffix of intrinsics for a type: f32, v8f32, i64 ..."""
    scalar = f"{'f' if dtype.kind == 'f' else 'i'}{8 * dtype.itemsize}"
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


def constant(dtype: DType, bits: int, lanes: int = 1) -> str:
    """A constant operand, without its type; `bits` is the pattern of a DType's value."""
    if dtype is bool_:
        text = "true" if bits else "false"
    elif dtype is float32:
        text = f"0x{struct.unpack('<Q', struct.pack('<d', _float32(bits)))[0]:016X}"
        if _float32(bits) != _float32(bits):  # widening through Python may quieten a NaN: spell it
            text = f"0x{(bits >> 31) << 63 | 0x7FF0000000000000 | (bits & 0x7FFFFF) << 29:016X}"
    elif dtype is float64:
        text = f"0x{bits:016X}"
    elif dtype is float16 and converts_half():
        text = f"0xH{bits:04X}"
    else:
        text = str(bits)
    if lanes == 1:
        return text
    return f"splat ({value_type(dtype)} {text})"


def _float32(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]


class Block:
    """A basic block under construction: it names the results and collects the declarations of intrinsics."""

    # Say how the target computes each primitive; they are HOST unless a subclass has others.
    rules: Mapping[str, Callable[..., str]]

    def __init__(self, declarations: set[str], prefix: str = "v"):
        self.lines: list[str] = []
        self.declarations = declarations
        self.prefix = prefix

    def let(self, text: str) -> str:
        """Append `%new = text` and return the new name; names are unique among blocks with other prefixes."""
        name = f"%{self.prefix}{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(text)

    def intrinsic(self, name: str, dtype: DType, lanes: int, *operands: str, extra: str = "") -> str:
        kind = value_type(dtype, lanes)
        full = f"@llvm.{name}.{suffix(dtype, lanes)}"
        kinds = ", ".join([kind] * len(operands)) + (", i1" if extra else "")
        self.declarations.add(f"declare {kind} {full}({kinds})")
        given = ", ".join(f"{kind} {operand}" for operand in operands)
        return self.let(f"call {kind} {full}({given}{extra})")


def emit(block: Block, roots: Iterable[Expr], leaves: dict[Expr, str], lanes: int = 1) -> list[str]:
    """Append the computation of `roots` to the block. `leaves` names the loads and params. Returns the names."""
    names = dict(leaves)
    roots = tuple(roots)
    for expr in postorder(roots):
        if expr in names:
            continue
        if expr.op == "const":
            names[expr] = constant(expr.dtype, expr.value, lanes)
        else:
            names[expr] = block.rules[expr.op](block, expr, lanes, *(names[arg] for arg in expr.args))
    return [names[root] for root in roots]


def _plain(instruction_by_kind: dict[str, str]):
    """An instruction whose name depends on the kind of its operands (b, u, i, f)."""

    def rule(block, expr, lanes, *operands):
        instruction = instruction_by_kind[expr.args[0].dtype.kind]
        kind = value_type(expr.args[0].dtype, lanes)
        return block.let(f"{instruction} {kind} {', '.join(operands)}")

    return rule


def intrinsic(name: str, extra: str = ""):
    def rule(block, expr, lanes, *operands):
        return block.intrinsic(name, expr.dtype, lanes, *operands, extra=extra)

    return rule


def _neg(block, expr, lanes, a):
    kind = value_type(expr.dtype, lanes)
    if expr.dtype.kind == "f":
        return block.let(f"fneg {kind} {a}")
    return block.let(f"sub {kind} {constant(expr.dtype, 0, lanes)}, {a}")


def _abs(block, expr, lanes, a):
    if expr.dtype.kind == "f":
        return block.intrinsic("fabs", expr.dtype, lanes, a)
    if expr.dtype.kind == "i":
        return block.intrinsic("abs", expr.dtype, lanes, a, extra=", i1 false")
    return a


_BITS = {2: int16, 4: int32, 8: int64}


def _copysign(block, expr, lanes, magnitude, sign):
    """By bits. LLVM merges its intrinsic with conversions of the sign, even from float64 to float16, which x86 does not convert."""
    floats, whole = value_type(expr.dtype, lanes), _BITS[expr.dtype.itemsize]
    bits, top = value_type(whole, lanes), 1 << 8 * expr.dtype.itemsize - 1
    parts = []
    for value, mask in ((magnitude, top - 1), (sign, top)):
        number = block.let(f"bitcast {floats} {value} to {bits}")
        parts.append(block.let(f"and {bits} {number}, {constant(whole, mask, lanes)}"))
    both = block.let(f"or {bits} {parts[0]}, {parts[1]}")
    return block.let(f"bitcast {bits} {both} to {floats}")


# Bits of the mantissa, without the leading 1.
_MANTISSA = {float32: 23, float64: 52}


def _ldexp(block, expr, lanes, y, k):
    """Compute y * 2**k."""
    if not scales_by_powers():
        return scaled(block, expr, lanes, y, k)
    dtype, whole = expr.dtype, expr.args[1].dtype
    kind, count = value_type(dtype, lanes), value_type(int32, lanes)
    name = f"@llvm.ldexp.{suffix(dtype, lanes)}.{suffix(int32, lanes)}"
    block.declarations.add(f"declare {kind} {name}({kind}, {count})")
    return block.let(
        f"call {kind} {name}({kind} {y}, {count} {_resize_integer(block, whole, int32, lanes, k)})"
    )


def scaled(block, expr, lanes, y, k):
    """Compute y * 2**k without an instruction for it, as y * 2**(k >> 1) * 2**(k - (k >> 1)).

    Both powers are normal numbers. The first product is exact, because y is near 1, so that the result is rounded once.
    """
    dtype, whole = expr.dtype, expr.args[1].dtype
    half = block.let(f"ashr {value_type(whole, lanes)} {k}, {constant(whole, 1, lanes)}")
    rest = block.let(f"sub {value_type(whole, lanes)} {k}, {half}")
    for each in (half, rest):
        power = _power_of_two(block, dtype, whole, lanes, each)
        y = block.let(f"fmul {value_type(dtype, lanes)} {y}, {power}")
    return y


def _power_of_two(block, dtype, whole, lanes, k):
    """2**k, which is a normal number, as a float."""
    kind, mantissa = value_type(whole, lanes), _MANTISSA[dtype]
    one = ((1 << (8 * dtype.itemsize - 2 - mantissa)) - 1) << mantissa
    shifted = block.let(f"shl {kind} {k}, {constant(whole, mantissa, lanes)}")
    bits = block.let(f"add {kind} {shifted}, {constant(whole, one, lanes)}")
    return block.let(f"bitcast {kind} {bits} to {value_type(dtype, lanes)}")


def _not(block, expr, lanes, a):
    ones = (1 << (1 if expr.dtype is bool_ else 8 * expr.dtype.itemsize)) - 1
    return block.let(f"xor {value_type(expr.dtype, lanes)} {a}, {constant(expr.dtype, ones, lanes)}")


def _select(block, expr, lanes, condition, a, b):
    kind = value_type(expr.dtype, lanes)
    return block.let(f"select {value_type(bool_, lanes)} {condition}, {kind} {a}, {kind} {b}")


def _bitcast(block, expr, lanes, a):
    source = value_type(expr.args[0].dtype, lanes)
    return block.let(f"bitcast {source} {a} to {value_type(expr.dtype, lanes)}")


def _cast(block, expr, lanes, a):
    """Conversion as PyTorch's C++ does it; floats that LLVM cannot compute with never arrive (see `convert.py`)."""
    source, target = expr.args[0].dtype, expr.dtype
    if target is bool_:
        return _is_nonzero(block, source, lanes, a)
    if target.kind == "f":
        return _to_float(block, source, target, lanes, a)
    if source.kind != "f":
        return _resize_integer(block, source, target, lanes, a)
    if (within := bounds(expr.args[0])) is not None and -(2.0**31) <= within[0] <= within[1] < 2.0**31:
        return _resize_integer(
            block, int32, target, lanes, _convert(block, "fptosi", source, int32, lanes, a)
        )
    return _float_to_integer(block, source, target, lanes, a)


def _is_nonzero(block, source, lanes, a):
    compare = "fcmp une" if source.kind == "f" else "icmp ne"
    return block.let(f"{compare} {value_type(source, lanes)} {a}, {constant(source, 0, lanes)}")


def _convert(block, instruction, source, target, lanes, a):
    return block.let(f"{instruction} {value_type(source, lanes)} {a} to {value_type(target, lanes)}")


def _to_float(block, source, target, lanes, a):
    if source.kind != "f":
        return _convert(block, "sitofp" if source.kind == "i" else "uitofp", source, target, lanes, a)
    if float16 in (source, target) and float64 in (source, target):  # as PyTorch: through float32
        a = _convert(block, _float_resize(source, float32), source, float32, lanes, a)
        source = float32
    return _convert(block, _float_resize(source, target), source, target, lanes, a)


def _float_resize(source, target):
    return "fpext" if source.itemsize < target.itemsize else "fptrunc"


def _resize_integer(block, source, target, lanes, a):
    width = 1 if source is bool_ else 8 * source.itemsize
    if width == 8 * target.itemsize:
        return a
    if width > 8 * target.itemsize:
        return _convert(block, "trunc", source, target, lanes, a)
    return _convert(block, "sext" if source.kind == "i" else "zext", source, target, lanes, a)


def _float_to_integer(block, source, target, lanes, a):
    """Truncate through int32 (int64 for the wide types), whose minimum stands for everything out of range."""
    if target is uint64:
        return _float_to_uint64(block, source, lanes, a)
    through = int64 if target.itemsize == 8 or target is uint32 else int32
    kind = value_type(source, lanes)
    low, high = (_float_constant(source, lanes, sign * 2.0 ** (8 * through.itemsize - 1)) for sign in (-1, 1))
    # int32 and float64: values in (-2**31 - 1, -2**31) truncate into range; the comparison below is exact enough
    # because they give the minimum either way.
    at_least = block.let(f"fcmp oge {kind} {a}, {low}")
    below = block.let(f"fcmp olt {kind} {a}, {high}")
    fits = block.let(f"and {value_type(bool_, lanes)} {at_least}, {below}")
    zero = _float_constant(source, lanes, 0.0)
    safe = block.let(f"select {value_type(bool_, lanes)} {fits}, {kind} {a}, {kind} {zero}")
    integer = _convert(block, "fptosi", source, through, lanes, safe)
    whole = value_type(through, lanes)
    minimum = constant(through, _INT_MIN[through], lanes)
    chosen = block.let(f"select {value_type(bool_, lanes)} {fits}, {whole} {integer}, {whole} {minimum}")
    return _resize_integer(block, through, target, lanes, chosen)


def _float_to_uint64(block, source, lanes, a):
    """Values from 2**63 on convert after moving them down; negative ones wrap as int64 does."""
    kind, flags, whole = value_type(source, lanes), value_type(bool_, lanes), value_type(int64, lanes)
    half = _float_constant(source, lanes, 2.0**63)
    large = block.let(f"fcmp oge {kind} {a}, {half}")
    moved = block.let(f"fsub {kind} {a}, {half}")
    reduced = block.let(f"select {flags} {large}, {kind} {moved}, {kind} {a}")
    signed = _float_to_integer(block, source, int64, lanes, reduced)
    flipped = block.let(f"xor {whole} {signed}, {constant(int64, _INT_MIN[int64], lanes)}")
    return block.let(f"select {flags} {large}, {whole} {flipped}, {whole} {signed}")


def _float_constant(dtype: DType, lanes: int, value: float) -> str:
    if dtype is float16:
        value = max(min(value, float("inf")), float("-inf"))
        bits = struct.unpack("<H", struct.pack("<e", value if abs(value) < 65520 else float("inf") * value))[
            0
        ]
    elif dtype is float32:
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
    else:
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    return constant(dtype, bits, lanes)


def _compare(signed: str, unsigned: str, floating: str):
    return _plain(
        {"b": f"icmp {unsigned}", "u": f"icmp {unsigned}", "i": f"icmp {signed}", "f": f"fcmp {floating}"}
    )


def _all(instruction: str) -> dict[str, str]:
    return dict.fromkeys("bui", instruction)


_VECTOR_VARIANTS = (2, 4, 8, 16)
_PURE = "noinline willreturn memory(none) #0"


def _slow_path(block, expr, lanes, *operands):
    """A call of a function that branches. The function has variants for vectors, so that loops still vectorise.

    The variants compute the exception only for the lanes whose condition holds, one by one.
    """
    condition, exception = expr.value
    target = expr.dtype
    lines = Block(block.declarations)
    (result,) = emit(lines, [exception], _stand_ins(expr))
    body = "\n".join([*lines.lines, f"ret {value_type(target)} {result}"])
    name = hashlib.sha256(f"{condition!r}{body}".encode()).hexdigest()[:16]
    head = f"{value_type(target)} @exception_{name}_1({_arguments(expr, 1)})"
    block.declarations.add(f"define {head} {_PURE} {{\n{body}\n}}")
    for width in {1, lanes, *_VECTOR_VARIANTS}:  # reductions write wider vectors themselves
        block.declarations.add(_check_ir(block, expr, width, name))
        if width > 1:
            block.declarations.add(_each_lane_ir(block, expr, width, name))
    variants = ",".join(
        f"_ZGV_LLVM_N{width}{'v' * len(operands)}_slow_path_{name}_1(slow_path_{name}_{width})"
        for width in _VECTOR_VARIANTS
    )
    hint = f' "vector-function-abi-variant"="{variants}"' if lanes == 1 else ""
    return block.let(
        f"call {value_type(target, lanes)} @slow_path_{name}_{lanes}({_arguments(expr, lanes, operands)}) "
        f"nounwind willreturn memory(none){hint}"
    )


def _arguments(expr: Expr, lanes: int, names: Iterable[str] = ()) -> str:
    """Return the arguments of the functions of a `slow_path`: the values `names`, or the formal parameters."""
    given = names or [*_stand_ins(expr).values(), "%usual"]
    return ", ".join(f"{value_type(arg.dtype, lanes)} {n}" for arg, n in zip(expr.args, given, strict=True))


def _stand_ins(expr: Expr) -> dict[Expr, str]:
    """The loads in the condition and the exception of a `slow_path`, which become formal parameters."""
    return {load(k, x.dtype): f"%x{k}" for k, x in enumerate(expr.args[:-1])}


def _check_ir(block: Block, expr: Expr, lanes: int, name: str) -> str:
    """The usual result unless the condition holds in some lane. The rest is another function, so that this one needs no frame."""
    target, formal = value_type(expr.dtype, lanes), _arguments(expr, lanes)
    lines = Block(block.declarations)
    (flags,) = emit(lines, [expr.value[0]], _stand_ins(expr), lanes)
    if lanes > 1:
        block.declarations.add(f"declare i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1>)")
        flags = lines.let(f"call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> {flags})")
    return "\n".join(
        [
            f"define {target} @slow_path_{name}_{lanes}({formal}) {_PURE} {{",
            *lines.lines,
            f"br i1 {flags}, label %exception, label %usually",
            f"usually:\nret {target} %usual",
            f"exception:\n%y = tail call {target} @exception_{name}_{lanes}({formal})",
            f"ret {target} %y\n}}",
        ]
    )


def _each_lane_ir(block: Block, expr: Expr, lanes: int, name: str) -> str:
    """The exception for the lanes whose condition holds."""
    element, target = value_type(expr.dtype), value_type(expr.dtype, lanes)
    vectors = [*_stand_ins(expr).values(), "%before"]
    lane = [f"%e{k}" for k in range(len(vectors))]
    extracts = [
        f"{each} = extractelement {value_type(arg.dtype, lanes)} {vector}, i64 %i"
        for each, arg, vector in zip(lane, expr.args, vectors, strict=True)
    ]
    return "\n".join(
        [
            f"define {target} @exception_{name}_{lanes}({_arguments(expr, lanes)}) {_PURE} {{",
            "start:\nbr label %lane",
            "lane:",
            "%i = phi i64 [0, %start], [%next, %lane]",
            f"%before = phi {target} [%usual, %start], [%after, %lane]",
            *extracts,
            f"%new = call {element} @slow_path_{name}_1({_arguments(expr, 1, lane)})",
            f"%after = insertelement {target} %before, {element} %new, i64 %i",
            "%next = add i64 %i, 1",
            f"%more = icmp ult i64 %next, {lanes}",
            "br i1 %more, label %lane, label %done",
            f"done:\nret {target} %after\n}}",
        ]
    )


def _leaf(block, expr, lanes):
    raise KeyError(f"{expr!r} has no value in this kernel")


# How the target computes each primitive: name -> function that emits it.
HOST = {
    "load": _leaf,
    "param": _leaf,
    "const": _leaf,
    "add": _plain({**_all("add"), "b": "or", "f": "fadd"}),  # of one bit, `add` would be exclusive or
    "sub": _plain({**_all("sub"), "f": "fsub"}),
    "mul": _plain({**_all("mul"), "f": "fmul"}),
    "div": _plain({"b": "udiv", "u": "udiv", "i": "sdiv", "f": "fdiv"}),
    "rem": _plain({"b": "urem", "u": "urem", "i": "srem", "f": "frem"}),
    "neg": _neg,
    "abs": _abs,
    "fma": intrinsic("fma"),
    "sqrt": intrinsic("sqrt"),
    "floor": intrinsic("floor"),
    "ceil": intrinsic("ceil"),
    "trunc": intrinsic("trunc"),
    "rint": intrinsic("roundeven"),
    "copysign": _copysign,
    "ldexp": _ldexp,
    "and": _plain(_all("and")),
    "or": _plain(_all("or")),
    "xor": _plain(_all("xor")),
    "not": _not,
    "shl": _plain(_all("shl")),
    "shr": _plain({"b": "lshr", "u": "lshr", "i": "ashr"}),
    "popcount": intrinsic("ctpop"),
    "clz": intrinsic("ctlz", extra=", i1 false"),
    "lt": _compare("slt", "ult", "olt"),
    "le": _compare("sle", "ule", "ole"),
    "eq": _compare("eq", "eq", "oeq"),
    "ne": _compare("ne", "ne", "une"),
    "select": _select,
    "cast": _cast,
    "bitcast": _bitcast,
    "slow_path": _slow_path,
}
Block.rules = HOST
