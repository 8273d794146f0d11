"""Maps, reductions, scans and products as functions that JAX traces."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtype import DType, bool_
from ...core.spec import Spec
from ...engine.expr import Expr, postorder
from ...engine.loops import Result, element_size
from ...engine.monoid import Monoid, index
from .contents import Contents, Place, grid
from .expressions import evaluate
from .functions import with_functions
from .graph import Kernel, View

State = Sequence[Any]
# Elements that are added one after the other. Sums of more are sums of so many partial sums, because rounding errors grow with the number.
RUN = 256
LONG = 60  # nodes of `combine`; XLA takes a minute to compile a scan by halves for the 650 of a complex logcumsumexp


def view_of(dtype: DType, sizes: Sequence[int], strides: Sequence[int]) -> View:
    part = dtype.to_real()
    return View(sizes, strides, dtype.itemsize, np.dtype(np.uint8) if part is bool_ else part.numpy)


def view_of_result(result: Result, sizes: Sequence[int], strides: Sequence[int]) -> View:
    return view_of(result.parts[0].dtype, sizes, strides)._replace(itemsize=element_size(result))


def leaves(roots: Sequence[Expr]) -> list[Expr]:
    """The loads of expressions."""
    return [each for each in postorder(tuple(roots)) if each.op == "load"]


def parts_of(results: Sequence[Result]) -> list[Expr]:
    return [part for result in results for part in result.parts]


def operand_of(leaf: Expr) -> tuple[int, int]:
    """Which operand a load reads, and which part of its elements."""
    return leaf.value if isinstance(leaf.value, tuple) else (leaf.value, 0)


def loads(
    contents: Contents,
    roots: Sequence[Expr],
    places: Sequence[Place],
    sizes: Sequence[int],
    strides: Sequence[Sequence[int]],
) -> dict[Expr, Any]:
    """What the expressions load from operands at these places."""
    found = {}
    for leaf in leaves(roots):
        if leaf is index():
            continue
        operand, part = operand_of(leaf)
        block, start = places[operand]
        place = block, start + part * leaf.dtype.itemsize
        found[leaf] = contents.load(place, leaf.dtype, sizes, strides[operand])
    return found


def store(
    contents: Contents,
    results: Sequence[Result],
    values: Sequence[Any],
    places: Sequence[Place],
    sizes: Sequence[int],
    strides: Sequence[Sequence[int]],
) -> None:
    """Write the values of the parts of all results."""
    remaining = iter(values)
    for result, place, row in zip(results, places, strides, strict=False):
        contents.store(place, [next(remaining) for _ in result.parts], sizes, row)


# ---- Maps ------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def map_kernel(
    results: tuple[Result, ...],
    operand_dtypes: tuple[DType, ...],
    params: tuple[DType, ...],
    sizes: tuple[int, ...],
    strides: tuple[tuple[int, ...], ...],
) -> Kernel:
    outputs, roots = len(results), parts_of(results)

    def run(contents: Contents, places: Sequence[Place], numbers: Sequence[Any]) -> None:
        given = loads(contents, roots, places[outputs:], sizes, strides[outputs:])
        values = evaluate(roots, given, numbers)
        store(contents, results, values, places, sizes, strides)

    views = [view_of_result(result, sizes, row) for result, row in zip(results, strides, strict=False)]
    views += [
        view_of(dtype, sizes, row) for dtype, row in zip(operand_dtypes, strides[outputs:], strict=True)
    ]
    return Kernel(run, views, outputs, params)


# ---- Monoids ---------------------------------------------------------------------------------------------------------


def _states(of: Sequence[Expr], state: State) -> dict[Expr, Any]:
    return dict(zip(of, state, strict=True))


def _combine(monoid: Monoid, left: Sequence[Any], right: Sequence[Any]) -> State:
    return evaluate(monoid.combine, _states(monoid.left, left) | _states(monoid.right, right))


def _lift(monoid: Monoid, given: Mapping[Expr, Any], position: Any, sizes: Sequence[int]) -> State:
    """The states of elements; `position` is theirs along the reduced dims."""
    values = evaluate(monoid.to_state, {**given, index(): position})
    return [jnp.broadcast_to(value, tuple(sizes)) for value in values]


def _identity(monoid: Monoid) -> State:
    return [jnp.asarray(value) for value in evaluate(monoid.identity, {})]


def _finish(monoid: Monoid, state: State, numbers: Sequence[Any]) -> list[Any]:
    return evaluate(parts_of(monoid.finish), _states(monoid.left, state), numbers)


def _fold(monoid: Monoid, state: State, axes: Sequence[int]) -> State:
    """Combine the states along some axes."""
    if not monoid.cascade:
        return _reduced(monoid, state, axes)
    for axis in sorted(axes, reverse=True):
        while (count := state[0].shape[axis]) > RUN:
            state = _reduced(monoid, _cut(monoid, state, axis, -(-count // RUN)), [axis + 1])
        state = _reduced(monoid, state, [axis])
    return state


def _reduced(monoid: Monoid, state: State, axes: Sequence[int]) -> State:
    """Combine in any order."""
    combine = lambda left, right: tuple(_combine(monoid, left, right))  # noqa: E731
    return list(lax.reduce(tuple(state), tuple(_identity(monoid)), combine, tuple(axes)))


def _cut(monoid: Monoid, state: State, axis: int, runs: int) -> State:
    """Cut an axis into runs of equal length, the last of which identities fill up."""
    length = -(-state[0].shape[axis] // runs)
    found = []
    for value, filler in zip(state, _identity(monoid), strict=True):
        shape = value.shape
        more = [(0, runs * length - shape[axis] if k == axis else 0, 0) for k in range(value.ndim)]
        found.append(lax.pad(value, filler, more).reshape(*shape[:axis], runs, length, *shape[axis + 1 :]))
    return found


@functools.lru_cache(maxsize=4096)
def reduce_kernel(
    monoid: Monoid,
    operand_dtypes: tuple[DType, ...],
    params: tuple[DType, ...],
    kept: tuple[tuple[int, ...], tuple[tuple[int, ...], ...]],
    reduced: tuple[tuple[int, ...], tuple[tuple[int, ...], ...]],
) -> Kernel:
    outputs, all_kept = len(monoid.finish), len(kept[0])
    whole = (*kept[0], *reduced[0])
    rows = [(*outer, *inner) for outer, inner in zip(kept[1][outputs:], reduced[1], strict=True)]
    # In the order of memory, so that XLA moves no elements. The position along the reduced dims is that of their logical order.
    order = sorted(range(len(whole)), key=lambda dim: -max(abs(row[dim]) for row in rows))
    axes = [axis for axis, dim in enumerate(order) if dim >= all_kept]
    kept_order = [dim for dim in order if dim < all_kept]
    steps = [0] * all_kept + [math.prod(reduced[0][k + 1 :]) for k in range(len(reduced[0]))]

    def of(values: Sequence[int], dims: Sequence[int] = order) -> tuple[int, ...]:
        return tuple([values[dim] for dim in dims])

    def run(contents: Contents, places: Sequence[Place], numbers: Sequence[Any]) -> None:
        given = loads(contents, monoid.to_state, places[outputs:], of(whole), [of(row) for row in rows])
        state = _lift(monoid, given, grid(of(whole), of(steps)), of(whole))
        values = _finish(monoid, _fold(monoid, state, axes), numbers)
        results = [of(row, kept_order) for row in kept[1][:outputs]]
        store(contents, monoid.finish, values, places, of(kept[0], kept_order), results)

    views = [
        view_of_result(result, kept[0], row) for result, row in zip(monoid.finish, kept[1], strict=False)
    ]
    views += [view_of(dtype, whole, row) for dtype, row in zip(operand_dtypes, rows, strict=True)]
    return Kernel(run, views, outputs, params)


def _scan_by_halves(monoid: Monoid, elements: State) -> State:
    """The states after each element along the last dim; `combine` is compiled for each power of two."""
    # The state of one element is not always what the identity and it make: that of logcumsumexp is relative to an infinite one.
    shape = elements[0].shape
    first = _combine(monoid, [jnp.broadcast_to(value, shape) for value in _identity(monoid)], elements)
    return lax.associative_scan(lambda a, b: _combine(monoid, a, b), first, axis=len(shape) - 1)


def _scan_in_turn(monoid: Monoid, elements: State) -> State:
    """The same by a loop, for which `combine` is compiled once."""

    def step(state: Any, element: Any) -> tuple[Any, Any]:
        state = _combine(monoid, state, element)
        return state, state

    rows = [jnp.moveaxis(value, -1, 0) for value in elements]
    start = [jnp.broadcast_to(value, rows[0].shape[1:]) for value in _identity(monoid)]
    return [jnp.moveaxis(value, 0, -1) for value in lax.scan(step, start, rows)[1]]


@functools.lru_cache(maxsize=4096)
def scan_kernel(
    monoid: Monoid,
    operand_dtypes: tuple[DType, ...],
    sizes: tuple[int, ...],
    strides: tuple[tuple[int, ...], ...],
) -> Kernel:
    outputs = len(monoid.finish)
    is_long = len(postorder(with_functions(monoid.combine))) > LONG

    def run(contents: Contents, places: Sequence[Place], numbers: Sequence[Any]) -> None:
        given = loads(contents, monoid.to_state, places[outputs:], sizes, strides[outputs:])
        elements = _lift(monoid, given, jnp.arange(sizes[-1]), sizes)
        state = (_scan_in_turn if is_long else _scan_by_halves)(monoid, elements)
        store(contents, monoid.finish, _finish(monoid, state, ()), places, sizes, strides)

    views = [view_of_result(result, sizes, row) for result, row in zip(monoid.finish, strides, strict=False)]
    views += [
        view_of(dtype, sizes, row) for dtype, row in zip(operand_dtypes, strides[outputs:], strict=True)
    ]
    return Kernel(run, views, outputs)


# ---- Products --------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def product_kernel(a: Spec, b: Spec, result: Spec) -> Kernel:
    """Matrix products; sums of float16 and bfloat16 are those of float32."""
    specs = (result, a, b)
    wanted = result.dtype.to_real().numpy
    narrow = a.dtype.kind == "f" and a.dtype.itemsize < 4

    def operand(contents: Contents, place: Place, spec: Spec) -> Any:
        part = spec.dtype.to_real()
        parts = [
            contents.load((place[0], place[1] + k * part.itemsize), part, spec.shape, spec.byte_stride)
            for k in range(2 if spec.dtype.is_complex else 1)
        ]
        return lax.complex(*parts) if spec.dtype.is_complex else parts[0]

    def run(contents: Contents, places: Sequence[Place], numbers: Sequence[Any]) -> None:
        x, y = (operand(contents, place, spec) for place, spec in zip(places[1:], specs[1:], strict=True))
        product = jnp.matmul(
            x, y, precision=lax.Precision.HIGHEST, preferred_element_type=np.float32 if narrow else None
        )
        parts = [product.real, product.imag] if result.dtype.is_complex else [product]
        contents.store(places[0], [part.astype(wanted) for part in parts], result.shape, result.byte_stride)

    return Kernel(run, [view_of(spec.dtype, spec.shape, spec.byte_stride) for spec in specs], 1)
