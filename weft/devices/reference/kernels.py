"""Runs maps, reductions and scans: the interpreter evaluates their expressions on whole arrays of elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtype import DType, bool_
from ...engine.expr import Expr
from ...engine.interpreter import evaluate
from ...engine.loops import Result
from ...engine.monoid import Monoid
from .memory import Memory

State = list[np.ndarray]


def load(
    memory: Memory, address: int, dtype: DType, sizes: Sequence[int], strides: Sequence[int]
) -> np.ndarray:
    """The elements of an operand as the interpreter takes them."""
    if dtype is bool_:  # any byte but 0 is true
        return memory.array(address, np.dtype(np.uint8), sizes, strides) != 0
    return memory.array(address, dtype.numpy, sizes, strides)


def store(
    memory: Memory,
    address: int,
    result: Result,
    values: Sequence[np.ndarray],
    sizes: Sequence[int],
    strides: Sequence[int],
) -> None:
    """Write the parts of a result: one, or the real and the imaginary one."""
    for part, value in zip(result.parts, values, strict=True):
        memory.array(address, part.dtype.numpy, sizes, strides)[...] = value
        address += part.dtype.itemsize


def numbers(values: Sequence[Any], dtypes: Sequence[DType]) -> list[Any]:
    """Params as a kernel gets them: integers have 64 bits, of which it takes the low ones."""
    return [_number(value, dtype) for value, dtype in zip(values, dtypes, strict=True)]


def _number(value: Any, dtype: DType) -> Any:
    with np.errstate(over="ignore"):
        if dtype.kind == "f":
            return dtype.numpy.type(value)
        return np.uint64(int(value) & (1 << 64) - 1).astype(dtype.numpy)


def evaluate_results(
    results: Sequence[Result], operands: Any, params: Sequence[Any] = ()
) -> list[list[np.ndarray]]:
    """The parts of each result, as arrays of their own."""
    values = iter(evaluate([part for result in results for part in result.parts], operands, params))
    return [[np.array(next(values)) for _ in result.parts] for result in results]


# ---- Maps ------------------------------------------------------------------------------------------------------------


def prepare_map(
    memory: Memory,
    results: Sequence[Result],
    operand_dtypes: Sequence[DType],
    params: Sequence[DType],
    sizes: Sequence[int],
    strides: Sequence[Sequence[int]],
) -> Callable:
    outputs, end = len(results), len(strides)

    def entry(*arguments: Any) -> None:
        inputs = [
            load(memory, address, dtype, sizes, row)
            for address, dtype, row in zip(
                arguments[outputs:end], operand_dtypes, strides[outputs:], strict=True
            )
        ]
        values = evaluate_results(results, inputs, numbers(arguments[end : end + len(params)], params))
        for address, result, parts, row in zip(arguments, results, values, strides, strict=False):
            store(memory, address, result, parts, sizes, row)

    return entry


# ---- Monoids ---------------------------------------------------------------------------------------------------------


def _states(leaves: Sequence[Expr], state: State) -> dict[Any, np.ndarray]:
    """A state under the names by which `combine` and `finish` load it."""
    return {leaf.value: value for leaf, value in zip(leaves, state, strict=True)}


def _lift(monoid: Monoid, inputs: Sequence[np.ndarray], position: Any, sizes: Sequence[int]) -> State:
    """The states of elements; `position` is theirs along the reduced dims."""
    operands: dict[Any, np.ndarray] = {**dict(enumerate(inputs)), "index": np.asarray(position, np.int64)}
    values = evaluate(monoid.to_state, operands)
    return [np.broadcast_to(value, tuple(sizes)) for value in values]


def _identity(monoid: Monoid, sizes: Sequence[int]) -> State:
    return [np.broadcast_to(value, tuple(sizes)) for value in evaluate(monoid.identity, ())]


def _combine(monoid: Monoid, left: State, right: State) -> State:
    sizes = np.broadcast_shapes(*(value.shape for value in (*left, *right)))
    values = evaluate(monoid.combine, _states(monoid.left, left) | _states(monoid.right, right))
    return [np.broadcast_to(value, sizes) for value in values]


def _finish(monoid: Monoid, state: State, params: Sequence[Any]) -> list[list[np.ndarray]]:
    return evaluate_results(monoid.finish, _states(monoid.left, state), params)


def prepare_reduction(
    memory: Memory,
    monoid: Monoid,
    operand_dtypes: Sequence[DType],
    params: Sequence[DType],
    kept: tuple[Sequence[int], Sequence[Sequence[int]]],
    reduced: tuple[Sequence[int], Sequence[Sequence[int]]],
) -> Callable:
    """All elements are lifted at once, then neighbours are combined until one state is left for each result."""
    outputs, inputs = len(monoid.finish), len(operand_dtypes)
    count = math.prod(reduced[0])
    whole = (*kept[0], *reduced[0])
    rows = [(*kept[1][outputs + k], *reduced[1][k]) for k in range(inputs)]

    def entry(*arguments: Any) -> None:
        addresses = arguments[outputs : outputs + inputs]
        first = outputs + inputs + 1  # behind the addresses and the meta of the reduced dims
        given = numbers(arguments[first : first + len(params)], params)
        elements = [
            load(memory, address, dtype, whole, row).reshape(*kept[0], count)
            for address, dtype, row in zip(addresses, operand_dtypes, rows, strict=True)
        ]
        state = _lift(monoid, elements, np.arange(count), (*kept[0], count))
        total = _combine(monoid, _identity(monoid, kept[0]), _fold(monoid, state)) if count else None
        values = _finish(monoid, total or _identity(monoid, kept[0]), given)
        for address, result, parts, row in zip(arguments, monoid.finish, values, kept[1], strict=False):
            store(memory, address, result, parts, kept[0], row)

    return entry


def _fold(monoid: Monoid, state: State) -> State:
    """Combine neighbours along the last dim, in order, until there is one."""
    while (count := state[0].shape[-1]) > 1:
        pairs = count // 2 * 2
        joined = _combine(
            monoid, [value[..., 0:pairs:2] for value in state], [value[..., 1:pairs:2] for value in state]
        )
        state = [np.concatenate([new, old[..., pairs:]], -1) for new, old in zip(joined, state, strict=True)]
    return [value[..., 0] for value in state]


def prepare_scan(
    memory: Memory,
    monoid: Monoid,
    operand_dtypes: Sequence[DType],
    sizes: Sequence[int],
    strides: Sequence[Sequence[int]],
) -> Callable:
    """One element of each row after the other; the state of all rows is one array."""
    outputs, end = len(monoid.finish), len(strides)
    *outer, count = sizes

    def entry(*arguments: Any) -> None:
        state = _identity(monoid, outer)
        for position in range(count):
            addresses = [
                address + position * row[-1] for address, row in zip(arguments[:end], strides, strict=True)
            ]
            elements = [
                load(memory, address, dtype, outer, row[:-1])
                for address, dtype, row in zip(
                    addresses[outputs:], operand_dtypes, strides[outputs:], strict=True
                )
            ]
            state = _combine(monoid, state, _lift(monoid, elements, position, outer))
            values = _finish(monoid, state, ())
            for address, result, parts, row in zip(addresses, monoid.finish, values, strides, strict=False):
                store(memory, address, result, parts, outer, row[:-1])

    return entry
