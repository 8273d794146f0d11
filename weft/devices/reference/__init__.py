"""The reference device: the shortest complete device, and the definition of what the others compute.

Its memory is out of the host's reach (`memory.py`), kernels are evaluated by the interpreter of `engine/interpreter.py`
(`kernels.py`, `indexed.py`), and NumPy is its array library. It is slow, and made to be read and to test the seam.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import final

import numpy as np

from ...core.device import device
from ...core.dtype import compute_type
from ...core.spec import contiguous_spec
from ...core.storage import Storage
from ...engine import distributions
from ...engine.kernel import IndexedLaunch, Launch, ReduceLaunch
from ..base import Backend
from . import indexed, kernels
from .memory import Bin, Memory


@final
class Reference(Backend):
    has_memory = True
    xp = np

    def __init__(self, where: device, memory: Memory):
        self.device, self.memory = where, memory
        self.faults = [0]
        self._inside = ContextVar(f"inside {where}", default=False)

    # ---- Memory ------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes):
        address = self.memory.allocate(nbytes)
        return Storage(address, nbytes, self.device, Bin(self.memory, address, nbytes))

    def allocator(self, nbytes):
        return lambda: self.allocate(nbytes)

    def copy_bytes(self, target, source, nbytes):
        self.write(target, self.read(source, nbytes))

    def read(self, address, nbytes):
        return self.memory.read(address, nbytes)

    def write(self, address, content):
        self.memory.write(address, content)

    def synchronize(self):
        pass  # every kernel has run when its call returns

    # ---- Kernels -----------------------------------------------------------------------------------------------------

    def prepare(self, results, operand_dtypes, params, sizes, strides):
        entry = kernels.prepare_map(self.memory, results, operand_dtypes, params, sizes, strides)
        return Launch(entry, 0, 0, None)

    def prepare_reduction(self, monoid, operand_dtypes, params, kept, reduced, outer):
        entry = kernels.prepare_reduction(self.memory, monoid, operand_dtypes, params, kept, reduced)
        return ReduceLaunch(entry, 0, 0, 0, None)

    def prepare_scan(self, monoid, operand_dtypes, sizes, strides):
        return Launch(kernels.prepare_scan(self.memory, monoid, operand_dtypes, sizes, strides), 0, 0, None)

    def prepare_indexed(self, results, operand_dtypes, sizes, strides, indexing):
        entry = indexed.prepare_indexed(
            self.memory, self.faults, results, operand_dtypes, sizes, strides, indexing
        )
        return IndexedLaunch(entry, 0, 0, 0, None)

    def prepare_pack(self, nbytes, itemsize, spread, sizes, strides):
        return indexed.prepare_pack(self.memory, nbytes, spread, sizes, strides)

    def product_operands(self, a, b):
        return _plain(a), _plain(b)

    def prepare_product(self, a, b, result):
        def entry(to, left, right, meta, count):
            x, y, z = (
                self.memory.array(address, spec.dtype.numpy, spec.shape, spec.byte_stride)
                for address, spec in ((left, a), (right, b), (to, result))
            )
            with np.errstate(all="ignore"):
                z[...] = np.matmul(x, y)

        return Launch(entry, 0, 0, None)

    def fill(self, distribution, generator, address, count, dtype, **parameters):
        """The CPU's numbers, so that a program gives the same results on both."""
        values = np.empty(count, dtype.numpy)
        draw = getattr(distributions, distribution)
        draw(generator, values.ctypes.data, count, dtype=dtype, **parameters)
        self.write(address, values.view(np.uint8))

    # ---- Arrays ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def inside(self):
        token = self._inside.set(True)
        try:
            yield
        finally:
            self._inside.reset(token)

    def as_array(self, storage, shape, dtype, start, strides):
        if not self._inside.get():
            raise RuntimeError(f"The host cannot read the memory of device {self.device}: use .cpu()")
        if strides is None:
            strides = np.empty(shape, np.void(dtype.itemsize).dtype).strides
        return self.memory.array(storage.ptr + start, dtype, shape, strides)

    def adopt(self, array, nbytes):
        storage = self.allocate(nbytes)
        self.memory.array(storage.ptr, array.dtype, array.shape, array.strides)[...] = array
        return storage


def _plain(spec):
    """The spec of an operand in the dtype that is computed with, nothing pending."""
    dtype = compute_type(spec.dtype)
    if dtype is spec.dtype and not spec.conj and not spec.neg:
        return spec
    return contiguous_spec(spec.shape, dtype, spec.device)


def backend(where: device) -> Reference:
    return Reference(where, Memory(str(where)))
