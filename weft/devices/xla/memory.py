"""The memory of an XLA device: blocks whose content is an array, or what launches that have not run will make.

An address is the number of a block and a position in it, as on the reference device. Nothing runs when a launch is given. Work is done
by `flush`, which reading calls.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ...core.dtype import uint8
from ...core.locks import new_lock
from .contents import Contents, Place
from .graph import Kernel, Node, Runner, Value, View, end_of_rounds, nodes_below

POSITION_BITS = 36  # a block has up to 64 GiB
POSITION = (1 << POSITION_BITS) - 1
FIRST = (
    1 << 20
)  # the first number of a block: these addresses are neither a process's nor the reference device's
MOST_PENDING = 1000  # launches that may be pending: XLA compiles 30 to 100 in a second (AMD Zen 5)

_numbers = itertools.count(FIRST)  # one count for all devices: an address belongs to one of them
_free_numbers: list[int] = []  # of freed blocks


class Block:
    """Bytes; `value` is None while they are uninitialised."""

    __slots__ = ("nbytes", "value")

    def __init__(self, nbytes: int):
        self.nbytes = nbytes
        self.value: Value | None = None


class Memory:
    """The blocks of one device, and the launches on them."""

    def __init__(self, name: str, runner: Runner):
        self.name, self.runner = name, runner
        self.blocks: dict[int, Block] = {}
        self.pending: dict[int, Block] = {}  # those whose value a launch will make
        # The number of the next launch, and of the first one that is pending.
        self._next = self._first = 0
        # PyTorch/XLA's variable: each launch runs at once.
        self.is_eager = os.environ.get("XLA_USE_EAGER_DEBUG_MODE") == "1"
        self._lock = new_lock()
        self._before_work: Callable[[], None] | None = None

    def allocate(self, nbytes: int) -> int:
        """Allocate a block and return its address."""
        try:
            number = _free_numbers.pop()
        except IndexError:
            number = next(_numbers)
        self.blocks[number] = Block(nbytes)
        return number << POSITION_BITS

    def find(self, address: int) -> Block:
        """The block that an address lies in.

        Raises: RuntimeError if it lies in none.
        """
        block = self.blocks.get(address >> POSITION_BITS)
        if block is None:
            raise RuntimeError(
                f"{address:#x} is no address of device {self.name}: its block is freed, or elsewhere"
            )
        return block

    # ---- Work --------------------------------------------------------------------------------------------------------

    def call_before_work(self, function: Callable[[], None] | None) -> None:
        """Have what reads or changes blocks call a function first, until this is called with None."""
        self._before_work = function

    def bring_back(self) -> None:
        """Call the function that is to be called before work."""
        if self._before_work is not None:
            self._before_work()

    def launch(self, kernel: Kernel, addresses: Sequence[int], numbers: Sequence[Any] = ()) -> None:
        """Let the blocks at the addresses of results hold what the kernel will make of those of all operands."""
        self.bring_back()
        with self._lock:
            self._launch(kernel, addresses, numbers)
            if self.is_eager:
                self.flush()
            elif self._next - self._first >= MOST_PENDING:
                self._flush_rounds()

    def _launch(self, kernel: Kernel, addresses: Sequence[int], numbers: Sequence[Any]) -> None:
        known: dict[int, int] = {}
        places = []
        for address in addresses:
            number = address >> POSITION_BITS
            places.append((known.setdefault(number, len(known)), address & POSITION))
        blocks = [self.find(number << POSITION_BITS) for number in known]
        step, starts = kernel.step(tuple(places), tuple([block.nbytes for block in blocks]))
        inputs = [
            _as_elements(block.value, dtype) if is_needed else None
            for block, is_needed, dtype in zip(blocks, step.is_needed, step.dtypes, strict=True)
        ]
        node = Node(self._next, step, inputs, (*numbers, *starts))
        self._next += 1
        named = list(known)
        for output, k in enumerate(step.written):
            blocks[k].value = Value(None, node, output)
            self.pending[named[k]] = blocks[k]

    def flush(self) -> None:
        """Run what is pending, as far as blocks depend on it."""
        with self._lock:
            if roots := self._unknown():
                self.runner.run(roots)
            self.pending.clear()  # a storage that dies meanwhile takes its block out
            self._first = self._next

    def _flush_rounds(self) -> None:
        """Run whole rounds of a loop if the program is in one that needs no values, so that the functions are the same again and again."""
        roots = self._unknown()
        nodes = nodes_below(roots)
        end = end_of_rounds(nodes)
        if end is None:
            self.flush()
            return
        self._first = nodes[end].order
        given = [value for node in nodes[end:] for value in node.inputs]
        values = dict.fromkeys([*roots, *given])
        self.runner.run([each for each in values if each and each.node and each.node.order < self._first])
        for number, block in list(self.pending.items()):
            if block.value is None or block.value.node is None:
                self.pending.pop(number, None)

    def _unknown(self) -> list[Value]:
        """The values of blocks that launches will make."""
        values = dict.fromkeys([block.value for block in list(self.pending.values())])
        return [value for value in values if value is not None and value.node is not None]

    def wait(self) -> None:
        """Wait until all work is done that was given to XLA."""
        jax.block_until_ready([block.value.array for block in list(self.blocks.values()) if block.value])

    # ---- Bytes -------------------------------------------------------------------------------------------------------

    def read(self, address: int, nbytes: int) -> bytes:
        """The bytes at an address, after all work."""
        block, start = self.find(address), address & POSITION
        self.flush()
        if block.value is None:
            return bytes(nbytes)
        content = np.asarray(block.value.array).view(np.uint8)
        return content[start : start + nbytes].tobytes()

    def write(self, address: int, content: Any) -> None:
        """Write the bytes of a buffer."""
        values = np.frombuffer(content, np.uint8).copy()
        block = self.find(address)
        if values.size == block.nbytes:
            block.value = Value(values)
            return
        between = self.allocate(values.size)
        self.blocks[between >> POSITION_BITS].value = Value(values)
        self.copy(address, between, values.size)
        Bin(self, between, values.size).append(between)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy bytes between two addresses."""
        if not nbytes:
            return
        with self._lock:
            to, origin = self.find(target), self.find(source)
            if to.nbytes == origin.nbytes == nbytes:
                to.value = origin.value
                self.pending[target >> POSITION_BITS] = to
            else:
                self._launch(copy_kernel(nbytes), (target, source), ())


