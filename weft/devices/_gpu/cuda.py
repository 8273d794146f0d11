"""Implements the runtime over NVIDIA's driver, without any other library of CUDA but cuBLAS, if it is there."""

from __future__ import annotations

import ctypes

from . import cublas
from .code import compiled
from .driver import DriverRuntime
from .nvidia import library
from .target import NVPTX

# What LLVM can compile for. Code for an older one runs on newer ones.
ARCHITECTURES = (70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 120, 121)


class Cuda(DriverRuntime):
    target = NVPTX

    def __init__(self, index: int):
        super().__init__(library(), index)
        if self.capability >= (8, 0):  # they have mma.sync.m16n8k16
            self.small_products = "tensor cores"
        found = cublas.library()
        self.blas = None if found is None else cublas.Cublas(self, found)

    def _new_context(self):
        context = ctypes.c_void_p()
        code = self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), self._handle)
        self.driver.check(code, "cuDevicePrimaryCtxRetain")
        return context.value or 0

    def profile(self, on):
        self.enter()
        code = self.driver.cuProfilerStart() if on else self.driver.cuProfilerStop()
        self.driver.check(code, "the profiler")

    def _code(self, ir):
        return compiled(NVPTX, ir, architecture(self.capability))


def architecture(capability: tuple[int, int]) -> str:
    """What LLVM compiles for on a device of this capability."""
    number = capability[0] * 10 + capability[1]
    return f"sm_{max((known for known in ARCHITECTURES if known <= number), default=ARCHITECTURES[0])}"
