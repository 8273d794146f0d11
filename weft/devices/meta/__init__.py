"""The device without memory: everything is planned here and nothing runs."""

from __future__ import annotations

from typing import final

from ...core.device import device
from ...core.storage import Storage
from ...engine.kernel import IndexedLaunch, Launch, ReduceLaunch
from ..base import Backend

NO_VALUES = "a tensor on device meta has no values"


@final
class Meta(Backend):
    has_memory = False
    faults = (0,)

    def __init__(self, where: device):
        self.device = where

    def allocate(self, nbytes):
        return Storage(0, nbytes, self.device)

    def allocator(self, nbytes):
        return lambda: self.allocate(nbytes)

    def copy_bytes(self, target, source, nbytes):
        pass

    def read(self, address, nbytes):
        raise NotImplementedError(NO_VALUES)

    def write(self, address, content):
        pass

    def synchronize(self):
        pass

    def prepare(self, results, operand_dtypes, params, sizes, strides):
        return Launch(_nothing, 0, 0, None)

    def prepare_reduction(self, monoid, operand_dtypes, params, kept, reduced, outer):
        return ReduceLaunch(_nothing, 0, 0, 0, None)

    def prepare_scan(self, monoid, operand_dtypes, sizes, strides):
        return Launch(_nothing, 0, 0, None)

    def prepare_indexed(self, results, operand_dtypes, sizes, strides, indexing):
        return IndexedLaunch(_nothing, 0, 0, 0, None)

    def prepare_pack(self, nbytes, itemsize, spread, sizes, strides):
        raise NotImplementedError(NO_VALUES)  # the number of selected elements is a value

    def product_operands(self, a, b):
        return a, b

    def prepare_product(self, a, b, result):
        return Launch(_nothing, 0, 0, None)

    def fill(self, distribution, generator, address, count, dtype, **parameters):
        pass

    @property
    def xp(self):
        raise NotImplementedError(NO_VALUES)

    def inside(self):
        raise NotImplementedError(NO_VALUES)

    def as_array(self, storage, shape, dtype, start, strides):
        raise NotImplementedError(NO_VALUES)

    def adopt(self, array, nbytes):
        raise NotImplementedError(NO_VALUES)


def _nothing(*operands):
    pass


def backend(where: device) -> Meta:
    return Meta(where)
