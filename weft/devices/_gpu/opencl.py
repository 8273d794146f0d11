"""Implements the runtime over OpenCL 3, with raw addresses by Intel's extension for unified shared memory.

It drives Intel's GPUs, and Intel's OpenCL for processors (the package `intel-opencl-rt`), on which kernels for GPUs are tested where there is no GPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ...core.locks import new_lock
from ...core.symbols import per_plan
from ...engine.kernel import Launch
from ..base import Mark
from .code import compiled
from .kernel import THREADS
from .runtime import Runtime
from .target import SPIRV

# Names from CL/cl.h and CL/cl_ext.h.
_DEVICE_TYPE_CPU, _DEVICE_TYPE_GPU = 2, 4
_DEVICE_NAME, _GLOBAL_MEM_SIZE, _MAX_COMPUTE_UNITS, _CACHE_SIZE = 0x102B, 0x101F, 0x1002, 0x101E
_DEVICE_TYPE, _DEVICE_EXTENSIONS, _DEVICE_VENDOR = 0x1000, 0x1030, 0x102C
_DRIVER_VERSION, _DEVICE_VERSION = 0x102D, 0x102F
_MAX_WORK_GROUP_SIZE, _LOCAL_MEM_SIZE = 0x1004, 0x1023
_PROGRAM_BUILD_LOG = 0x1183
_QUEUE_PROPERTIES, _QUEUE_PROFILING = 0x1093, 2
_QUEUE_PRIORITY = 0x1096  # of the extension cl_khr_priority_hints
_PRIORITIES = {-1: 1, 0: 2, 1: 4}  # high, medium, low
_EVENT_STATUS, _COMPLETE, _COMMAND_END = 0x11D3, 0, 0x1283
_OUT_OF_MEMORY = {-4, -5, -6, -61}
_pointer, _size = ctypes.c_void_p, ctypes.c_size_t


@functools.cache
def _libraries(gpus_only: bool) -> list[ctypes.CDLL]:
    """$WEFT_OPENCL; without it the loader of the system, which knows the drivers of GPUs, and the package intel-opencl-rt for processors."""
    named = os.environ.get("WEFT_OPENCL")
    names = [named] if named else ["libOpenCL.so.1"]
    if not named and not gpus_only:
        names.append(str(Path(sys.prefix) / "lib" / "libintelocl.so"))
    found = []
    for name in names:
        with contextlib.suppress(OSError):  # it is not there
            found.append(_declared(ctypes.CDLL(name)))
    return found


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    for name in (
        "clCreateContext",
        "clCreateCommandQueueWithProperties",
        "clCreateProgramWithIL",
        "clCreateKernel",
    ):
        getattr(library, name).restype = _pointer
    library.clGetExtensionFunctionAddressForPlatform.restype = _pointer
    return library


def _check(code: int, what: str) -> None:
    if code in _OUT_OF_MEMORY:
        raise MemoryError(f"OpenCL: {what}: error {code}")
    if code:
        raise RuntimeError(f"OpenCL: {what}: error {code}")


def _ids(function: Any, *before: Any) -> list[int]:
    """The list that a function of OpenCL gives: asked once for its length."""
    count = ctypes.c_uint()
    if function(*before, 0, None, ctypes.byref(count)) or not count.value:
        return []
    found = (_pointer * count.value)()
    _check(function(*before, count.value, found, None), "list of devices")
    return list(found)


class _Device(NamedTuple):
    """A device that kernels of this folder can run on."""

    library: ctypes.CDLL
    platform: int
    handle: int


@functools.cache
def devices(gpus_only: bool = False) -> list[_Device]:
    """Return the devices of all drivers, GPUs first; `gpus_only`: without processors."""
    found = [
        _Device(library, platform, handle)
        for kind in ((_DEVICE_TYPE_GPU,) if gpus_only else (_DEVICE_TYPE_GPU, _DEVICE_TYPE_CPU))
        for library in _libraries(gpus_only)
        for platform in _ids(library.clGetPlatformIDs)
        for handle in _ids(library.clGetDeviceIDs, _pointer(platform), ctypes.c_uint64(kind))
    ]
    return [each for each in found if _has_addresses(each)]


def _has_addresses(device: _Device) -> bool:
    """Whether the device has Intel's extension for memory with raw addresses."""
    room, handle = ctypes.create_string_buffer(1 << 14), _pointer(device.handle)
    code = device.library.clGetDeviceInfo(handle, _DEVICE_EXTENSIONS, _size(1 << 14), room, None)
    return not code and b"cl_intel_unified_shared_memory" in room.value


