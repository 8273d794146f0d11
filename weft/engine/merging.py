"""Merges two sequences of integers, as LLVM IR."""

from __future__ import annotations

import functools

from .kernel import Code, loop_code
from .structured import Body


@functools.cache
def merge_code() -> Code:
    """A loop of one step: operands are the places of the left and of the right sequence in the merged one, the size of the merged
    one, and the two sequences, all int64. meta: the sizes of both sequences.

    The lesser of the two heads comes next. Heads that are equal become one element.
    """
    return loop_code(_merge, 5, vectorize=False)


def _merge(b: Body) -> None:
    to_left, to_right, size, left, right = b.operands(5)
    n_left, n_right = b.meta(2)
    total = b.integer("add", n_left, n_right)
    i, j, k = (b.variable("i64", "0") for _ in range(3))
    with b.loop("%begin", "%end"):
        with b.loop(0, total):
            at_left, at_right, place = (b.get(each, "i64") for each in (i, j, k))
            some_left = b.let(f"icmp slt i64 {at_left}, {n_left}")
            some_right = b.let(f"icmp slt i64 {at_right}, {n_right}")
            with b.when(b.let(f"and i1 {some_left}, {some_right}")):
                x, y = _item(b, left, at_left), _item(b, right, at_right)
                for chosen, target, at, counter in (
                    ("sle", to_left, at_left, i),
                    ("sge", to_right, at_right, j),
                ):
                    # Storing each time, and advancing only sometimes, avoids a branch that cannot be predicted.
                    b.do(f"store i64 {place}, ptr {b.let(f'getelementptr i64, ptr {target}, i64 {at}')}")
                    step = b.let(f"zext i1 {b.let(f'icmp {chosen} i64 {x}, {y}')} to i64")
                    b.set(counter, "i64", b.integer("add", at, step))
                b.set(k, "i64", b.integer("add", place, 1))
        for n, target, counter in ((n_left, to_left, i), (n_right, to_right, j)):
            with b.loop(b.get(counter, "i64"), n) as at:
                place = b.get(k, "i64")
                b.do(f"store i64 {place}, ptr {b.let(f'getelementptr i64, ptr {target}, i64 {at}')}")
                b.set(k, "i64", b.integer("add", place, 1))
        b.do(f"store i64 {b.get(k, 'i64')}, ptr {size}")


def _item(b: Body, base: str, i: str) -> str:
    return b.let(f"load i64, ptr {b.let(f'getelementptr i64, ptr {base}, i64 {i}')}")
