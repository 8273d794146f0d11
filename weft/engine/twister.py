"""The Mersenne Twister (Matsumoto and Nishimura, 1998), compiled: it advances the state of a `Generator` in place."""

import functools
from collections.abc import Callable, Sequence

from ..core.generator import STATE
from . import tiers
from .host import builtin, entry_ir
from .structured import LOOP, Body, function

_OFFSETS = {name: field[1] for name, field in (STATE.fields or {}).items()}

# @draw(state, out, n): the next n > 0 numbers of 32 bits.
DRAW = f"""
define internal i64 @twisted(i64 %near, i64 %next, i64 %far) alwaysinline {{
  %high = and i64 %near, {0x80000000}
  %low = and i64 %next, {0x7FFFFFFF}
  %both = or i64 %high, %low
  %shifted = lshr i64 %both, 1
  %odd = and i64 %next, 1
  %mask = sub i64 0, %odd
  %matrix = and i64 %mask, {0x9908B0DF}
  %a = xor i64 %far, %shifted
  %b = xor i64 %a, %matrix
  ret i64 %b
}}

; inlined for each range, because only a constant distance to the far word lets LLVM vectorise the loop
define internal void @twist(ptr %words, i64 %start, i64 %stop, i64 %distance) alwaysinline {{
entry:
  br label %loop
loop:
  %i = phi i64 [%start, %entry], [%i1, %loop]
  %i1 = add nuw nsw i64 %i, 1
  %ifar = add nsw i64 %i, %distance
  %p = getelementptr i64, ptr %words, i64 %i
  %p1 = getelementptr i64, ptr %words, i64 %i1
  %pfar = getelementptr i64, ptr %words, i64 %ifar
  %x = load i64, ptr %p
  %x1 = load i64, ptr %p1
  %xfar = load i64, ptr %pfar
  %y = call i64 @twisted(i64 %x, i64 %x1, i64 %xfar)
  store i64 %y, ptr %p
  %more = icmp ult i64 %i1, %stop
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}

define internal void @renew(ptr %words) noinline #0 {{
  call void @twist(ptr %words, i64 0, i64 227, i64 397)
  call void @twist(ptr %words, i64 227, i64 623, i64 -227)
  %p = getelementptr i64, ptr %words, i64 623
  %pfar = getelementptr i64, ptr %words, i64 396
  %x = load i64, ptr %p
  %x1 = load i64, ptr %words
  %xfar = load i64, ptr %pfar
  %y = call i64 @twisted(i64 %x, i64 %x1, i64 %xfar)
  store i64 %y, ptr %p
  ret void
}}

define internal void @draw(ptr noalias %state, ptr noalias %out, i64 %n) #0 {{
entry:
  %pleft = getelementptr i8, ptr %state, i64 {_OFFSETS["left"]}
  %pnext = getelementptr i8, ptr %state, i64 {_OFFSETS["next"]}
  %words = getelementptr i8, ptr %state, i64 {_OFFSETS["words"]}
  br label %block
block:
  %done = phi i64 [0, %entry], [%done1, %drawn]
  %left32 = load i32, ptr %pleft
  %used_up = icmp eq i32 %left32, 1
  br i1 %used_up, label %refill, label %ready
refill:
  call void @renew(ptr %words)
  store i32 625, ptr %pleft
  store i64 0, ptr %pnext
  br label %ready
ready:
  %left = load i32, ptr %pleft
  %next = load i64, ptr %pnext
  %there32 = sub nuw nsw i32 %left, 1
  %there = zext i32 %there32 to i64
  %wanted = sub nuw nsw i64 %n, %done
  %m = call i64 @llvm.umin.i64(i64 %there, i64 %wanted)
  %from = getelementptr i64, ptr %words, i64 %next
  %to = getelementptr i32, ptr %out, i64 %done
  br label %temper
temper:
  %i = phi i64 [0, %ready], [%i1, %temper]
  %i1 = add nuw nsw i64 %i, 1
  %p = getelementptr i64, ptr %from, i64 %i
  %x = load i64, ptr %p
  %y0 = trunc i64 %x to i32
  %s0 = lshr i32 %y0, 11
  %y1 = xor i32 %y0, %s0
  %s1 = shl i32 %y1, 7
  %t1 = and i32 %s1, {0x9D2C5680}
  %y2 = xor i32 %y1, %t1
  %s2 = shl i32 %y2, 15
  %t2 = and i32 %s2, {0xEFC60000}
  %y3 = xor i32 %y2, %t2
  %s3 = lshr i32 %y3, 18
  %y4 = xor i32 %y3, %s3
  %q = getelementptr i32, ptr %to, i64 %i
  store i32 %y4, ptr %q
  %more = icmp ult i64 %i1, %m
  br i1 %more, label %temper, label %drawn
drawn:
  %m32 = trunc i64 %m to i32
  %left1 = sub nuw nsw i32 %left, %m32
  store i32 %left1, ptr %pleft
  %next1 = add nuw nsw i64 %next, %m
  store i64 %next1, ptr %pnext
  %done1 = add nuw nsw i64 %done, %m
  %again = icmp ult i64 %done1, %n
  br i1 %again, label %block, label %exit
exit:
  ret void
}}
declare i64 @llvm.umin.i64(i64, i64)
"""


def compiled(
    write: Callable[[Body], None],
    operands: int,
    parameters: str,
    name: str,
    parts: Sequence[str] = (),
    declarations: set[str] | None = None,
) -> Callable:
    """The function of a loop whose body `write` fills in; `parts` are other functions of its module, with their declarations.

    See `host.entry_ir` for the arguments.
    """
    declarations = set() if declarations is None else declarations
    loop = function("loop", LOOP, declarations, write)
    ir = "\n".join([*sorted(declarations), *parts, loop])
    (address,) = tiers.compile_ir(f"{ir}\n{entry_ir(operands, parameters)}", "call")
    return builtin(address, name)


@functools.cache
def draw() -> Callable:
    """(generator.address, address of the draws, 0, n > 0): write the next n draws, 32-bit words.

    The caller holds the generator's lock.
    """

    def write(b: Body) -> None:
        state, out = b.operands(2)
        b.do(f"call void @draw(ptr {state}, ptr {out}, i64 %end)")

    return compiled(write, 2, "", "draw", [DRAW])
