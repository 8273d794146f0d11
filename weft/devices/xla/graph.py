"""The graph of launches that have not run, and the functions of JAX that it becomes.

A launch makes a node: a step, the values that it reads, and its numbers. Blocks then hold values that the node will make. When values are
needed, the nodes on which the blocks depend become one function, which XLA compiles. The function is found again by the steps and by how
they are connected, so a loop of a program compiles once. Numbers are arguments of the function. What no block holds any more is no result.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ...core.dtype import DType
from .contents import Contents, Place, covers

MOST_PROGRAMS = 512  # compiled functions that are kept
MOST_FIXED = 4  # steps of a kernel for blocks of the same sizes in which the starts of operands are fixed
# XLA would leave out roundings to float16 and bfloat16 between operations that it fuses.
_OPTIONS = {"xla_allow_excess_precision": False}


class Value:
    """The content of a block: an array of NumPy or JAX, or what a node will make."""

    __slots__ = ("array", "node", "output")

    def __init__(self, array: Any, node: Node | None = None, output: int = 0):
        self.array, self.node, self.output = array, node, output


class View(NamedTuple):
    """Where the elements of an operand lie."""

    sizes: Sequence[int]
    strides: Sequence[int]  # bytes
    itemsize: int
    dtype: np.dtype  # of an element, or of its parts if it is complex

    def covers(self, start: int, nbytes: int) -> bool:
        """Whether the elements fill a block of so many bytes."""
        return covers(start, self.sizes, self.strides, self.itemsize, nbytes)


class Kernel:
    """What launches compute for given sizes and strides.

    `function(contents, places, numbers)` changes the contents. `views` are those of the operands, results first; None where indices move
    the elements.
    """

    def __init__(
        self,
        function: Callable[[Contents, Sequence[Place], Sequence[Any]], None],
        views: Sequence[View | None],
        outputs: int,
        params: Sequence[DType] = (),
    ):
        self.function, self.views, self.outputs = function, views, outputs
        self.is_float = [dtype.kind == "f" for dtype in params]
        self._steps: dict[tuple, Step] = {}
        # By blocks and their sizes: how many steps there are whose starts are all fixed.
        self._fixed: dict[tuple, int] = {}

    def step(self, places: tuple[Place, ...], nbytes: tuple[int, ...]) -> tuple[Step, tuple[int, ...]]:
        """The launch on blocks of these sizes, whose operands lie at these places, and the starts that it gets as numbers.

        A batch that a loop takes from a large tensor lies at another start each time. So starts are numbers from the fifth one on.
        """
        found = self._steps.get((places, nbytes))
        if found is not None:
            return found, ()
        blocks = tuple([block for block, _ in places]), nbytes
        count = self._fixed.get(blocks, 0)
        movable = self._movable(places, nbytes) if count >= MOST_FIXED else []
        if not movable:
            self._fixed[blocks] = count + 1
        key = tuple([(block, None if k in movable else start) for k, (block, start) in enumerate(places)])
        found = self._steps.get((key, nbytes))
        if found is None:
            found = self._steps[key, nbytes] = Step(self, key, nbytes)
        return found, tuple([places[k][1] for k in movable])

    def _movable(self, places: Sequence[Place], nbytes: Sequence[int]) -> list[int]:
        """The operands that may lie anywhere in their blocks."""
        return [
            k
            for k, (view, (block, start)) in enumerate(zip(self.views, places, strict=True))
            if view is not None and start % view.dtype.itemsize == 0 and not view.covers(start, nbytes[block])
        ]


class Step:
    """A kernel at given places of blocks of given sizes. It gets the starts that are None as numbers, behind those of the kernel."""

    numbers = itertools.count()

    def __init__(self, kernel: Kernel, places: Sequence[tuple[int, int | None]], nbytes: tuple[int, ...]):
        self.kernel, self.places, self.nbytes = kernel, places, nbytes
        self.number = next(Step.numbers)
        self.is_float = kernel.is_float + [False for _, start in places if start is None]
        results = range(kernel.outputs)
        covered = {places[k][0] for k in results if self._covers(k)}
        read = {block for block, _ in places[kernel.outputs :]}
        self.written = sorted({places[k][0] for k in results})
        self.is_needed = [k in read or k not in covered for k in range(len(nbytes))]
        # The dtypes in which blocks are read, for bytes that come from the host.
        self.dtypes = [self._dtype(k) for k in range(len(nbytes))]
        # JAX traces a step once, and not again in each function that contains it.
        self.call = jax.jit(self._call)

    def _covers(self, operand: int) -> bool:
        view, (block, start) = self.kernel.views[operand], self.places[operand]
        return view is not None and start is not None and view.covers(start, self.nbytes[block])

    def _dtype(self, block: int) -> np.dtype | None:
        found = (
            view.dtype for view, place in zip(self.kernel.views, self.places) if view and place[0] == block
        )
        return next(found, None)

    def _call(self, arrays: Sequence[Any], numbers: Sequence[Any]) -> list[Any]:
        contents = Contents(arrays, self.nbytes)
        own = len(self.kernel.is_float)
        starts = iter(numbers[own:])
        places = [(block, next(starts) if start is None else start) for block, start in self.places]
        self.kernel.function(contents, places, numbers[:own])
        return [contents.arrays[block] for block in self.written]


class Node:
    """A step with its values. `order` rises with each launch."""

    __slots__ = ("order", "step", "inputs", "numbers")

    def __init__(self, order: int, step: Step, inputs: Sequence[Value | None], numbers: Sequence[Any]):
        self.order, self.step, self.inputs, self.numbers = order, step, inputs, numbers


class Program:
    """A set of values as a function of arrays and numbers.

    `key` is equal for programs that compute the same. Of nodes it refers to those that the values depend on, in the order of their launches.
    """

    def __init__(self, roots: Sequence[Value]):
        self.nodes = nodes_below(roots)
        self.leaves: list[Value] = []
        self._places: dict[Value, int] = {}  # of the leaves
        self._position = {node: k for k, node in enumerate(self.nodes)}
        self.inputs = [tuple([self._reference(each) for each in node.inputs]) for node in self.nodes]
        self.results = [self._reference(each) for each in roots]
        self.key = (
            tuple([node.step.number for node in self.nodes]),
            tuple(self.inputs),
            tuple(self.results),
            tuple([each.array.dtype for each in self.leaves]),
        )

    def _reference(self, value: Value | None) -> Any:
        """A leaf by its number, what a node makes by the numbers of both."""
        if value is None:
            return None
        if value.node is not None:
            return self._position[value.node], value.output
        place = self._places.get(value)
        if place is None:
            place = self._places[value] = len(self.leaves)
            self.leaves.append(value)
        return place

    def function(self) -> Callable[[Sequence[Any], Any, Any], list[Any]]:
        """What computes the values from the arrays of the leaves, and from all floats and integers among the numbers."""
        steps, inputs, results = [node.step for node in self.nodes], self.inputs, self.results

        def run(leaves: Sequence[Any], floats: Any, integers: Any) -> list[Any]:
            made: list[list[Any]] = []

            def of(reference: Any) -> Any:
                if reference is None or isinstance(reference, int):
                    return reference if reference is None else leaves[reference]
                return made[reference[0]][reference[1]]

            given_floats, given_integers = iter(list(floats)), iter(list(integers))
            for step, references in zip(steps, inputs, strict=True):
                numbers = [next(given_floats if is_float else given_integers) for is_float in step.is_float]
                made.append(step.call([of(each) for each in references], numbers))
            return [of(each) for each in results]

        return run

    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """All floats, and all integers with their low 64 bits."""
        floats: list[float] = []
        integers: list[int] = []
        for node in self.nodes:
            for value, is_float in zip(node.numbers, node.step.is_float, strict=True):
                if is_float:
                    floats.append(float(value))
                else:
                    integers.append((int(value) + (1 << 63)) % (1 << 64) - (1 << 63))
        return np.array(floats, np.float64), np.array(integers, np.int64)


def nodes_below(roots: Iterable[Value]) -> list[Node]:
    """The nodes that values depend on, in the order of their launches."""
    stack = [value.node for value in roots if value.node is not None]
    seen = set(stack)
    while stack:
        for value in stack.pop().inputs:
            if value is not None and value.node is not None and value.node not in seen:
                seen.add(value.node)
                stack.append(value.node)
    return sorted(seen, key=lambda node: node.order)


def end_of_rounds(nodes: Sequence[Node]) -> int | None:
    """Where the last round of a loop begins, if nodes begin with a round: in their second half, at the step of the first one."""
    places = range(len(nodes) - 1, len(nodes) // 2, -1)
    return next((place for place in places if nodes[place].step is nodes[0].step), None)


class Runner:
    """Runs programs on one device of JAX, and keeps their compiled functions."""

    def __init__(self, device: Any):
        self.device = device
        self.runs = self.compilations = 0
        self._compiled: OrderedDict[tuple, Callable] = OrderedDict()

    def run(self, roots: Sequence[Value]) -> None:
        """Compute values that are not known, all at once."""
        program = Program(roots)
        with jax.enable_x64(True), jax.default_device(self.device):
            for leaf in program.leaves:
                if type(leaf.array) is np.ndarray:
                    leaf.array = jax.device_put(leaf.array, self.device)
            arrays = self._function(program)([leaf.array for leaf in program.leaves], *program.numbers())
        self.runs += 1
        for value, array in zip(roots, arrays, strict=True):
            value.array, value.node = array, None

    def _function(self, program: Program) -> Callable:
        found = self._compiled.pop(program.key, None)
        if found is None:
            self.compilations += 1
            found = jax.jit(program.function(), compiler_options=_OPTIONS)
        self._compiled[program.key] = found  # now the one used last
        if len(self._compiled) > MOST_PROGRAMS:
            self._compiled.popitem(last=False)
        return found
