"""weft.cuda: CUDA devices, and what PyTorch says of them. No driver is loaded before a program asks for a device.

Without a device, functions that only ask answer as PyTorch's CPU build does, and functions that need one raise RuntimeError.
What is not here is declared in compat/interface/cuda.pyi, and raises NotImplementedError.
"""

from __future__ import annotations

from typing import Any

from ..compat.missing import module_getattr
from ..core import device as places
from ..core.out_of_memory import OutOfMemoryError
from ..core.restoring import Restoring
from ..ops.creation.legacy import typed_classes
from ._devices import DeviceProperties, count, gpu, index_of, started
from .memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
)
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import Event, Stream, StreamContext, current_stream, default_stream, set_stream, stream

__all__ = [
    "BFloat16Storage", "BFloat16Tensor", "BoolStorage", "BoolTensor", "ByteStorage", "ByteTensor",
    "CUDAGraph", "CUDAPluggableAllocator", "CharStorage", "CharTensor", "ComplexDoubleStorage",
    "ComplexFloatStorage", "CudaError", "DeferredCudaCallError", "DoubleStorage", "DoubleTensor",
    "Event", "ExternalStream", "FloatStorage", "FloatTensor", "GreenContext", "HalfStorage",
    "HalfTensor", "IntStorage", "IntTensor", "LongStorage", "LongTensor", "MemPool", "ShortStorage",
    "ShortTensor", "Stream", "StreamContext", "amp", "caching_allocator_alloc",
    "caching_allocator_delete", "caching_allocator_disabled", "caching_allocator_enable",
    "can_device_access_peer", "change_current_allocator", "check_error", "clock_rate", "cudaStatus",
    "cudart", "current_blas_handle", "current_device", "current_solver_handle", "current_stream",
    "default_generators", "default_stream", "device", "device_count", "device_memory_used", "device_of",
    "empty_cache", "get_allocator_backend", "get_arch_list", "get_device_capability", "get_device_name",
    "get_device_properties", "get_gencode_flags", "get_per_process_memory_fraction", "get_rng_state",
    "get_rng_state_all", "get_stream_from_external", "get_sync_debug_mode", "graph",
    "graph_pool_handle", "graphs", "has_half", "has_magma", "host_memory_stats",
    "host_memory_stats_as_nested_dict", "init", "initial_seed", "ipc_collect", "is_available",
    "is_bf16_supported", "is_current_stream_capturing", "is_initialized", "is_tf32_supported",
    "jiterator", "list_gpu_processes", "make_graphed_callables", "manual_seed", "manual_seed_all",
    "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory",
    "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats",
    "memory_stats_as_nested_dict", "memory_summary", "memory_usage", "nccl", "nvtx", "power_draw",
    "profiler", "random", "reset_accumulated_host_memory_stats", "reset_accumulated_memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_host_memory_stats",
    "reset_peak_memory_stats", "seed", "seed_all", "set_device", "set_per_process_memory_fraction",
    "set_rng_state", "set_rng_state_all", "set_stream", "set_sync_debug_mode", "sparse", "stream",
    "streams", "synchronize", "temperature", "tunable", "use_mem_pool", "utilization",
]  # fmt: skip

globals().update(typed_classes(places.device("cuda"), __name__))  # FloatTensor and the like
has_half = True
has_magma = False


def is_available() -> bool:
    """Whether tensors can live on a CUDA device.

    >>> import weft as torch
    >>> torch.cuda.is_available() == (torch.cuda.device_count() > 0)
    True
    """
    return count() > 0


def device_count() -> int:
    """How many CUDA devices there are."""
    return count()


def init() -> None:
    """Load the driver and start the current device, which the first tensor there does as well.

    Raises: RuntimeError without a device.
    """
    gpu()


def is_initialized() -> bool:
    """Whether a CUDA device has been used."""
    return bool(started())


def current_device() -> int:
    """The number of the device that "cuda" means.

    Raises: RuntimeError without a device.
    """
    gpu()
    return places.current_index("cuda")


def set_device(device: Any) -> None:
    """Let "cuda" mean this device. Programs should rather use `with torch.cuda.device(...)`.

    Raises: RuntimeError if there is no such device.
    """
    index = index_of(device)
    if index >= 0:
        gpu(index)
        places.set_current_index("cuda", index)


class device(Restoring):  # noqa: N801 (PyTorch's name)
    """A context in which "cuda" means this device. Without a CUDA device it does nothing, as in PyTorch."""

    def __init__(self, device: Any):
        self.device = device
        self.idx = index_of(device) if is_available() else -1
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            gpu(self.idx)
            self.prev_idx = places.current_index("cuda")
            places.set_current_index("cuda", self.idx)

    def _restore(self) -> None:
        if self.prev_idx >= 0:
            places.set_current_index("cuda", self.prev_idx)


class device_of(device):  # noqa: N801 (PyTorch's name)
    """A context in which "cuda" means the device of a tensor or storage. One that is not on a CUDA device changes nothing."""

    def __init__(self, obj: Any):
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def get_device_name(device: Any = None) -> str:
    """The name of a device, such as "NVIDIA H100 80GB HBM3".

    Raises: RuntimeError without a device.
    """
    return get_device_properties(device).name


def get_device_properties(device: Any = None) -> DeviceProperties:
    """The name, memory, capability and limits of a device.

    Raises: RuntimeError without a device.
    """
    index = index_of(device)
    if is_available() and not 0 <= index < count():
        raise AssertionError("Invalid device id")
    return DeviceProperties(gpu(index).runtime)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of an NVIDIA device, such as (9, 0); (0, 0) for a device of OpenCL.

    Raises: RuntimeError without a device.
    """
    found = get_device_properties(device)
    return found.major, found.minor


def synchronize(device: Any = None) -> None:
    """Wait until all work of a device is done.

    Raises: RuntimeError without a device.
    """
    gpu(device).synchronize()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether tensors of bfloat16 can be computed with: on every device, because weft's kernels convert them."""
    return is_available()


def _is_compiled() -> bool:
    return is_available()


def _is_in_bad_fork() -> bool:
    return False


# Few programs use them, and they load layers and kernels.
_LATE = "CUDAGraph graph graph_pool_handle is_current_stream_capturing make_graphed_callables".split()
_missing = module_getattr(__name__, ("amp", "graphs", "jiterator"), dict.fromkeys(_LATE, "graphs"))


def __getattr__(name: str) -> Any:
    if name == "default_generators":  # asked for each time, because a device that is not used yet has none
        return tuple(gpu(index).default_generator for index in range(count()))
    return _missing(name)
