"""Gathers, scatters and packing by a mask, as functions that JAX traces."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtype import DType, bool_, int64, uint8
from ...engine.expr import Expr
from ...engine.kernel import Indexing
from ...engine.loops import Result
from .contents import Contents, Place, grid
from .expressions import evaluate
from .graph import Kernel, View
from .kernels import leaves, operand_of, parts_of, view_of

_BYTE = np.dtype(np.uint8)


class Access:
    """A map over `sizes` whose operands are displaced by indices."""

    def __init__(
        self,
        results: tuple[Result, ...],
        operand_dtypes: tuple[DType, ...],
        sizes: tuple[int, ...],
        strides: tuple[tuple[int, ...], ...],
        indexing: Indexing,
    ):
        self.results, self.sizes, self.strides, self.indexing = results, sizes, strides, indexing
        self.outputs, self.roots = len(results), parts_of(results)
        self.first_index = len(strides) - len(indexing.steps)
        self.index_dtypes = operand_dtypes[self.first_index - self.outputs :]
        # The dims along which an index differs.
        self.moved = {
            dim
            for row in strides[self.first_index :]
            for dim, step in enumerate(row)
            if step and sizes[dim] > 1
        }

    def __call__(self, contents: Contents, places: Sequence[Place], numbers: Sequence[Any]) -> None:
        """Run it. The first operand behind the results is the counter of faults."""
        faults, places = places[self.outputs], [*places[: self.outputs], *places[self.outputs + 1 :]]
        displacement, bad = self._displacement(contents, places)
        count = contents.load(faults, int64, (1,), (8,))
        contents.store(faults, [count + bad], (1,), (8,))
        if self.outputs:
            _Moves(self, contents, places, displacement).run()

    def _displacement(self, contents: Contents, places: Sequence[Place]) -> tuple[Any, Any]:
        """By how many bytes the indices move each element, and whether one of them is out of range."""
        total: Any = jnp.zeros((1,) * len(self.sizes), np.int64)
        bad: Any = False
        indexing, first = self.indexing, self.first_index
        for place, dtype, row, size, step in zip(
            places[first:],
            self.index_dtypes,
            self.strides[first:],
            indexing.sizes,
            indexing.steps,
            strict=True,
        ):
            # Dims along which the index is the same stay as they are.
            kept = [count if stride else 1 for count, stride in zip(self.sizes, row, strict=True)]
            numbers = contents.load(place, dtype, kept, row).astype(np.int64)
            if indexing.wrap:
                numbers = jnp.where(numbers < 0, numbers + size, numbers)
            outside = (numbers < 0) | (numbers >= size)
            bad = bad | outside.any()
            total = total + jnp.where(outside, 0, numbers) * step
        return total, bad


class _Moves:
    """The reads and writes of one launch."""

    def __init__(self, access: Access, contents: Contents, places: Sequence[Place], displacement: Any):
        self.access, self.contents, self.places, self.displacement = access, contents, places, displacement
        self.written = {place[0] for place in places[: access.outputs]}

    def run(self) -> None:
        indexing = self.access.indexing
        if not indexing.in_order:
            self._write(self._values())
        elif (added := self._added()) is not None:
            self._add(added)
        elif self.written.isdisjoint(
            place[0] for place in self.places[self.access.outputs : self.access.first_index]
        ):
            self._write(self._values(), self._is_last())
        else:
            self._write_in_turns()

    def _window(self, operand: int, itemsize: int) -> tuple[int, int]:
        """How many of the last dims are one run of memory that no index moves, and how many elements it has."""
        sizes, row = self.access.sizes, self.access.strides[operand]
        dims, width = 0, 1
        for dim in range(len(sizes) - 1, -1, -1):
            if sizes[dim] > 1 and (dim in self.access.moved or row[dim] != width * itemsize):
                break
            dims, width = dims + 1, width * sizes[dim]
        return dims, width

    def _positions(self, operand: int, part: int, itemsize: int, same: Collection[int] = ()) -> Any:
        """The positions of elements, or of their parts, among those of the block; of the first ones along the dims in `same`."""
        start, row = self.places[operand][1] + part * itemsize, self.access.strides[operand]
        indexing = self.access.indexing
        steps = indexing.steps if operand in indexing.displaced else ()
        if any(distance % itemsize for distance in (start, *row, *steps)):
            raise NotImplementedError("xla: elements by index that are not aligned to their size")
        sizes = [1 if dim in same else size for dim, size in enumerate(self.access.sizes)]
        places = start + grid(sizes, row)
        places = (places + self.displacement if operand in indexing.displaced else places) // itemsize
        return jnp.broadcast_to(places, sizes)

    def _runs(self, operand: int, part: int, itemsize: int) -> tuple[Any, int]:
        """Where the runs of memory begin that no index moves, and how many elements each of them has."""
        dims, width = self._window(operand, itemsize)
        sizes = self.access.sizes
        where = self._positions(operand, part, itemsize, range(len(sizes) - dims, len(sizes)))
        return where.reshape(sizes[: len(sizes) - dims]), width

    def _load(self, leaf: Expr) -> Any:
        operand, part = operand_of(leaf)
        operand += self.access.outputs
        stored = _BYTE if leaf.dtype is bool_ else leaf.dtype.numpy
        block, start = self.places[operand]
        if operand in self.access.indexing.displaced:
            content = self.contents.whole(block, stored)
            found = _gather(content, *self._runs(operand, part, stored.itemsize)).reshape(self.access.sizes)
            return found != 0 if leaf.dtype is bool_ else found
        place = block, start + part * stored.itemsize
        return self.contents.load(place, leaf.dtype, self.access.sizes, self.access.strides[operand])

    def _values(self) -> list[Any]:
        roots = self.access.roots
        return evaluate(roots, {leaf: self._load(leaf) for leaf in leaves(roots)})

    def _write(self, values: Sequence[Any], chosen: Any = None) -> None:
        """Write the values of all parts of all results, or of the chosen elements."""
        remaining, sizes = iter(values), self.access.sizes
        for operand, result in enumerate(self.access.results):
            parts = [next(remaining) for _ in result.parts]
            if operand not in self.access.indexing.displaced and chosen is None:
                self.contents.store(self.places[operand], parts, sizes, self.access.strides[operand])
                continue
            for part, value in enumerate(parts):
                self._put(operand, part, value, chosen)

    def _put(self, operand: int, part: int, value: Any, chosen: Any) -> None:
        value = jnp.broadcast_to(value, self.access.sizes)
        value = value.astype(_BYTE) if value.dtype == np.bool_ else value
        block = self.places[operand][0]
        content = self.contents.whole(block, value.dtype)
        where, width = self._runs(operand, part, value.dtype.itemsize)
        if chosen is not None:  # of a run all elements are, or none
            chosen = chosen[(..., *[0] * (chosen.ndim - where.ndim))]
            where = jnp.where(chosen, where, content.size)  # and what lies outside is dropped
        self.contents.arrays[block] = _scatter(lax.scatter, content, where, width, value)

    # ---- Elements that are written more than once ---------------------------------------------------------------------

    def _added(self) -> Expr | None:
        """What is added to the elements that are written, if adding is all that happens."""
        (root, *more) = self.access.roots
        if more or root.op != "add" or root.dtype is bool_:
            return None
        for own, other in (root.args, root.args[::-1]):
            if own.op == "load" and own not in leaves([other]) and self._is_result(own):
                return other
        return None

    def _is_result(self, leaf: Expr) -> bool:
        operand, part = operand_of(leaf)
        operand += self.access.outputs
        alike = (
            self.places[operand] == self.places[0] and self.access.strides[operand] == self.access.strides[0]
        )
        return alike and part == 0 and operand in self.access.indexing.displaced

    def _add(self, added: Expr) -> None:
        (value,) = evaluate([added], {leaf: self._load(leaf) for leaf in leaves([added])})
        value = jnp.broadcast_to(value, self.access.sizes)
        block = self.places[0][0]
        content = self.contents.whole(block, value.dtype)
        where, width = self._runs(0, 0, value.dtype.itemsize)
        self.contents.arrays[block] = _scatter(lax.scatter_add, content, where, width, value)

    def _targets(self) -> Any:
        """The positions that elements of the first result are written to. Where they cannot meet along a dim, it has the first one only."""
        access, itemsize = self.access, self.access.results[0].parts[0].dtype.itemsize
        row = access.strides[0]
        apart = [dim for dim in range(len(row)) if row[dim] and dim not in access.moved]
        return self._positions(0, 0, itemsize, apart if access.indexing.apart else ())

    def _is_last(self) -> Any:
        """Whether no later element is written to the same position."""
        targets = self._targets()
        where, turn = targets.reshape(-1), jnp.arange(targets.size)
        itemsize = self.access.results[0].parts[0].dtype.itemsize
        last = jnp.full(-(-self.contents.nbytes[self.places[0][0]] // itemsize), -1).at[where].max(turn)
        return (last[where] == turn).reshape(targets.shape)

    def _turns(self) -> Any:
        """How many earlier elements are written to the same position."""
        targets = self._targets()
        where, numbers = targets.reshape(-1), jnp.arange(targets.size)
        order = jnp.argsort(where, stable=True)
        ordered = where[order]
        begins = jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])
        first = lax.cummax(jnp.where(begins, numbers, 0))
        return jnp.zeros_like(numbers).at[order].set(numbers - first).reshape(targets.shape)

    def _write_in_turns(self) -> None:
        """In each turn the elements that are written as the first, the second, ... to their position. They read what those before wrote."""
        turns, written = self._turns(), sorted(self.written)
        # The dtypes of contents stay the same in all turns.
        for operand, result in enumerate(self.access.results):
            dtype = result.parts[0].dtype
            stored = _BYTE if dtype is bool_ else dtype.numpy
            block = self.places[operand][0]
            self.contents.arrays[block] = self.contents.whole(block, stored)

        def turn(state: Any) -> Any:
            number, arrays = state
            for block, array in zip(written, arrays, strict=True):
                self.contents.arrays[block] = array
            self._write(self._values(), turns == number)
            return number + 1, [self.contents.arrays[block] for block in written]

        arrays = [self.contents.arrays[block] for block in written]
        last = turns.max()
        _, arrays = lax.while_loop(lambda state: state[0] <= last, turn, (jnp.zeros_like(last), arrays))
        for block, array in zip(written, arrays, strict=True):
            self.contents.arrays[block] = array


def _gather(content: Any, where: Any, width: int) -> Any:
    """Runs of elements that begin at these positions."""
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(where.ndim,), collapsed_slice_dims=(), start_index_map=(0,)
    )
    return lax.gather(content, where[..., None], numbers, (width,), mode="promise_in_bounds")


def _scatter(function: Callable, content: Any, where: Any, width: int, values: Any) -> Any:
    """Write runs of elements to these positions, or add them. A run that ends behind the content is left out."""
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(where.ndim,), inserted_window_dims=(), scatter_dims_to_operand_dims=(0,)
    )
    runs = values.reshape(*where.shape, width)
    return function(content, where[..., None], runs, numbers, mode=lax.GatherScatterMode.FILL_OR_DROP)


@functools.lru_cache(maxsize=4096)
def indexed_kernel(
    results: tuple[Result, ...],
    operand_dtypes: tuple[DType, ...],
    sizes: tuple[int, ...],
    strides: tuple[tuple[int, ...], ...],
    indexing: Indexing,
) -> Kernel:
    """A map with operands that indices displace. The counter of faults is one more result, behind the others."""
    access = Access(results, operand_dtypes, sizes, strides, indexing)
    others: list[View | None] = [None] * (access.first_index + 1)
    of_indices = [
        view_of(dtype, sizes, row)
        for dtype, row in zip(access.index_dtypes, strides[access.first_index :], strict=True)
    ]
    return Kernel(access, [*others, *of_indices], len(results) + 1)


# ---- Packing ---------------------------------------------------------------------------------------------------------


def count_nothing(target: int, source: int, mask: int, room: int) -> int:
    return 0


@functools.lru_cache(maxsize=1024)
def pack_kernel(
    nbytes: int, spread: bool, sizes: tuple[int, ...], strides: tuple[tuple[int, ...], ...]
) -> Kernel:
    """Copies what a mask selects; see `Backend.prepare_pack`. Operands: target, count, source, mask. The number is the room."""
    row, count = (nbytes,), math.prod(sizes)
    # This operand has an element for each one of the mask; the other one is packed.
    whole_row = strides[0 if spread else 1]

    def whole(contents: Contents, place: Place) -> Any:
        return contents.load(place, uint8, (*sizes, *row), (*whole_row, 1)).reshape(count, nbytes)

    def packed_size(contents: Contents, place: Place) -> tuple[tuple[int, int], tuple[int, int]]:
        return ((contents.nbytes[place[0]] - place[1]) // nbytes, nbytes), (nbytes, 1)

    def run(contents: Contents, places: Sequence[Place], numbers: Sequence[Any]) -> None:
        target, total, source, mask = places
        selected = (contents.load(mask, uint8, sizes, strides[2]) != 0).reshape(count)
        contents.store(total, [selected.sum(dtype=np.int64)[None]], (1,), (8,))
        turn = jnp.cumsum(selected) - 1
        moved = selected & (turn < numbers[0])
        if spread:
            packed = contents.load(source, uint8, *packed_size(contents, source))
            values = jnp.where(moved[:, None], packed[jnp.where(moved, turn, 0)], whole(contents, target))
            contents.store(target, [values.reshape(*sizes, nbytes)], (*sizes, nbytes), (*whole_row, 1))
        else:
            shape, steps = packed_size(contents, target)
            packed = contents.load(target, uint8, shape, steps)
            where = jnp.where(moved, turn, shape[0])  # and what lies outside is dropped
            packed = packed.at[where].set(whole(contents, source), mode="drop")
            contents.store(target, [packed], shape, steps)

    view_of_count = View((1,), (8,), 8, np.dtype(np.int64))
    return Kernel(run, [None, view_of_count, None, None], 2, [int64])
