"""The memory of tensors over time, by what they are for: what `profile.export_memory_timeline` writes, in PyTorch's forms."""

from __future__ import annotations

import enum
import gzip
import json
import weakref
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from ..core.promised import Promised
from ..core.pytree import tree_leaves
from ..core.spec import Spec
from ..core.storage import Storage
from ..core.tensor import Tensor
from ..engine.work import has_memory
from ..optim.optimizer import register_optimizer_step_post_hook


class Category(enum.IntEnum):
    """What a tensor is for, with PyTorch's numbers."""

    PARAMETER = 0
    OPTIMIZER_STATE = 1
    INPUT = 2
    TEMPORARY = 3
    ACTIVATION = 4
    GRADIENT = 5
    AUTOGRAD_DETAIL = 6
    UNKNOWN = 7


_COLORS = ("darkgreen", "goldenrod", "black", "mediumpurple", "red", "mediumblue", "royalblue", "grey")
_PREEXISTING, _CREATE, _DESTROY = 1, 2, 4  # PyTorch's numbers of actions


class _Block:
    """The memory of a storage: its bytes, and when it was allocated and freed, in nanoseconds; -1 before the profile."""

    __slots__ = ("nbytes", "device", "category", "start", "end", "storage")

    def __init__(self, storage: Storage, category: Category, start: int) -> None:
        self.nbytes, self.device = storage.nbytes_, str(storage.device)
        self.category, self.start = category, start
        self.end: int | None = None
        self.storage: Any = None


