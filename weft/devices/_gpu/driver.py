"""Implements the runtime over NVIDIA's driver, without any other library of CUDA."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...engine.kernel import Launch
from ...engine.words import Block, block
from ..base import Mark
from . import cublas
from .code import compiled
from .kernel import THREADS
from .launching import bound_launcher, launcher
from .nvidia import check, library
from .runtime import LazyKernel, Runtime
from .target import NVPTX

_NOT_READY = 600
_MAPPED = 3  # of cuMemHostAlloc: for all contexts, and for kernels
# Numbers of cuDeviceGetAttribute, from cuda.h.
MULTIPROCESSORS, MAJOR, MINOR = 16, 75, 76
WARP_SIZE, CACHE_SIZE, THREADS_PER_MULTIPROCESSOR = 10, 38, 39
# What LLVM can compile for. LazyKernel for an older one runs on newer ones.
ARCHITECTURES = (70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 120, 121)
_LOG_BUFFER, _LOG_SIZE = 5, 6  # options of cuModuleLoadDataEx
_address, _bytes = ctypes.c_uint64, ctypes.c_size_t


class _Event(Mark):
    """A mark by an event of the driver, of the context of this thread."""

    def __init__(self, driver: ctypes.CDLL):
        self._driver = driver
        self._handle = ctypes.c_void_p()
        check(driver.cuEventCreate(ctypes.byref(self._handle), 0), "cuEventCreate")
        check(driver.cuEventRecord(self._handle, None), "cuEventRecord")

    def is_done(self):
        code = self._driver.cuEventQuery(self._handle)
        if code == _NOT_READY:
            return False
        check(code, "the work of the device")
        return True

    def wait(self):
        check(self._driver.cuEventSynchronize(self._handle), "the work of the device")

    def until(self, later):
        found = ctypes.c_float()
        code = self._driver.cuEventElapsedTime(ctypes.byref(found), self._handle, later._handle)
        check(code, "elapsed_time")
        return found.value

    def __del__(self) -> None:
        self._driver.cuEventDestroy_v2(self._handle)


class Cuda(Runtime):
    target = NVPTX

    def __init__(self, index: int):
        super().__init__()
        driver = self.driver = library()
        self._is_busy = ctypes.c_int64()  # whether launches call `before_work` first
        self._run_before_work = lambda: self.before_work and self.before_work()
        handle = ctypes.c_int()
        check(driver.cuDeviceGet(ctypes.byref(handle), index), f"device {index}")
        self._handle = handle
        context = ctypes.c_void_p()
        check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle), f"device {index}")
        self.context, self.enter_address = context.value or 0, function_address(driver.cuCtxSetCurrent)
        self.enter()
        name = ctypes.create_string_buffer(256)
        check(driver.cuDeviceGetName(name, 256, handle), "cuDeviceGetName")
        self.name = name.value.decode()
        self.multiprocessors = self.attribute(MULTIPROCESSORS)
        self.capability = self.attribute(MAJOR), self.attribute(MINOR)
        self.threads_per_multiprocessor = self.attribute(THREADS_PER_MULTIPROCESSOR)
        self.warp_size, self.cache_size = self.attribute(WARP_SIZE), self.attribute(CACHE_SIZE)
        total = _bytes()
        check(driver.cuDeviceTotalMem_v2(ctypes.byref(total), handle), "cuDeviceTotalMem")
        self.total_memory = total.value
        found = cublas.library()
        self.blas = None if found is None else cublas.Cublas(self, found)

    def attribute(self, number: int) -> int:
        """A number that describes the device, by its constant in cuda.h."""
        value = ctypes.c_int()
        check(
            self.driver.cuDeviceGetAttribute(ctypes.byref(value), number, self._handle),
            "cuDeviceGetAttribute",
        )
        return value.value

    def enter(self) -> None:
        """Make the device's context that of this thread."""
        check(self.driver.cuCtxSetCurrent(ctypes.c_void_p(self.context)), "cuCtxSetCurrent")

    def call_before_work(self, function):
        super().call_before_work(function)
        self._is_busy.value = function is not None

    def free_memory(self):
        self.enter()
        free, total = _bytes(), _bytes()
        check(self.driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "cuMemGetInfo")
        return free.value

    # ---- Memory ----------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes):
        self.enter()
        address = _address()
        check(self.driver.cuMemAlloc_v2(ctypes.byref(address), _bytes(nbytes)), f"{nbytes} bytes of memory")
        return address.value

    def release(self, address):
        self.enter()
        check(self.driver.cuMemFree_v2(_address(address)), "cuMemFree")

    def allocate_host(self, nbytes):
        self.enter()
        address = ctypes.c_void_p()
        code = self.driver.cuMemHostAlloc(ctypes.byref(address), _bytes(nbytes), _MAPPED)
        check(code, f"{nbytes} bytes of pinned memory")
        return address.value or 0

    def release_host(self, address):
        self.enter()
        check(self.driver.cuMemFreeHost(ctypes.c_void_p(address)), "cuMemFreeHost")

    def read(self, address, nbytes):
        room = ctypes.create_string_buffer(nbytes)
        if nbytes:
            self.enter()
            check(self.driver.cuMemcpyDtoH_v2(room, _address(address), _bytes(nbytes)), "copy to the host")
        return room.raw

    def write(self, address, content):
        data = np.frombuffer(content, np.uint8)
        if data.size:
            self.enter()
            source = ctypes.c_void_p(data.ctypes.data)
            code = self.driver.cuMemcpyHtoD_v2(_address(address), source, _bytes(data.size))
            check(code, "copy from the host")

    def copy(self, target, source, nbytes):
        if nbytes:
            self.enter()
            code = self.driver.cuMemcpyDtoDAsync_v2(_address(target), _address(source), _bytes(nbytes), None)
            check(code, "copy")

    def synchronize(self):
        self.enter()
        check(self.driver.cuCtxSynchronize(), "the work of the device")

    def mark(self):
        self.enter()
        return _Event(self.driver)

    # ---- Kernels ---------------------------------------------------------------------------------------------------------

    def _compiled(self, ir):
        ptx = compiled(NVPTX, ir, architecture(self.capability))
        self.enter()
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        log = ctypes.create_string_buffer(1 << 12)
        options = (ctypes.c_int * 2)(_LOG_BUFFER, _LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        code = self.driver.cuModuleLoadDataEx(ctypes.byref(module), ptx, 2, options, values)
        check(code, f"the assembly of a kernel: {log.value.decode()}")
        check(self.driver.cuModuleGetFunction(ctypes.byref(function), module, b"kernel"), "kernel")
        return function.value or 0

    def launch(self, code, groups, letters, words):
        meta = self._meta(code, groups, range(len(letters)), [*[0] * len(letters), *words])
        return Launch(launcher(letters), meta.address, 1, (self, meta, code))

    def chain(self, code, groups, letters, words, last):
        places: list[int] = []
        template: list[int] = []
        for given, own in zip(letters, words, strict=True):
            places += range(len(template), len(template) + len(given))
            template += [*[0] * len(given), *own]
        meta = self._meta(code, groups, places, [*template, *last])
        entry = bound_launcher("".join(letters), meta.address)
        return Launch(entry, meta.address, 1, (self, meta, code))

    def _meta(self, code: LazyKernel, groups: int, places: Sequence[int], words: Sequence[int]) -> Block:
        """What an entry in machine code reads, see `launching.py`."""
        functions = function_address(self.driver.cuLaunchKernel), self.enter_address
        kernel = ctypes.addressof(code.word), id(code.compile)
        head = (*functions, self.context, *self.before_words, *kernel, groups, THREADS, len(words))
        return block((*head, *places, *words))

    @property
    def before_words(self) -> tuple[int, int]:
        """For launches in machine code: the address of the word that says whether to call `before_work` first, and the function that does."""
        return ctypes.addressof(self._is_busy), id(self._run_before_work)


def function_address(function: Any) -> int:
    """Return the address of a function of a library."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def architecture(capability: tuple[int, int]) -> str:
    """What LLVM compiles for on a device of this capability."""
    number = capability[0] * 10 + capability[1]
    return f"sm_{max((known for known in ARCHITECTURES if known <= number), default=ARCHITECTURES[0])}"
