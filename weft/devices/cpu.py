"""The processor: memory from the caching allocator, kernels compiled for this machine."""

from __future__ import annotations

import ctypes
from typing import final

from ..core.device import device
from ..engine.kernel import prepare_map, prepare_reduction
from ..engine.storages import allocator
from .base import Backend


@final
class Cpu(Backend):
    has_memory = True

    def allocate(self, nbytes):
        return allocator(nbytes)()

    def allocator(self, nbytes):
        return allocator(nbytes)

    def copy_bytes(self, target, source, nbytes):
        ctypes.memmove(target, source, nbytes)

    def prepare(self, results, operand_dtypes, params, sizes, strides):
        return prepare_map(results, operand_dtypes, params, sizes, strides)

    def prepare_reduction(self, monoid, operand_dtypes, params, kept, reduced, outer):
        return prepare_reduction(monoid, operand_dtypes, params, kept, reduced, outer)

    def synchronize(self):
        pass  # every kernel has run when its call returns


_cpu = Cpu()


def backend(where: device) -> Cpu:
    return _cpu
