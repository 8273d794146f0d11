"""Gather, scatter and packing by a mask: elements are found by their positions in the bytes of a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core.dtype import DType, bool_
from ...engine.kernel import Indexing
from ...engine.loops import Result, element_size
from .kernels import evaluate_results, load
from .memory import Memory


def prepare_indexed(
    memory: Memory,
    faults: list[int],
    results: Sequence[Result],
    operand_dtypes: Sequence[DType],
    sizes: Sequence[int],
    strides: Sequence[Sequence[int]],
    indexing: Indexing,
) -> Callable:
    outputs, end = len(results), len(strides)
    inputs = end - len(indexing.steps)
    grids = [_grid(sizes, row) for row in strides[:inputs]]

    def entry(*arguments: Any) -> None:
        indices = [
            load(memory, address, dtype, sizes, row)
            for address, dtype, row in zip(
                arguments[inputs:end], operand_dtypes[inputs - outputs :], strides[inputs:], strict=True
            )
        ]
        displacement, bad = _displacement(indices, indexing)
        faults[0] += bool(bad)
        places = [
            _flat(grid + displacement if k in indexing.displaced else grid, sizes)
            for k, grid in enumerate(grids)
        ]
        for chosen in _rounds(places[0]) if outputs and indexing.in_order else [slice(None)]:
            elements = [
                _take(memory, address, place[chosen], dtype)
                for address, place, dtype in zip(
                    arguments[outputs:inputs], places[outputs:], operand_dtypes, strict=False
                )
            ]
            for address, result, parts, place in zip(
                arguments, results, evaluate_results(results, elements), places, strict=False
            ):
                _put(memory, address, place[chosen], result, parts)

    return entry


def _grid(sizes: Sequence[int], row: Sequence[int]) -> np.ndarray:
    """How many bytes each element lies behind the first one."""
    total = np.zeros((1,) * len(sizes), np.int64)
    for dim, (size, stride) in enumerate(zip(sizes, row, strict=True)):
        total = total + (np.arange(size) * stride).reshape([-1 if k == dim else 1 for k in range(len(sizes))])
    return total


def _flat(places: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    return np.broadcast_to(places, tuple(sizes)).reshape(-1)


def _displacement(indices: Sequence[np.ndarray], indexing: Indexing) -> tuple[Any, bool]:
    """By how many bytes the indices move each element, and whether one of them is out of range."""
    total: Any = 0
    bad = False
    for index, size, step in zip(indices, indexing.sizes, indexing.steps, strict=True):
        index = index.astype(np.int64)
        if indexing.wrap:
            index = np.where(index < 0, index + size, index)
        outside = (index < 0) | (index >= size)
        bad = bad or bool(outside.any())
        total = total + np.where(outside, 0, index) * step
    return total, bad


def _rounds(places: np.ndarray) -> Iterator[np.ndarray]:
    """Numbers of elements, in sets without two that write to one place: the first write to each, the second, ..."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    lengths = np.diff(np.concatenate([starts, [places.size]]))
    for turn in range(int(lengths.max(initial=0))):
        yield order[starts[lengths > turn] + turn]


def _bytes(memory: Memory, address: int, places: np.ndarray, itemsize: int) -> tuple[np.ndarray, np.ndarray]:
    """The block that elements lie in, and the positions of their bytes.

    Raises: RuntimeError if one of them lies outside of the block.
    """
    block, position = memory.find(address)
    positions = position + places[:, None] + np.arange(itemsize)
    if positions.size and not (0 <= positions.min() and positions.max() < block.size):
        raise RuntimeError(
            f"device {memory.name}: an element lies outside of its block of {block.size} bytes"
        )
    return block, positions


def _take(memory: Memory, address: int, places: np.ndarray, dtype: DType) -> np.ndarray:
    block, positions = _bytes(memory, address, places, dtype.itemsize)
    if dtype is bool_:
        return block[positions[:, 0]] != 0
    return block[positions].view(dtype.numpy)[:, 0]


def _put(
    memory: Memory, address: int, places: np.ndarray, result: Result, parts: Sequence[np.ndarray]
) -> None:
    block, positions = _bytes(memory, address, places, element_size(result))
    first = 0
    for part, value in zip(result.parts, parts, strict=True):
        size = part.dtype.itemsize
        value = np.broadcast_to(value, places.shape).astype(part.dtype.numpy)
        block[positions[:, first : first + size]] = value.view(np.uint8).reshape(-1, size)
        first += size


def prepare_pack(
    memory: Memory, nbytes: int, spread: bool, sizes: Sequence[int], strides: Sequence[Sequence[int]]
) -> Callable[[int, int, int, int], int]:
    # This operand has an element for each one of the mask; the other one is packed.
    whole = 0 if spread else 1
    grid = _flat(_grid(sizes, strides[whole]), sizes)
    marks = strides[2]

    def launch(target: int, source: int, mask: int, room: int) -> int:
        selected = np.flatnonzero(memory.array(mask, np.dtype(np.uint8), sizes, marks))
        places = grid[selected[:room]]
        packed = np.arange(len(places)) * nbytes
        read, write = (packed, places) if spread else (places, packed)
        block, positions = _bytes(memory, source, read, nbytes)
        content = block[positions]
        block, positions = _bytes(memory, target, write, nbytes)
        block[positions] = content
        return len(selected)

    return launch
