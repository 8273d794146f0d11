"""Implements the processor: memory from the caching allocator, kernels compiled for this machine, NumPy's arrays."""

from __future__ import annotations

import contextlib
import ctypes
from typing import final

import numpy as np

from ...core.device import device
from ...core.storage import foreign
from ...engine import distributions
from ...engine.chain import Chain
from ...engine.defer import keep_all
from ...engine.kernel import prepare_map, prepare_reduction
from ...engine.memory import CACHE_LIMIT, FENCE
from ...engine.storages import allocator
from ..base import Backend
from .extras import EXTRAS
from .indexed import faults, prepare_indexed, prepare_pack
from .product import prepare_product, product_operands
from .scan import prepare_scan


class _Memory(ctypes.c_char * 2**62):  # type: ignore[misc]
    """The memory from an address on, as a buffer with a reference to the Storage: who holds the buffer keeps both.

    One type for all sizes, because making a ctypes type takes longer than making the array on it.
    """

    __slots__ = ("storage",)


_C_TYPES = {
    "float64": ctypes.c_double,
    "float32": ctypes.c_float,
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "int16": ctypes.c_int16,
    "int8": ctypes.c_int8,
    "uint8": ctypes.c_uint8,
    "bool": ctypes.c_bool,
}


@final
class Cpu(Backend):
    has_memory = True
    most_deferred = CACHE_LIMIT
    c_types = _C_TYPES
    readers = {name: kind.from_address for name, kind in _C_TYPES.items()}  # noqa: RUF012 (nobody writes it)
    xp = np
    faults = faults
    extras = EXTRAS
    _everywhere = contextlib.nullcontext()  # the host can reach this memory at any time

    def allocate(self, nbytes):
        return allocator(nbytes)()

    def allocator(self, nbytes):
        return allocator(nbytes)

    def copy_bytes(self, target, source, nbytes):
        ctypes.memmove(target, source, nbytes)

    def read(self, address, nbytes):
        return ctypes.string_at(address, nbytes)

    def write(self, address, content):
        view = np.frombuffer(content, np.uint8)
        ctypes.memmove(address, view.ctypes.data, view.size)

    def synchronize(self):
        keep_all()  # every other kernel has run when its call returns

    prepare = staticmethod(prepare_map)
    prepare_reduction = staticmethod(prepare_reduction)
    prepare_scan = staticmethod(prepare_scan)
    prepare_indexed = staticmethod(prepare_indexed)
    prepare_pack = staticmethod(prepare_pack)
    product_operands = staticmethod(product_operands)
    prepare_product = staticmethod(prepare_product)
    chain = staticmethod(Chain)

    def fill(self, distribution, generator, address, count, dtype, **parameters):
        getattr(distributions, distribution)(generator, address, count, dtype=dtype, **parameters)

    def inside(self):
        return self._everywhere

    def as_array(self, storage, shape, dtype, start, strides):
        memory = _Memory.from_address(storage.ptr)
        memory.storage = storage
        return np.ndarray(shape, dtype, memory, start, strides)

    def adopt(self, array, nbytes):
        storage = foreign(array.__array_interface__["data"][0], nbytes, array)
        return storage.clone() if FENCE else storage  # NumPy's own memory has no fence


_cpu = Cpu()


def backend(where: device) -> Cpu:
    return _cpu
