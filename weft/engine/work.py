"""How much work a kernel does: its operations on numbers, and the bytes that it reads and writes.

Every count of weft uses these definitions: `weft.count`, `weft.explain` and the pictures of kernels.

- **FLOP** are the arithmetic operations of the kernel's expression, once for each element that it computes. An operation such as + or
  sqrt and a mathematical function such as exp, maximum or lgamma count 1 each, a fused multiply-add counts 2. Comparisons, logic,
  operations on bits, conversions and choices between two values (`where`) count 0. An operation on complex numbers counts those on
  their parts. Integers count as floats do.
- **Bytes** are those of the elements that the kernel reads or writes. An element that it reads several times counts once, because it
  is in the processor's caches the next time; an element that indices select counts each time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.copy_on_write import CopyOnWrite
from ..core.dtype import DType
from ..core.promised import Watched
from ..core.spec import Spec
from ..core.storage import Storage
from .expr import Expr, operands_of_function
from .kernel import Indexing
from .loops import Result, element_size
from .monoid import Monoid

# Primitives that count; all others count 0.
_COSTS = {
    **dict.fromkeys("add sub mul div rem neg abs sqrt floor ceil trunc rint copysign ldexp".split(), 1),
    "fma": 2,
}


class Work(NamedTuple):
    """Counts of one kernel, or of several. `products` are the FLOP of matrix products, convolutions and attention, which are part of `flop`."""

    flop: int = 0
    read: int = 0  # bytes
    written: int = 0  # bytes
    products: int = 0

    @property
    def moved(self) -> int:
        """Return the bytes read and written."""
        return self.read + self.written

    def plus(self, other: Work) -> Work:
        """Return the sum of two counts."""
        return Work(*map(sum, zip(self, other, strict=True)))


def operations(roots: Sequence[Expr]) -> int:
    """Count the arithmetic operations of expressions; what several of them share is computed once."""
    count = 0
    seen: set[Expr] = set()
    stack = list(roots)
    while stack:
        expr = stack.pop()
        if expr in seen:
            continue
        seen.add(expr)
        inner = operands_of_function(expr)
        if inner is None:
            inner = expr.args
            count += _COSTS.get(expr.op, 0)
        else:
            count += 1
        stack.extend(inner)
    return count


def touched(sizes: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    """Count the bytes of the elements that a loop over `sizes` with `strides` in bytes touches, each once."""
    if 0 in sizes:
        return 0
    loops = [(size, abs(stride)) for size, stride in zip(sizes, strides, strict=True) if stride]
    elements = math.prod(size for size, _ in loops)
    reach = itemsize + sum((size - 1) * stride for size, stride in loops)
    return min(elements * itemsize, reach)  # windows that overlap reach fewer bytes than they have elements


def touched_by(spec: Spec) -> int:
    """Count the bytes of the elements of a tensor, each once."""
    return touched(spec.shape, spec.byte_stride, spec.dtype.itemsize)


def has_memory(tensor: Any) -> bool:
    """Whether a tensor has numbers of its own: it is no sample of `vmap`, has no layout of parts, and is not deferred."""
    return type(tensor.spec) is Spec and type(tensor._storage) in (Storage, Watched, CopyOnWrite)


def of_map(
    results: Sequence[Result],
    operand_dtypes: Sequence[DType],
    sizes: Sequence[int],
    strides: Sequence[Sequence[int]],
) -> Work:
    """Count an elementwise kernel; `strides` has a row for each result, then for each operand."""
    itemsizes = [*map(element_size, results), *(each.itemsize for each in operand_dtypes)]
    moved = [touched(sizes, row, size) for row, size in zip(strides, itemsizes, strict=True)]
    count = operations([part for result in results for part in result.parts])
    first = len(results)
    return Work(count * math.prod(sizes), sum(moved[first:]), sum(moved[:first]))


def of_indexed(
    results: Sequence[Result],
    operand_dtypes: Sequence[DType],
    sizes: Sequence[int],
    strides: Sequence[Sequence[int]],
    indexing: Indexing,
) -> Work:
    """Count a gather or a scatter. Indices may select an element several times, so each selection counts."""
    itemsizes = [*map(element_size, results), *(each.itemsize for each in operand_dtypes)]
    elements = math.prod(sizes)
    moved = [
        elements * size if k in indexing.displaced else touched(sizes, row, size)
        for k, (row, size) in enumerate(zip(strides, itemsizes, strict=True))
    ]
    count = operations([part for result in results for part in result.parts])
    first = len(results)
    return Work(count * elements, sum(moved[first:]), sum(moved[:first]))


def of_reduction(
    monoid: Monoid,
    operand_dtypes: Sequence[DType],
    kept: tuple[Sequence[int], Sequence[Sequence[int]]],
    reduced: tuple[Sequence[int], Sequence[Sequence[int]]],
) -> Work:
    """Count a reduction: each element becomes a state and is combined with the state so far, and the last state becomes the results."""
    outputs = len(monoid.finish)
    sizes = (*kept[0], *reduced[0])
    read = sum(
        touched(sizes, (*row, *inner), dtype.itemsize)
        for row, inner, dtype in zip(kept[1][outputs:], reduced[1], operand_dtypes, strict=True)
    )
    written = sum(
        touched(kept[0], row, element_size(each)) for row, each in zip(kept[1], monoid.finish, strict=False)
    )
    results = math.prod(kept[0])
    flop = results * (math.prod(reduced[0]) * _per_element(monoid) + _per_result(monoid))
    return Work(flop, read, written)


def of_scan(
    monoid: Monoid, operand_dtypes: Sequence[DType], sizes: Sequence[int], strides: Sequence[Sequence[int]]
) -> Work:
    """Count a scan, which makes results of the state after each element."""
    itemsizes = [*map(element_size, monoid.finish), *(each.itemsize for each in operand_dtypes)]
    moved = [touched(sizes, row, size) for row, size in zip(strides, itemsizes, strict=True)]
    first = len(monoid.finish)
    flop = math.prod(sizes) * (_per_element(monoid) + _per_result(monoid))
    return Work(flop, sum(moved[first:]), sum(moved[:first]))


def _per_element(monoid: Monoid) -> int:
    return operations(monoid.to_state) + operations(monoid.append)


def _per_result(monoid: Monoid) -> int:
    return operations([part for result in monoid.finish for part in result.parts])


def of_product(a: Spec, b: Spec, result: Spec) -> Work:
    """Count a product of matrices: a multiplication and an addition for each term of each sum, of real or of complex numbers."""
    flop = (8 if result.dtype.is_complex else 2) * result.numel * a.shape[-1]
    return Work(flop, touched_by(a) + touched_by(b), touched_by(result), flop)
