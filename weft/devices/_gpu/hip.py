"""Implements the runtime over HIP, for AMD's GPUs."""

from __future__ import annotations

from .amd import library
from .code import compiled
from .driver import DriverRuntime
from .linking import linked
from .target import AMDGPU


class Hip(DriverRuntime):
    target = AMDGPU

    def __init__(self, index: int):
        driver = library()
        super().__init__(driver, index)
        self.architecture = driver.architecture(index)

    def _new_context(self):
        return self._handle.value  # HIP's functions take the number of a device

    def _code(self, ir):
        # Features are left out: the code then runs whether they are on or off.
        return linked(compiled(AMDGPU, ir, self.architecture.partition(":")[0]))
