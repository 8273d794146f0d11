"""Implements the runtime over a driver whose functions are NVIDIA's: memory, copies, events and launches."""

from __future__ import annotations

import ctypes
import threading
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...engine.kernel import Launch
from ...engine.words import Block, block
from ..base import Mark
from .driver_graphs import NON_BLOCKING, Recorder
from .kernel import THREADS
from .launching import bound_launcher, launcher
from .nvidia import Driver
from .runtime import LazyKernel, Runtime

_NOT_READY = 600
_ALREADY_ENABLED = 704  # of cuCtxEnablePeerAccess
_MAPPED = 3  # of cuMemHostAlloc: for all contexts, and for kernels
_LOG_BUFFER, _LOG_SIZE = 5, 6  # options of cuModuleLoadDataEx
_address, _bytes = ctypes.c_uint64, ctypes.c_size_t


class _Event(Mark):
    """A mark by an event of the driver in a queue, of the context of this thread."""

    def __init__(self, driver: Driver, queue: int):
        self.driver = driver
        self.handle = ctypes.c_void_p()
        driver.check(driver.cuEventCreate(ctypes.byref(self.handle), 0), "cuEventCreate")
        driver.check(driver.cuEventRecord(self.handle, ctypes.c_void_p(queue)), "cuEventRecord")

    def is_done(self):
        code = self.driver.cuEventQuery(self.handle)
        if code == _NOT_READY:
            return False
        self.driver.check(code, "the work of the device")
        return True

    def wait(self):
        self.driver.check(self.driver.cuEventSynchronize(self.handle), "the work of the device")

    def until(self, later):
        found = ctypes.c_float()
        code = self.driver.cuEventElapsedTime(ctypes.byref(found), self.handle, later.handle)
        self.driver.check(code, "elapsed_time")
        return found.value

    def __del__(self) -> None:
        self.driver.cuEventDestroy_v2(self.handle)


