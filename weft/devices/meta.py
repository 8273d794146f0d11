"""The device without memory: everything is planned here and nothing runs."""

from __future__ import annotations

from typing import final

from ..core.device import device
from ..core.storage import Storage
from ..engine.kernel import Launch, ReduceLaunch
from .base import Backend


@final
class Meta(Backend):
    has_memory = False

    def __init__(self, where: device):
        self.device = where

    def allocate(self, nbytes):
        return Storage(0, nbytes, self.device)

    def allocator(self, nbytes):
        return lambda: self.allocate(nbytes)

    def copy_bytes(self, target, source, nbytes):
        pass

    def prepare(self, results, operand_dtypes, params, sizes, strides):
        return Launch(_nothing, 0, 0, None)

    def prepare_reduction(self, monoid, operand_dtypes, params, kept, reduced, outer):
        return ReduceLaunch(_nothing, 0, 0, 0, None)

    def synchronize(self):
        pass


def _nothing(*operands):
    pass


def backend(where: device) -> Meta:
    return Meta(where)
