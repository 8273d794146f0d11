"""Gathers and scatters, and indices out of range."""

from __future__ import annotations

import ctypes
import functools
import math
import os
from collections.abc import Sequence
from typing import Any

from ...core.dtype import DType
from ...core.qscheme import AcceleratorError
from ...core.templates import add_atoms
from ...engine.kernel import IndexedLaunch, Indexing
from ...engine.loops import Result
from .displaced import IndexedKernel, indexed_ir
from .kernel import THREADS, is_wide
from .meeting import by_target_ir, prepare_sorted
from .runtime import Runtime


class Faults(Sequence):
    """How many launches met an index out of range.

    A kernel sets a word in memory of the host. The host looks at it when it waits for the device anyway, and raises the error then, as PyTorch
    does: waiting after each launch would take longer than most launches. With CUDA_LAUNCH_BLOCKING=1 it waits, so that the call itself raises.
    """

    def __init__(self, runtime: Runtime):
        self._runtime = runtime
        self._waits = os.environ.get("CUDA_LAUNCH_BLOCKING") == "1"
        self._count = 0

    @functools.cached_property
    def word(self) -> ctypes.c_int64:
        """Return what kernels set."""
        return self._runtime.host_word()

    @property
    def address(self) -> int:
        return ctypes.addressof(self.word)

    def __len__(self) -> int:
        return 1

    def __getitem__(self, position: Any) -> Any:
        if self._waits:
            self._runtime.synchronize()
            self._count += self._take()
        return self._count

    def _take(self) -> bool:
        """Whether the word is set; it is not afterwards."""
        if "word" not in vars(self) or not self.word.value:
            return False
        self.word.value = 0
        return True

    def check(self) -> None:
        """Look at the word, after the launches are done.

        Raises: AcceleratorError if it is set.
        """
        if not self._waits and self._take():
            raise AcceleratorError(
                "CUDA error: device-side assert triggered: an index of an earlier operation was out of range, and was taken as 0. "
                "With the environment variable CUDA_LAUNCH_BLOCKING=1 that operation raises the error itself."
            )


add_atoms(Faults)


# Elements that may meet.
FEWEST_TURNS = 64  # before groups look for their own
# Before they are sorted by their targets. Groups took 266 us for 32768 of them on an H100, so about 30 us for these. Sorting launches
# 8 kernels; it was not measured on hardware.
FEWEST_SORTED = 4096
# Threads that keep a GPU busy. With fewer columns, each with indices of its own, elements of all columns are sorted.
FEWEST_THREADS = 1 << 14


def prepare_indexed(
    gpu: Any,
    results: Sequence[Result],
    operand_dtypes: Sequence[DType],
    sizes: Sequence[int],
    strides: Sequence[Sequence[int]],
    indexing: Indexing,
) -> IndexedLaunch:
    """See `devices/base.py`.

    Where elements may meet, so that their order matters, one thread computes all that can meet, in their order: along the dims of an output
    that is `apart` where its stride is 0, else along all dims. If these are many, only those are computed in order that do meet (`meeting.py`).
    """
    order = list(range(len(sizes)))
    serial = 0
    if results and indexing.in_order and 0 in indexing.displaced:
        apart = [dim for dim in order if indexing.apart and strides[0][dim]]
        together = [dim for dim in order if dim not in apart]
        order, serial = [*apart, *together], len(together)
    sizes = [sizes[dim] for dim in order]
    strides = [[row[dim] for dim in order] for row in strides]
    parallel = len(sizes) - serial
    count, turns = math.prod(sizes[:parallel]), math.prod(sizes[parallel:])
    kernel = IndexedKernel(
        tuple(results),
        tuple(operand_dtypes),
        len(sizes),
        serial,
        len(indexing.steps),
        tuple(indexing.displaced),
        indexing.wrap,
        is_wide(max(count, turns)),
    )
    words = [*sizes, *(stride for row in strides for stride in row), *indexing.sizes, *indexing.steps]
    write, threads = indexed_ir, count
    if serial and indexing.apart:
        indices = strides[len(strides) - len(indexing.steps) :]
        alike = not any(any(row[:parallel]) for row in indices)
        if turns >= FEWEST_SORTED and (alike or count < FEWEST_THREADS):
            targets = math.prod(indexing.sizes)
            if not alike:
                kernel, targets = kernel._replace(serial=len(sizes)), targets * count
                count, turns = 1, count * turns
            kernel = kernel._replace(wide=is_wide(count * turns))
            words = [gpu.faults.address, count, turns, *words]
            return prepare_sorted(gpu, kernel, count, turns, words, targets, 0 if alike else parallel)
        if alike and turns >= FEWEST_TURNS:
            write, threads = by_target_ir, turns * THREADS
    runtime = gpu.runtime
    words = [gpu.faults.address, count, turns, *words]
    launch = runtime.launch(runtime.load(write, kernel), gpu.groups(threads), "p" * len(strides) + "i", words)
    return IndexedLaunch(launch.entry, 0, launch.meta, launch.count, launch.keepalive)