class MemoryTimeline:
    """Follows the storages of the tensors that operators of a profile read and make.

    A leaf that requires grad is a parameter, its `.grad` a gradient. What optimizers keep is their state. Of what operators make, a result that
    autograd records is an activation, another one is temporary, one of a backward pass a detail of autograd. What no operator made, or
    made of no tensors, is an input.

    Args:
        clock: the nanoseconds since the profile began.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.blocks: list[_Block] = []
        self._known: dict[int, _Block] = {}  # by the id of a storage that is alive
        self._waiting: list[_Block] = []  # deferred results without memory
        self._leaves: dict[int, weakref.ref[Tensor]] = {}
        self._hook = register_optimizer_step_post_hook(self._stepped)
        self._is_open = True

    def note(self, inputs: Sequence[Any], result: Any, in_backward: bool) -> None:
        """An operator has ended."""
        read = _tensors(inputs)
        for tensor in read:
            if tensor.requires_grad and tensor.is_leaf:
                self._leaves.setdefault(id(tensor), weakref.ref(tensor))
                self._see(tensor, Category.PARAMETER, -1)
            else:
                self._see(tensor, Category.INPUT, -1)
        for tensor in _tensors(result):
            if in_backward:
                category = Category.AUTOGRAD_DETAIL
            elif not read:
                category = Category.INPUT
            else:
                category = Category.ACTIVATION if tensor.requires_grad else Category.TEMPORARY
            self._see(tensor, category, self._clock())
        self._settle()

    def note_gradient(self, leaf: Tensor | None) -> None:
        """A backward pass has added to the `.grad` of a leaf."""
        if leaf is not None and leaf.grad is not None:
            self._see(leaf.grad, Category.GRADIENT, self._clock(), is_certain=True)

    def finish(self) -> None:
        """The profile ends."""
        self._settle()
        self._hook.remove()
        for leaf in [each() for each in self._leaves.values()]:
            self.note_gradient(leaf)
        self._is_open = False

    def _stepped(self, optimizer: Any, args: tuple, kwargs: dict) -> None:
        for state in optimizer.state.values():
            for tensor in _tensors(state):
                self._see(tensor, Category.OPTIMIZER_STATE, self._clock(), is_certain=True)

    def _see(self, tensor: Tensor, category: Category, start: int, is_certain: bool = False) -> None:
        storage = tensor._storage
        block = self._known.get(id(storage))
        if block is None or block.storage() is not storage:
            block = self._known[id(storage)] = _Block(storage, category, start)
            block.storage = weakref.ref(storage, lambda reference: self._end(block))
            if type(storage) is Promised:
                self._waiting.append(block)
            else:
                self.blocks.append(block)
        elif is_certain:
            block.category = category

    def _end(self, block: _Block) -> None:
        if self._is_open:
            block.end = self._clock()

    def _settle(self) -> None:
        """Blocks whose deferred result has been computed begin now."""
        still = []
        for block in self._waiting:
            storage = block.storage()
            if type(storage) is Promised:
                still.append(block)
            elif storage is not None:
                block.start = self._clock()
                self.blocks.append(block)
        self._waiting = still

    # -- PyTorch's forms --------------------------------------------------------------------------------------------------

    def events(self, device: str) -> list[tuple[int, int, int, int]]:
        """Return (nanoseconds or -1, action, bytes, category) of each allocation and each end, in their order."""
        found = []
        for block in self.blocks:
            if block.device == device and block.nbytes:
                action = _PREEXISTING if block.start < 0 else _CREATE
                found.append((block.start, action, block.nbytes, int(block.category)))
                if block.end is not None:
                    found.append((block.end, _DESTROY, -block.nbytes, int(block.category)))
        return sorted(found, key=lambda event: event[0])

    def sizes(self, device: str) -> tuple[list[int], list[list[int]]]:
        """Return times in microseconds, and for each of them 0 and the bytes of each category."""
        events = self.events(device)
        first = min((time // 1000 for time, *_ in events if time >= 0), default=0)
        times: list[int] = []
        sizes: list[list[int]] = []
        for nanoseconds, _, nbytes, category in events:
            time = first if nanoseconds < 0 else nanoseconds // 1000
            if not times or time != times[-1]:
                times.append(time)
                sizes.append(sizes[-1].copy() if sizes else [0] * (1 + len(Category)))
            sizes[-1][1 + category] += nbytes
        return times, sizes

    def export(self, path: str, device: str) -> None:
        """Write the timeline: a page with a picture for `.html`, events for `.raw.json.gz`, else sizes as JSON, compressed for `.gz`."""
        if path.endswith(".html"):
            content = _page(*self.sizes(device))
        else:
            content = json.dumps(self.events(device) if path.endswith("raw.json.gz") else self.sizes(device))
        with gzip.open(path, "wt") if path.endswith(".gz") else open(path, "w", encoding="utf-8") as file:
            file.write(content)


def _tensors(values: Any) -> list[Tensor]:
    """The tensors that have memory, or will have it."""
    found = [each for each in tree_leaves(values) if isinstance(each, Tensor) and type(each.spec) is Spec]
    return [each for each in found if type(each._storage) is Promised or has_memory(each)]


# ---- The picture -------------------------------------------------------------------------------------------------------

_WIDTH, _HEIGHT, _LEFT, _BELOW = 1000, 500, 90, 60  # pixels: of the chart, and of the room for numbers


def _page(times: Sequence[int], sizes: Sequence[Sequence[int]]) -> str:
    """A page with the sizes of all categories on top of each other."""
    stacks = [list(accumulate(row)) for row in sizes]
    most = max((row[-1] for row in stacks), default=0) or 1
    begin, end = (times[0], times[-1]) if times else (0, 0)
    span = end - begin or 1

    def point(time: int, nbytes: int) -> str:
        return f"{_LEFT + _WIDTH * (time - begin) / span:.1f},{10 + _HEIGHT * (1 - nbytes / most):.1f}"

    shapes = []
    for category in Category:
        corners = [[], []]  # type: list[list[str]]
        for k, time in enumerate(times):  # sizes stay as they are until the next time
            until = times[k + 1] if k + 1 < len(times) else time
            for side in (0, 1):
                corners[side] += [point(each, stacks[k][category + side]) for each in (time, until)]
        if any(row[1 + category] for row in sizes):
            outline = " ".join(corners[1] + corners[0][::-1])
            shapes.append(f'<polygon points="{outline}" fill="{_COLORS[category]}" opacity="0.7"/>')
    for k, category in enumerate(Category):
        x, y = _LEFT + k * 125, _HEIGHT + _BELOW + 20
        shapes.append(f'<rect x="{x}" y="{y - 10}" width="10" height="10" fill="{_COLORS[category]}"/>')
        shapes.append(f'<text x="{x + 14}" y="{y}" font-size="11">{category.name}</text>')
    shapes += [
        f'<text x="{_LEFT - 6}" y="20" font-size="12" text-anchor="end">{most / 1e6:.3g} MB</text>',
        f'<text x="{_LEFT - 6}" y="{_HEIGHT + 10}" font-size="12" text-anchor="end">0</text>',
        f'<text x="{_LEFT + _WIDTH}" y="{_HEIGHT + 28}" font-size="12" text-anchor="end">{span / 1000:.3g} ms</text>',
    ]
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + _LEFT + 20}" height="{_HEIGHT + _BELOW + 40}">'
    title = "Memory of tensors over time"
    return (
        f'<html><head><meta charset="utf-8"/><title>{title}</title></head><body><h3>{title}</h3>{picture}'
        f"{''.join(shapes)}</svg></body></html>"
    )
