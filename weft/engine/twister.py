"""Compiles the Mersenne Twister (Matsumoto, Nishimura 1998), which advances a `Generator` in place."""

import functools
from collections.abc import Callable, Sequence

from ..core.generator import STATE, Seeding
from . import tiers
from .host import builtin, entry_ir
from .structured import LOOP, Body, function

_OFFSETS = {name: field[1] for name, field in (STATE.fields or {}).items()}

# Words of the state. Each word depends on the next one and on one that is so many words further on, around the end.
_WORDS, _FURTHER = 624, 397


def _twist(b: Body, i: str | int, following: str | int, far: str | int) -> None:
    """Compute a new word from itself, the one after it and the far one."""
    place = b.place("%words", (i, 8))
    near, after, beyond = (b.load("i64", b.place("%words", (k, 8))) for k in (i, following, far))
    both = b.integer("or", b.integer("and", near, 0x80000000), b.integer("and", after, 0x7FFFFFFF))
    matrix = b.integer("and", b.integer("sub", 0, b.integer("and", after, 1)), 0x9908B0DF)
    word = b.integer("xor", b.integer("xor", beyond, b.integer("lshr", both, 1)), matrix)
    b.do(f"store i64 {word}, ptr {place}")


def _renew(b: Body) -> None:
    """Compute all words anew. Only a constant distance to the far word lets LLVM vectorise a loop."""
    middle = _WORDS - _FURTHER
    for start, stop, distance in ((0, middle, _FURTHER), (middle, _WORDS - 1, -middle)):
        with b.loop(start, stop) as i:
            _twist(b, i, b.integer("add nsw", i, 1), b.integer("add nsw", i, distance))
    _twist(b, _WORDS - 1, 0, _FURTHER - 1)


def _tempered(b: Body, word: str) -> str:
    """Return a number of 32 bits from a word of the state."""
    x = b.let(f"trunc i64 {word} to i32")
    for shift, bits, mask in (
        ("lshr", 11, -1),
        ("shl", 7, 0x9D2C5680),
        ("shl", 15, 0xEFC60000),
        ("lshr", 18, -1),
    ):
        moved = b.let(f"and i32 {b.let(f'{shift} i32 {x}, {bits}')}, {mask}")
        x = b.let(f"xor i32 {x}, {moved}")
    return x


def _draw(b: Body) -> None:
    """Write the next n > 0 numbers of 32 bits."""
    left_at, next_at, words = (b.at("%state", _OFFSETS[name]) for name in ("left", "next", "words"))
    done = b.variable("i64", "0")
    with b.repeat() as go_on_if:
        with b.when(b.let(f"icmp eq i32 {b.load('i32', left_at)}, 1")):
            b.do(f"call void @renew(ptr {words})")
            b.do(f"store i32 {_WORDS + 1}, ptr {left_at}")
            b.do(f"store i64 0, ptr {next_at}")
        left, first = b.load("i32", left_at), b.load("i64", next_at)
        there = b.let(f"zext i32 {b.let(f'sub nuw nsw i32 {left}, 1')} to i64")
        count = b.minimum(there, b.integer("sub nuw nsw", "%n", b.get(done, "i64")))
        source, target = b.place(words, (first, 8)), b.place("%out", (b.get(done, "i64"), 4))
        with b.loop(0, count) as i:
            number = _tempered(b, b.load("i64", b.place(source, (i, 8))))
            b.do(f"store i32 {number}, ptr {b.place(target, (i, 4))}")
        fewer = b.let(f"sub nuw nsw i32 {left}, {b.let(f'trunc i64 {count} to i32')}")
        b.do(f"store i32 {fewer}, ptr {left_at}")
        b.do(f"store i64 {b.integer('add nuw nsw', first, count)}, ptr {next_at}")
        b.set(done, "i64", b.integer("add nuw nsw", b.get(done, "i64"), count))
        go_on_if(b.let(f"icmp ult i64 {b.get(done, 'i64')}, %n"))


def _seed(b: Body) -> None:
    """Write the state for a seed. Knuth's recurrence, TAOCP volume 2, 3rd edition, page 106: only the low 32 bits of the seed enter the words."""
    (state,) = b.operands(1)
    seed = b.load("i64", b.at("%operands", 8))
    # left = 1, so that the first draw generates new words.
    fields = (("seed", "i64", seed), ("left", "i32", 1), ("seeded", "i32", 1), ("next", "i64", 0))
    for name, kind, value in (*fields, ("normal", "double", "0.0"), ("normal_is_valid", "i32", 0)):
        b.do(f"store {kind} {value}, ptr {b.at(state, _OFFSETS[name])}")
    words, last = b.at(state, _OFFSETS["words"]), b.integer("and", seed, 0xFFFFFFFF)
    b.do(f"store i64 {last}, ptr {words}")
    before = b.variable("i64", last)
    with b.loop(1, _WORDS) as i:
        last = b.get(before, "i64")
        product = b.integer("mul", b.integer("xor", last, b.integer("lshr", last, 30)), 1812433253)
        word = b.integer("and", b.integer("add", product, i), 0xFFFFFFFF)
        b.do(f"store i64 {word}, ptr {b.place(words, (i, 8))}")
        b.set(before, "i64", word)


def draw_functions(declarations: set[str]) -> list[str]:
    """`draw(state, out, n)`, with the function that it calls."""
    parameters = "ptr noalias %state, ptr noalias %out, i64 %n"
    return [
        function("renew", "ptr %words", declarations, _renew, "internal"),
        function("draw", parameters, declarations, _draw, "private"),
    ]


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
def seed() -> Callable:
    """(generator.address, seed as an unsigned number, 0, 1): write the state for a seed. The caller holds the generator's lock."""
    return compiled(_seed, 1, "8", "manual_seed")


Seeding.machine_code = seed


@functools.cache
def draw() -> Callable:
    """(generator.address, address of the draws, 0, n > 0): write the next n draws, 32-bit words.

    The caller holds the generator's lock.
    """

    def write(b: Body) -> None:
        state, out = b.operands(2)
        b.do(f"call void @draw(ptr {state}, ptr {out}, i64 %end)")

    declarations: set[str] = set()
    return compiled(write, 2, "", "draw", draw_functions(declarations), declarations)