def device_count(gpus_only: bool = False) -> int:
    """How many devices OpenCL has; 0 without a driver."""
    return len(devices(gpus_only))


class _Marker(Mark):
    """A mark by a marker in a queue, whose time the driver notes."""

    def __init__(self, library: ctypes.CDLL, context: Any, queue: Any):
        self._library, self.context = library, context
        self._event = _pointer()
        code = library.clEnqueueMarkerWithWaitList(queue, 0, None, ctypes.byref(self._event))
        _check(code, "clEnqueueMarker")
        _check(library.clFlush(queue), "clFlush")

    def is_done(self):
        status = ctypes.c_int()
        code = self._library.clGetEventInfo(self._event, _EVENT_STATUS, _size(4), ctypes.byref(status), None)
        _check(code or min(status.value, 0), "the work of the device")
        return status.value == _COMPLETE

    def hold(self, queue: Any) -> None:
        """Let work that a queue of the same context is given from now on wait for the mark."""
        code = self._library.clEnqueueBarrierWithWaitList(queue, 1, ctypes.byref(self._event), None)
        _check(code, "clEnqueueBarrier")
        _check(self._library.clFlush(queue), "clFlush")

    def wait(self):
        _check(self._library.clWaitForEvents(1, ctypes.byref(self._event)), "the work of the device")

    def _nanoseconds(self) -> int:
        if not self.is_done():
            raise RuntimeError("device not ready: an event is not complete yet")
        found = ctypes.c_uint64()
        code = self._library.clGetEventProfilingInfo(
            self._event, _COMMAND_END, _size(8), ctypes.byref(found), None
        )
        _check(code, "clGetEventProfilingInfo")
        return found.value

    def until(self, later):
        return (later._nanoseconds() - self._nanoseconds()) / 1e6

    def __del__(self) -> None:
        self._library.clReleaseEvent(self._event)


