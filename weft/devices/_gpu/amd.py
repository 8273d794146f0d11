"""AMD's driver, HIP: its library, whose functions differ from NVIDIA's in names, and how many devices it has."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import Any

from .nvidia import Driver, DriverError, count_devices

NAMES = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so")  # of the library, of ROCm 7, 6 and others
# HIP's functions by the names of NVIDIA's that have the same parameters.
_FUNCTIONS = {
    "cuInit": "hipInit",
    "cuDeviceGetCount": "hipGetDeviceCount",
    "cuDeviceGet": "hipDeviceGet",
    "cuDeviceGetName": "hipDeviceGetName",
    "cuDeviceGetAttribute": "hipDeviceGetAttribute",
    "cuDeviceTotalMem_v2": "hipDeviceTotalMem",
    "cuCtxSetCurrent": "hipSetDevice",  # takes the number of a device instead of a context
    "cuCtxSynchronize": "hipDeviceSynchronize",
    "cuMemGetInfo_v2": "hipMemGetInfo",
    "cuMemAlloc_v2": "hipMalloc",
    "cuMemFree_v2": "hipFree",
    "cuMemHostAlloc": "hipHostMalloc",
    "cuMemFreeHost": "hipHostFree",
    "cuMemcpyDtoHAsync_v2": "hipMemcpyDtoHAsync",
    "cuMemcpyHtoDAsync_v2": "hipMemcpyHtoDAsync",
    "cuMemcpyDtoDAsync_v2": "hipMemcpyDtoDAsync",
    "cuMemcpyPeerAsync": "hipMemcpyPeerAsync",  # takes the numbers of devices instead of contexts, as the next one
    "cuCtxEnablePeerAccess": "hipDeviceEnablePeerAccess",
    "cuDeviceCanAccessPeer": "hipDeviceCanAccessPeer",
    "cuStreamWaitEvent": "hipStreamWaitEvent",
    "cuEventCreate": "hipEventCreateWithFlags",
    "cuEventRecord": "hipEventRecord",
    "cuEventQuery": "hipEventQuery",
    "cuEventSynchronize": "hipEventSynchronize",
    "cuEventElapsedTime": "hipEventElapsedTime",
    "cuEventDestroy_v2": "hipEventDestroy",
    "cuModuleLoadDataEx": "hipModuleLoadDataEx",
    "cuModuleGetFunction": "hipModuleGetFunction",
    "cuLaunchKernel": "hipModuleLaunchKernel",
    "cuStreamCreate": "hipStreamCreateWithFlags",
    "cuStreamCreateWithPriority": "hipStreamCreateWithPriority",
    "cuCtxGetStreamPriorityRange": "hipDeviceGetStreamPriorityRange",
    "cuStreamQuery": "hipStreamQuery",
    "cuStreamSynchronize": "hipStreamSynchronize",
    "cuStreamBeginCapture_v2": "hipStreamBeginCapture",
    "cuStreamEndCapture": "hipStreamEndCapture",
    "cuStreamDestroy_v2": "hipStreamDestroy",
    "cuGraphInstantiateWithFlags": "hipGraphInstantiateWithFlags",
    "cuGraphLaunch": "hipGraphLaunch",
    "cuGraphDestroy": "hipGraphDestroy",
    "cuGraphExecDestroy": "hipGraphExecDestroy",
}
# hipDeviceProp_t as hipGetDevicePropertiesR0600 fills it in, from ROCm 6 on: its size, and where gcnArchName is.
_PROPERTIES_SIZE, _ARCHITECTURE = 1472, 1160


class HipDriver(Driver):
    """HIP's library. Its functions are attributes, under the names of NVIDIA's."""

    api = "HIP"
    # Numbers of hipDeviceAttribute_t.
    attributes = {
        "multiprocessors": 63,
        "major": 23,
        "minor": 61,
        "warp_size": 87,
        "cache_size": 19,
        "threads_per_multiprocessor": 57,
    }

    def __getattr__(self, name: str) -> Any:
        known = _FUNCTIONS.get(name)
        if known is None:
            raise NotImplementedError(f"weft does not know which function of HIP corresponds to {name}")
        return getattr(self.library, known)

    def error_text(self, code: int) -> str:
        self.library.hipGetErrorString.restype = ctypes.c_char_p
        return (self.library.hipGetErrorString(code) or b"").decode()

    def architecture(self, index: int) -> str:
        """What LLVM calls the processor of a device, with the features that are on or off: "gfx90a:sramecc+:xnack-"."""
        room = ctypes.create_string_buffer(_PROPERTIES_SIZE)
        code = self.library.hipGetDevicePropertiesR0600(room, index)
        self.check(code, "hipGetDeviceProperties")
        return ctypes.string_at(ctypes.addressof(room) + _ARCHITECTURE).decode()

    def version(self) -> str:
        """The version of HIP, such as "6.4.43484"."""
        found = ctypes.c_int()
        self.check(self.library.hipRuntimeGetVersion(ctypes.byref(found)), "hipRuntimeGetVersion")
        major, rest = divmod(found.value, 10_000_000)
        return f"{major}.{rest // 100_000}.{rest % 100_000}"


def _load() -> ctypes.CDLL:
    folder = Path(os.environ.get("ROCM_PATH", "/opt/rocm")) / "lib"
    for name in (*NAMES, *(str(folder / name) for name in NAMES)):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError(f"none of {', '.join(NAMES)} is there")


@functools.cache
def is_installed() -> bool:
    """Whether HIP is there. It is not started."""
    try:
        _load()
    except OSError:
        return False
    return True


@functools.cache
def library() -> HipDriver:
    """HIP, ready for use.

    Raises: OSError if it is not there, DriverError if it cannot be used.
    """
    found = HipDriver(_load())
    if code := found.cuInit(0):
        raise DriverError(f"HIP cannot be used: error {code}")
    return found


@functools.cache
def device_count() -> int:
    """How many devices HIP has; 0 without HIP."""
    return count_devices(library)
