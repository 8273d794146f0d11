"""Shuffles neighbours with equal keys, as the permutations of PyTorch's CUDA devices need it (ATen/native/cuda/Randperm.cuh).

The first thread of such a run makes the swaps of Fisher and Yates (Knuth, "The Art of Computer Programming", algorithm 3.4.2 P) with the words of
its own counters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.dtype import DType, int64, uint64
from ...engine.expr import cast, load, select
from ...engine.kernel import param_letters
from ...engine.llvm import emit
from .generator import PhiloxGenerator
from .kernel import Kernel
from .philox import WORDS, words
from .target import Target


class ShuffleKernel(NamedTuple):
    """Everything that the code of the shuffle depends on.

    Arguments: the addresses of the int64 elements and of their keys; the seed, the first counter, and how many elements there are.
    """

    dtype: DType  # of the keys


def shuffle_ir(target: Target, kernel: ShuffleKernel) -> str:
    """Return the module of the kernel."""
    return _Shuffle(target, kernel).ir()


class _Shuffle(Kernel):
    def __init__(self, target: Target, kernel: ShuffleKernel):
        super().__init__(target)
        self.dtype = kernel.dtype
        self.positions, self.keys = self.words("p", 2)
        self.seed, self.counter, self.n = (self.parameter(name) for name in ("seed", "counter", "n"))
        first, step = self.first_and_step()
        with self.loop(first, self.n, step) as thread:
            before, after = (self._same(thread, self.integer("add", thread, k)) for k in (-1, 1))
            starts = self.let(f"xor i1 {before}, true")
            with self.when(self.let(f"and i1 {starts}, {after}")):
                self._shuffle(thread)

    def _key(self, place: str) -> str:
        return self.read(self.place(self.keys, [place], [self.dtype.itemsize]), self.dtype)

    def _same(self, place: str, other: str) -> str:
        """Whether there is another element, and it has the key of this one."""
        inside = self.let(f"icmp ult i64 {other}, {self.n}")
        there = self.let(f"select i1 {inside}, i64 {other}, i64 {place}")
        same = self.let(f"icmp eq i{8 * self.dtype.itemsize} {self._key(place)}, {self._key(there)}")
        return self.let(f"and i1 {inside}, {same}")

    def _shuffle(self, thread: str) -> None:
        """Shuffle the run that begins at this thread's element."""
        size = self.variable("i64", "2")
        with self.repeat() as go_on_if:
            now = self.get(size, "i64")
            go_on_if(self._same(thread, self.integer("add", thread, now)))
            self.set(size, "i64", self.integer("add", now, 1))
        last = self.integer("sub", self.get(size, "i64"), 1)
        with self.loop(0, last) as turn:
            i = self.integer("sub", last, turn)
            chosen = self.integer("urem", self._word(thread, turn), self.integer("add", i, 1))
            places = [
                self.place(self.positions, [self.integer("add", thread, each)], [8]) for each in (i, chosen)
            ]
            values = [self.read(place, int64) for place in places]
            for place, value in zip(places, reversed(values), strict=True):
                self.write(place, int64, value)

    def _word(self, thread: str, turn: str) -> str:
        """The word that a thread draws in a turn."""
        seed, counter, own, lane = (load(k, uint64) for k in range(4))
        drawn = words(seed, counter, own)
        word = drawn[-1]
        for k in reversed(range(WORDS - 1)):
            word = select(lane < k + 1, drawn[k], word)
        names = {seed: self.seed, own: thread}
        names[counter] = self.integer("add", self.counter, self.integer("udiv", turn, WORDS))
        names[lane] = self.integer("urem", turn, WORDS)
        (found,) = emit(self, [cast(word, uint64)], names)
        return found


def extras(gpu: Any) -> dict[str, Callable]:
    """The kernel, by the name that ops ask for."""

    @functools.cache
    def launch(dtype: DType, groups: int) -> Any:
        letters = "pp" + param_letters([uint64, uint64, int64])
        return gpu.runtime.launch(gpu.runtime.load(shuffle_ir, ShuffleKernel(dtype)), groups, letters, [])

    def shuffle_runs(elements: int, keys: int, n: int, dtype: DType, generator: PhiloxGenerator) -> None:
        """Shuffle those of n int64 whose keys are equal and neighbours."""
        found = launch(dtype, gpu.groups(n))

        def draw() -> None:
            seed, counter = generator.take(-(-n // WORDS) * WORDS)
            found.entry(elements, keys, seed, counter, n, found.meta, found.count)

        gpu.draw(draw)

    return {"shuffle_runs": shuffle_runs}