def _as_elements(value: Value | None, dtype: np.dtype | None) -> Value | None:
    """The value, whose bytes are elements of a dtype if nobody has used them yet."""
    if dtype is not None and value is not None and type(value.array) is np.ndarray:
        if value.array.nbytes % dtype.itemsize == 0:
            value.array = value.array.view(dtype)
    return value


@functools.lru_cache(maxsize=1024)
def copy_kernel(nbytes: int) -> Kernel:
    """The kernel that copies bytes from one place to another."""

    def copy(contents: Contents, places: Sequence[Place], numbers: Sequence[Any]) -> None:
        values = contents.load(places[1], uint8, (nbytes,), (1,))
        contents.store(places[0], [values], (nbytes,), (1,))

    view = View((nbytes,), (1,), 1, np.dtype(np.uint8))
    return Kernel(copy, [view, view], 1)


class Bin:
    """Where a Storage gives its block back: see `Storage.bin`."""

    def __init__(self, memory: Memory, address: int, nbytes: int):
        self.size = nbytes
        self._blocks, self._pending, self._free = memory.blocks, memory.pending, _free_numbers
        self._number = address >> POSITION_BITS

    def append(self, address: int) -> None:
        """Free the block. This names nothing of the module, because storages may die after it."""
        self._pending.pop(self._number, None)
        if self._blocks.pop(self._number, None) is not None:
            self._free.append(self._number)