class DriverRuntime(Runtime):
    """One device of a driver. Subclasses know what the device's code is, and which call makes the device that of a thread."""

    def __init__(self, driver: Driver, index: int):
        super().__init__()
        self.driver = driver
        self._is_busy = ctypes.c_int64()  # whether launches call `before_work` first
        # For launches in machine code: a thread, the queue of its current stream, and the library of products for this queue.
        self._turn_words = (ctypes.c_uint64 * 3)()
        self._recorder: Recorder | None = None
        self._peers: set[int] = set()  # contexts of devices from which copies were made
        self._run_turn = self._turn
        self._run_before_work = lambda: self.before_work and self.before_work()
        self._handle = ctypes.c_int()
        driver.check(driver.cuDeviceGet(ctypes.byref(self._handle), index), f"device {index}")
        self.context = self._new_context()
        self.enter_address = function_address(driver.cuCtxSetCurrent)
        self.enter()
        name = ctypes.create_string_buffer(256)
        driver.check(driver.cuDeviceGetName(name, 256, self._handle), "cuDeviceGetName")
        self.name = name.value.decode()
        self.multiprocessors = self.attribute("multiprocessors")
        self.capability = self.attribute("major"), self.attribute("minor")
        self.threads_per_multiprocessor = self.attribute("threads_per_multiprocessor")
        self.warp_size, self.cache_size = self.attribute("warp_size"), self.attribute("cache_size")
        total = _bytes()
        driver.check(driver.cuDeviceTotalMem_v2(ctypes.byref(total), self._handle), "cuDeviceTotalMem")
        self.total_memory = total.value

    @abstractmethod
    def _new_context(self) -> int:
        """Return what cuCtxSetCurrent takes for this device."""

    @abstractmethod
    def _code(self, ir: str) -> bytes:
        """Return what the driver loads for a module."""

    def attribute(self, name: str) -> int:
        """A number that describes the device, see `Driver.attributes`."""
        value, number = ctypes.c_int(), self.driver.attributes[name]
        code = self.driver.cuDeviceGetAttribute(ctypes.byref(value), number, self._handle)
        self.driver.check(code, "cuDeviceGetAttribute")
        return value.value

    def enter(self) -> None:
        """Make the device that of this thread."""
        self.driver.check(self.driver.cuCtxSetCurrent(ctypes.c_void_p(self.context)), "cuCtxSetCurrent")

    def call_before_work(self, function):
        super().call_before_work(function)
        self._is_busy.value = function is not None

    def free_memory(self):
        self.enter()
        free, total = _bytes(), _bytes()
        self.driver.check(
            self.driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "cuMemGetInfo"
        )
        return free.value

    # ---- Memory ----------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes):
        self.enter()
        address = _address()
        self.driver.check(
            self.driver.cuMemAlloc_v2(ctypes.byref(address), _bytes(nbytes)), f"{nbytes} bytes of memory"
        )
        return address.value

    def release(self, address):
        self.enter()
        self.driver.check(self.driver.cuMemFree_v2(_address(address)), "cuMemFree")

    def allocate_host(self, nbytes):
        self.enter()
        address = ctypes.c_void_p()
        code = self.driver.cuMemHostAlloc(ctypes.byref(address), _bytes(nbytes), _MAPPED)
        self.driver.check(code, f"{nbytes} bytes of pinned memory")
        return address.value or 0

    def release_host(self, address):
        self.enter()
        self.driver.check(self.driver.cuMemFreeHost(ctypes.c_void_p(address)), "cuMemFreeHost")

    def read(self, address, nbytes):
        self.before_transfer()
        room = ctypes.create_string_buffer(nbytes)
        if nbytes:
            self.enter()
            queue = self.launch_queue()
            code = self.driver.cuMemcpyDtoHAsync_v2(room, _address(address), _bytes(nbytes), queue)
            self.driver.check(code, "copy to the host")
            self._finish(queue)
        return room.raw

    def write(self, address, content):
        self.before_transfer()
        data = np.frombuffer(content, np.uint8)
        if data.size:
            self.enter()
            source = ctypes.c_void_p(data.ctypes.data)
            queue = self.launch_queue()
            code = self.driver.cuMemcpyHtoDAsync_v2(_address(address), source, _bytes(data.size), queue)
            self.driver.check(code, "copy from the host")
            self._finish(queue)

    def send(self, target, source, nbytes):
        if nbytes:
            self.enter()
            code = self.driver.cuMemcpyHtoDAsync_v2(
                _address(target), ctypes.c_void_p(source), _bytes(nbytes), self.launch_queue()
            )
            self.driver.check(code, "copy from pinned memory")

    def copy(self, target, source, nbytes):
        if nbytes:
            self.enter()
            code = self.driver.cuMemcpyDtoDAsync_v2(
                _address(target), _address(source), _bytes(nbytes), self.launch_queue()
            )
            self.driver.check(code, "copy")

    def can_access(self, other):
        found = ctypes.c_int()
        code = self.driver.cuDeviceCanAccessPeer(ctypes.byref(found), self._handle, other._handle)
        self.driver.check(code, "cuDeviceCanAccessPeer")
        return bool(found.value)

    def copy_from(self, other, target, source, nbytes):
        if other is self or type(other) is not type(self):
            return super().copy_from(other, target, source, nbytes)
        if nbytes:
            for each in (self, other):
                each.refuse_recording()
            self._enable_access(other)
            self._wait_for(other)  # for what writes the source
            code = self.driver.cuMemcpyPeerAsync(
                _address(target),
                ctypes.c_void_p(self.context),
                _address(source),
                ctypes.c_void_p(other.context),
                _bytes(nbytes),
                self.launch_queue(),
            )
            self.driver.check(code, "copy between devices")
            other._wait_for(self)  # with what writes the source next
        return True

    def _enable_access(self, other: DriverRuntime) -> None:
        """Let copies from another device take the direct way, if there is one. Otherwise the driver goes through the host."""
        self.enter()
        if other.context in self._peers:
            return
        self._peers.add(other.context)
        if self.can_access(other):
            code = self.driver.cuCtxEnablePeerAccess(ctypes.c_void_p(other.context), 0)
            if code != _ALREADY_ENABLED:
                self.driver.check(code, "cuCtxEnablePeerAccess")

    def _wait_for(self, other: DriverRuntime) -> None:
        """Let work of this thread that is given next wait for its work of another device so far. This device is entered afterwards."""
        self.wait(self.queue(), other.mark(other.queue()))

    def synchronize(self):
        self.refuse_recording()
        self.enter()
        self.driver.check(self.driver.cuCtxSynchronize(), "the work of the device")

    # ---- Queues ----------------------------------------------------------------------------------------------------------

    def new_queue(self, priority):
        self.enter()
        stream = ctypes.c_void_p()
        code = self.driver.cuStreamCreateWithPriority(ctypes.byref(stream), NON_BLOCKING, priority)
        self.driver.check(code, "cuStreamCreateWithPriority")
        return stream.value or 0

    def priorities(self):
        self.enter()
        least, greatest = ctypes.c_int(), ctypes.c_int()
        code = self.driver.cuCtxGetStreamPriorityRange(ctypes.byref(least), ctypes.byref(greatest))
        self.driver.check(code, "cuCtxGetStreamPriorityRange")
        return least.value, greatest.value

    def launch_queue(self) -> ctypes.c_void_p:
        """What gets the work of this thread: the queue of its current stream, or one that records."""
        return ctypes.c_void_p(self.queue()) if self._recorder is None else self._recorder.stream

    def turn(self):
        self._turn_words[0] = 0

    def _turn(self) -> None:
        """Let launches in machine code be work of this thread. They call this if they are of another thread, or after `turn`."""
        queue = self.launch_queue().value or 0
        blas = 0 if self.blas is None else self.blas.handle(queue, self._recorder is not None)
        # One assignment, which no other thread interrupts.
        self._turn_words[:] = [threading.get_ident(), queue, blas]

    def mark(self, queue):
        self.enter()
        return _Event(self.driver, queue)

    def wait(self, queue, mark):
        if not isinstance(mark, _Event) or type(mark.driver) is not type(self.driver):
            mark.wait()  # a queue cannot wait for another driver, so the host does
            return
        self.enter()
        code = self.driver.cuStreamWaitEvent(ctypes.c_void_p(queue), mark.handle, 0)
        self.driver.check(code, "cuStreamWaitEvent")

    def is_idle(self, queue):
        self.enter()
        code = self.driver.cuStreamQuery(ctypes.c_void_p(queue))
        if code == _NOT_READY:
            return False
        self.driver.check(code, "the work of the stream")
        return True

    def finish(self, queue):
        self.refuse_recording()
        self.enter()
        self._finish(ctypes.c_void_p(queue))

    def _finish(self, queue: ctypes.c_void_p) -> None:
        self.driver.check(self.driver.cuStreamSynchronize(queue), "the work of the stream")

    def begin_recording(self):
        self.enter()
        self._recorder = Recorder(self.driver)
        self.is_recording = True
        self.turn()

    def end_recording(self):
        self.enter()
        recorder, self._recorder, self.is_recording = self._recorder, None, False
        self.turn()
        graph = recorder.end()

        def replay() -> None:
            self.enter()
            graph.launch(self.launch_queue())

        return replay

    # ---- Kernels ---------------------------------------------------------------------------------------------------------

    def _compiled(self, ir):
        image = self._code(ir)
        self.enter()
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        log = ctypes.create_string_buffer(1 << 12)
        options = (ctypes.c_int * 2)(_LOG_BUFFER, _LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        code = self.driver.cuModuleLoadDataEx(ctypes.byref(module), image, 2, options, values)
        self.driver.check(code, f"the code of a kernel: {log.value.decode()}")
        self.driver.check(
            self.driver.cuModuleGetFunction(ctypes.byref(function), module, b"kernel"), "kernel"
        )
        return function.value or 0

    def launch(self, code, groups, letters, words):
        meta = self._meta(code, groups, range(len(letters)), [*[0] * len(letters), *words])
        return Launch(launcher(letters, self.driver.api), meta.address, 1, (self, meta, code))

    def chain(self, code, groups, letters, words, last):
        places: list[int] = []
        template: list[int] = []
        for given, own in zip(letters, words, strict=True):
            places += range(len(template), len(template) + len(given))
            template += [*[0] * len(given), *own]
        meta = self._meta(code, groups, places, [*template, *last])
        entry = bound_launcher("".join(letters), self.driver.api, meta.address)
        return Launch(entry, meta.address, 1, (self, meta, code))

    def _meta(self, code: LazyKernel, groups: int, places: Sequence[int], words: Sequence[int]) -> Block:
        """What an entry in machine code reads, see `launching.py`."""
        functions = function_address(self.driver.cuLaunchKernel), self.enter_address
        kernel = ctypes.addressof(code.word), id(code.compile)
        head = (
            *functions,
            self.context,
            *self.before_words,
            *kernel,
            *self.turn_words,
            groups,
            THREADS,
            len(words),
        )
        return block((*head, *places, *words))

    @property
    def before_words(self) -> tuple[int, int]:
        """For launches in machine code: the address of the word that says whether to call `before_work` first, and the function that does."""
        return ctypes.addressof(self._is_busy), id(self._run_before_work)

    @property
    def turn_words(self) -> tuple[int, int]:
        """For launches in machine code: the address of the words of `_turn`, and the function that sets them."""
        return ctypes.addressof(self._turn_words), id(self._run_turn)


def function_address(function: Any) -> int:
    """Return the address of a function of a library."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