class OpenCL(Runtime):
    target = SPIRV
    capability = (0, 0)
    # OpenCL has no such numbers. These are those of most NVIDIA devices, from which the mapping of random numbers to elements follows.
    threads_per_multiprocessor, warp_size = 2048, 32

    def __init__(self, index: int, gpus_only: bool = False):
        super().__init__()
        library, platform, device = devices(gpus_only)[index]
        self._library = library
        self._device = _pointer(device)
        error = ctypes.c_int()
        handles = (_pointer * 1)(device)
        self._context = _pointer(library.clCreateContext(None, 1, handles, None, None, ctypes.byref(error)))
        _check(error.value, "clCreateContext")
        self._has_priorities = "cl_khr_priority_hints" in self._text(_DEVICE_EXTENSIONS).split()
        self._queues: list[int] = []
        self._default = self.new_queue(0)
        self._arguments = new_lock()  # a kernel holds the arguments of one launch
        self._extensions = {
            name: ctypes.CFUNCTYPE(result)(
                library.clGetExtensionFunctionAddressForPlatform(_pointer(platform), name.encode())
            )
            for name, result in (
                ("clDeviceMemAllocINTEL", _pointer),
                ("clHostMemAllocINTEL", _pointer),
                ("clMemBlockingFreeINTEL", ctypes.c_int),
                ("clEnqueueMemcpyINTEL", ctypes.c_int),
            )
        }
        self._recorded: list[Callable[[], object]] = []
        self.name = self._text(_DEVICE_NAME)
        self.total_memory = self._number(_GLOBAL_MEM_SIZE)
        self.multiprocessors = self._number(_MAX_COMPUTE_UNITS)
        self.cache_size = self._number(_CACHE_SIZE)
        self._options = b"-cl-fp32-correctly-rounded-divide-sqrt"
        if self._number(_DEVICE_TYPE) & _DEVICE_TYPE_CPU:
            self.small_products = "memory"  # for tests; on OpenCL's GPUs nobody has measured these kernels
            # Intel's driver for processors then compiles a kernel in a fifth of the time. One of its passes, which is left out, crashes
            # now and then on kernels of attention, which are long and have many barriers.
            self._options += b" -cl-opt-disable"

    def _text(self, what: int) -> str:
        room = ctypes.create_string_buffer(1 << 14)
        code = self._library.clGetDeviceInfo(self._device, what, _size(1 << 14), room, None)
        _check(code, "clGetDeviceInfo")
        return room.value.decode()

    def _number(self, what: int) -> int:
        value = ctypes.c_uint64()
        code = self._library.clGetDeviceInfo(self._device, what, _size(8), ctypes.byref(value), None)
        if code:  # a number of 32 bits
            code = self._library.clGetDeviceInfo(self._device, what, _size(4), ctypes.byref(value), None)
        _check(code, "clGetDeviceInfo")
        return value.value

    def description(self) -> dict[str, Any]:
        """What `torch.xpu.get_device_properties` says of the device beyond what all runtimes know."""
        extensions = self._text(_DEVICE_EXTENSIONS).split()
        kind = self._number(_DEVICE_TYPE)
        return {
            "vendor": self._text(_DEVICE_VENDOR),
            "driver_version": self._text(_DRIVER_VERSION),
            "version": self._text(_DEVICE_VERSION),
            "max_work_group_size": self._number(_MAX_WORK_GROUP_SIZE),
            "local_mem_size": self._number(_LOCAL_MEM_SIZE),
            "type": "gpu" if kind & _DEVICE_TYPE_GPU else "cpu",
            "has_fp16": "cl_khr_fp16" in extensions,
            "has_fp64": "cl_khr_fp64" in extensions,
            "has_atomic64": "cl_khr_int64_base_atomics" in extensions,
        }

    def free_memory(self):
        return self.total_memory

    # ---- Memory ----------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes):
        error = ctypes.c_int()
        address = self._extensions["clDeviceMemAllocINTEL"](
            self._context, self._device, None, _size(nbytes), ctypes.c_uint(256), ctypes.byref(error)
        )
        _check(error.value, f"{nbytes} bytes of memory")
        return address

    def release(self, address):
        _check(self._extensions["clMemBlockingFreeINTEL"](self._context, _pointer(address)), "free")

    def allocate_host(self, nbytes):
        error = ctypes.c_int()
        address = self._extensions["clHostMemAllocINTEL"](
            self._context, None, _size(nbytes), ctypes.c_uint(256), ctypes.byref(error)
        )
        _check(error.value, f"{nbytes} bytes of pinned memory")
        return address

    def release_host(self, address):
        self.release(address)

    def _copy(self, wait: bool, target: int, source: int, nbytes: int) -> None:
        code = self._extensions["clEnqueueMemcpyINTEL"](
            self._named(self.queue()),
            ctypes.c_uint(wait),
            _pointer(target),
            _pointer(source),
            _size(nbytes),
            0,
            None,
            None,
        )
        _check(code, "copy")

    def begin_recording(self):
        self._recorded, self.is_recording = [], True

    def end_recording(self):
        recorded, self._recorded, self.is_recording = self._recorded, [], False

        def replay() -> None:
            for work in recorded:
                work()

        return replay

    def _do(self, work: Callable[[], object]) -> None:
        """Do some work, or note it."""
        if self.is_recording:
            self._recorded.append(work)
        else:
            work()

    def read(self, address, nbytes):
        self.before_transfer()
        room = ctypes.create_string_buffer(nbytes)
        if nbytes:
            self._copy(True, ctypes.addressof(room), address, nbytes)
        return room.raw

    def write(self, address, content):
        self.before_transfer()
        data = bytes(content)
        if data:
            room = ctypes.create_string_buffer(data, len(data))
            self._copy(True, address, ctypes.addressof(room), len(data))

    def send(self, target, source, nbytes):
        if nbytes:
            self._copy(False, target, source, nbytes)

    def copy(self, target, source, nbytes):
        if nbytes:
            self._do(functools.partial(self._copy, False, target, source, nbytes))

    def synchronize(self):
        self.refuse_recording()
        for queue in tuple(self._queues):
            self.finish(queue)

    # ---- Queues ----------------------------------------------------------------------------------------------------------

    def new_queue(self, priority):
        chosen = (_QUEUE_PRIORITY, _PRIORITIES[priority]) if self._has_priorities else ()
        words = (_QUEUE_PROPERTIES, _QUEUE_PROFILING, *chosen, 0)
        error = ctypes.c_int()
        queue = self._library.clCreateCommandQueueWithProperties(
            self._context, self._device, (ctypes.c_uint64 * len(words))(*words), ctypes.byref(error)
        )
        _check(error.value, "clCreateCommandQueue")
        self._queues.append(queue)
        return queue

    def priorities(self):
        return max(_PRIORITIES), min(_PRIORITIES)

    def _named(self, queue: int) -> Any:
        """The queue with a handle; that of the default queue is 0."""
        return _pointer(queue or self._default)

    def mark(self, queue):
        return _Marker(self._library, self._context, self._named(queue))

    def wait(self, queue, mark):
        if isinstance(mark, _Marker) and mark.context is self._context:
            mark.hold(self._named(queue))
        else:  # a queue of OpenCL cannot wait for another context, so the host does
            mark.wait()

    def is_idle(self, queue):
        return self.mark(queue).is_done()

    def finish(self, queue):
        self.refuse_recording()
        _check(self._library.clFinish(self._named(queue)), "clFinish")

    # ---- Kernels ---------------------------------------------------------------------------------------------------------

    def _compiled(self, ir):
        code = compiled(SPIRV, ir)
        error = ctypes.c_int()
        program = _pointer(
            self._library.clCreateProgramWithIL(self._context, code, _size(len(code)), ctypes.byref(error))
        )
        _check(error.value, "clCreateProgramWithIL")
        if failed := self._library.clBuildProgram(program, 0, None, self._options, None, None):
            raise RuntimeError(f"OpenCL: clBuildProgram: error {failed}: {self._log(program)}")
        kernel = _pointer(self._library.clCreateKernel(program, b"kernel", ctypes.byref(error)))
        _check(error.value, "clCreateKernel")
        return kernel.value or 0

    def _log(self, program: Any) -> str:
        room = ctypes.create_string_buffer(1 << 14)
        self._library.clGetProgramBuildInfo(
            program, self._device, _PROGRAM_BUILD_LOG, _size(1 << 14), room, None
        )
        return room.value.decode(errors="replace")

    def launch(self, code, groups, letters, words):
        return Launch(self._entry(code, groups, [letters], [words], (), 2), 0, 0, None)

    def chain(self, code, groups, letters, words, last):
        return Launch(self._entry(code, groups, letters, words, last, 0), 0, 0, None)

    @per_plan
    def _entry(self, code, groups, letters, words, last, unused):
        """A function that launches a kernel. `unused`: how many arguments it ignores at the end."""
        library = self._library
        whole, group = _size(groups * THREADS), _size(THREADS)
        kinds = "".join(letters)
        # The place of each argument, and the words that stay.
        places: list[int] = []
        constants: list[tuple[int, Any]] = []
        end = 0
        for given, own in zip([*letters, ""], [*words, last], strict=True):
            places += range(end, end + len(given))
            end += len(given)
            constants += [(end + k, ctypes.c_int64(word)) for k, word in enumerate(own)]
            end += len(own)

        def entry(*arguments: Any) -> Any:
            if self.before_work is not None:
                self.before_work()
            if len(arguments) != len(kinds) + unused:
                raise TypeError("bad argument type for built-in operation")
            own = zip(places, map(_word, kinds, arguments), strict=True)  # `map` ends with the shorter one
            self._do(functools.partial(run, _pointer(code.kernel()), [*own, *constants]))
            return arguments[0]

        def run(kernel: Any, words: list[tuple[int, Any]]) -> None:
            with self._arguments:
                for place, word in words:
                    status = library.clSetKernelArg(kernel, place, _size(8), ctypes.byref(word))
                    _check(status, "clSetKernelArg")
                status = library.clEnqueueNDRangeKernel(
                    self._named(self.queue()),
                    kernel,
                    1,
                    None,
                    ctypes.byref(whole),
                    ctypes.byref(group),
                    0,
                    None,
                    None,
                )
            _check(status, "clEnqueueNDRangeKernel")

        return entry


def _word(kind: str, value: Any) -> ctypes.c_int64:
    """A number as the word that a kernel gets."""
    if kind in "pi":
        return ctypes.c_int64(int(value) & (1 << 64) - 1)
    return ctypes.c_int64(int.from_bytes(struct.pack("<" + kind, value).ljust(8, b"\0"), "little"))
