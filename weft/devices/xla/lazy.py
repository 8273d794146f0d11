"""The `Backend` of XLA's devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import jax
import numpy as np

from ...core.device import device
from ...core.dtype import FLOAT8, compute_type
from ...core.qscheme import AcceleratorError
from ...core.spec import contiguous_spec
from ...core.storage import Storage
from ...engine import distributions
from ...engine.kernel import IndexedLaunch, Launch, ReduceLaunch
from ..mirrors import Mirrored
from . import indexed, kernels
from .graph import Kernel, Runner
from .memory import Bin, Memory


class Faults(Sequence):
    """How many launches met an index out of range.

    They count in a block of the device, which is read when the host waits anyway, and the error is raised then. If each launch runs at once
    (XLA_USE_EAGER_DEBUG_MODE=1), the count is read after it, so that the call itself raises.
    """

    def __init__(self, memory: Memory):
        self._memory, self._known = memory, 0
        self.address = memory.allocate(8)
        memory.write(self.address, bytes(8))

    def __len__(self) -> int:
        return 1

    def __getitem__(self, position: Any) -> Any:
        return self._count() if self._memory.is_eager else 0

    def _count(self) -> int:
        return int.from_bytes(self._memory.read(self.address, 8), "little")

    def check(self) -> None:
        """Look at the count.

        Raises: AcceleratorError if it has grown.
        """
        if self._memory.is_eager or self._count() == self._known:
            return
        self._known = self._count()
        raise AcceleratorError(
            "XLA error: an index of an earlier operation was out of range, and was taken as 0. With the environment variable "
            "XLA_USE_EAGER_DEBUG_MODE=1 that operation raises the error itself."
        )


@final
class Xla(Mirrored):
    has_memory = True

    def __init__(self, where: device):
        self.runner = Runner(jax.local_devices()[where.index or 0])
        self.memory = Memory(str(where), self.runner)
        super().__init__(where, self.memory)
        self.faults = Faults(self.memory)

    # ---- Memory ------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes):
        address = self.memory.allocate(nbytes)
        return Storage(address, nbytes, self.device, Bin(self.memory, address, nbytes))

    def allocator(self, nbytes):
        return lambda: self.allocate(nbytes)

    def copy_bytes(self, target, source, nbytes):
        self.memory.bring_back()
        self.memory.copy(target, source, nbytes)

    def read(self, address, nbytes):
        self.memory.bring_back()
        content = self.memory.read(address, nbytes)
        self.faults.check()
        return content

    def write(self, address, content):
        self.memory.bring_back()
        self.memory.write(address, content)

    def flush(self):
        """Run what is pending, without waiting for it."""
        self.memory.bring_back()
        self.memory.flush()

    def synchronize(self):
        self.flush()
        self.memory.wait()
        self.faults.check()

    # ---- Kernels -----------------------------------------------------------------------------------------------------

    def _entry(self, kernel: Kernel, numbers_at: int):
        """What a launch calls: with the addresses of all operands, and numbers from a place among the arguments."""
        operands, end = len(kernel.views), numbers_at + len(kernel.is_float)
        launch = self.memory.launch

        def entry(*arguments: Any) -> None:
            launch(kernel, arguments[:operands], arguments[numbers_at:end])

        return entry

    def prepare(self, results, operand_dtypes, params, sizes, strides):
        if 0 in sizes:
            return Launch(_nothing, 0, 0, None)
        kernel = kernels.map_kernel(
            tuple(results), tuple(operand_dtypes), tuple(params), tuple(sizes), _rows(strides)
        )
        return Launch(self._entry(kernel, len(strides)), 0, 0, None)

    def prepare_reduction(self, monoid, operand_dtypes, params, kept, reduced, outer):
        if 0 in kept[0]:
            return ReduceLaunch(_nothing, 0, 0, 0, None)
        kernel = kernels.reduce_kernel(
            monoid,
            tuple(operand_dtypes),
            tuple(params),
            (tuple(kept[0]), _rows(kept[1])),
            (tuple(reduced[0]), _rows(reduced[1])),
        )
        # Behind the addresses there is the meta of the reduced dims.
        return ReduceLaunch(self._entry(kernel, len(kernel.views) + 1), 0, 0, 0, None)

    def prepare_scan(self, monoid, operand_dtypes, sizes, strides):
        if 0 in sizes:
            return Launch(_nothing, 0, 0, None)
        kernel = kernels.scan_kernel(monoid, tuple(operand_dtypes), tuple(sizes), _rows(strides))
        return Launch(self._entry(kernel, len(strides)), 0, 0, None)

    def prepare_indexed(self, results, operand_dtypes, sizes, strides, indexing):
        if 0 in sizes:
            return IndexedLaunch(_nothing, 0, 0, 0, None)
        kernel = indexed.indexed_kernel(
            tuple(results), tuple(operand_dtypes), tuple(sizes), _rows(strides), indexing
        )
        launch, faults, operands = self.memory.launch, self.faults.address, len(strides)

        def entry(*arguments: Any) -> None:
            launch(kernel, (*arguments[: len(results)], faults, *arguments[len(results) : operands]))

        return IndexedLaunch(entry, 0, 0, 0, None)

    def prepare_pack(self, nbytes, itemsize, spread, sizes, strides):
        if 0 in sizes or not nbytes:
            return indexed.count_nothing
        kernel = indexed.pack_kernel(nbytes, spread, tuple(sizes), _rows(strides))

        def entry(target: int, source: int, mask: int, room: int) -> int:
            count = self.allocate(8)
            self.memory.launch(kernel, (target, count.ptr, source, mask), (room,))
            return int.from_bytes(self.memory.read(count.ptr, 8), "little")

        return entry

    def product_operands(self, a, b):
        return _plain(a), _plain(b)

    def prepare_product(self, a, b, result):
        return Launch(self._entry(kernels.product_kernel(a, b, result), 3), 0, 0, None)

    def fill(self, distribution, generator, address, count, dtype, **parameters):
        """The CPU's numbers, so that a program gives the same results on both."""
        values = np.empty(count, dtype.numpy)
        draw = getattr(distributions, distribution)
        draw(generator, values.ctypes.data, count, dtype=dtype, **parameters)
        self.write(address, values.view(np.uint8))


def _rows(strides: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple([tuple(row) for row in strides])


def _nothing(*arguments: Any) -> None:
    """The launch for no elements."""


def _plain(spec):
    """The spec of an operand with nothing pending, in a dtype that XLA multiplies."""
    dtype = compute_type(spec.dtype) if spec.dtype in FLOAT8 or spec.dtype.is_complex else spec.dtype
    if dtype is spec.dtype and not spec.conj and not spec.neg:
        return spec
    return contiguous_spec(spec.shape, dtype, spec.device)
