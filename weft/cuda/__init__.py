"""weft.cuda: CUDA devices, and what PyTorch says of them. No driver is loaded before a program asks for a device.

Without a device, functions that only ask answer as PyTorch's CPU build does, and functions that need one raise RuntimeError.
What is not here is declared in compat/interface/cuda.txt, and raises NotImplementedError.
"""

from __future__ import annotations

from typing import Any

from ..accelerator._devices import DeviceContext
from ..compat.missing import module_getattr
from ..core import device as places
from ..core.out_of_memory import OutOfMemoryError
from ..core.restoring import Restoring
from ..ops.creation.legacy import typed_classes
from ._devices import DEVICES, DeviceProperties
from .cudart import CudaError, check_error, cudart, cudaStatus
from .management import clock_rate, device_memory_used, memory_usage, power_draw, temperature, utilization
from .memory import (
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    list_gpu_processes,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from .random import (
    _get_rng_state_offset,
    _set_rng_state_offset,
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
from .streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)
from .synchronizing import get_sync_debug_mode, set_sync_debug_mode

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

is_available, device_count = DEVICES.is_available, DEVICES.device_count
init, is_initialized = DEVICES.init, DEVICES.is_initialized
current_device, set_device, synchronize = DEVICES.current_device, DEVICES.set_device, DEVICES.synchronize
get_device_name, can_device_access_peer = DEVICES.get_device_name, DEVICES.can_device_access_peer
_exchange_device = _maybe_exchange_device = DEVICES._exchange_device


class DeferredCudaCallError(Exception):
    """PyTorch's error for a call that waited for the driver. weft never raises it."""


class device(DeviceContext):  # noqa: N801 (PyTorch's name)
    """A context in which "cuda" means this device. Without a CUDA device it does nothing, as in PyTorch."""

    _devices = DEVICES


class device_of(device):  # noqa: N801 (PyTorch's name)
    """A context in which "cuda" means the device of a tensor or storage. One that is not on a CUDA device changes nothing."""

    def __init__(self, obj: Any):
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def get_device_properties(device: Any = None) -> DeviceProperties:
    """The name, memory, capability and limits of a device.

    Raises: RuntimeError without a device.
    """
    return DeviceProperties(DEVICES.runtime(device))


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of an NVIDIA device, such as (9, 0); (0, 0) for a device of OpenCL.

    Raises: RuntimeError without a device.
    """
    return DEVICES.runtime(device).capability


def get_arch_list() -> list[str]:
    """What weft's kernels can be compiled for, such as "sm_90", on GPUs of AMD that of the current one; nothing without a device."""
    if not is_available():
        return []
    if architecture := DEVICES.runtime().architecture:
        return [architecture.partition(":")[0]]
    from ..devices._gpu.cuda import ARCHITECTURES  # loads LLVM's targets

    return [f"sm_{number}" for number in ARCHITECTURES]


def get_gencode_flags() -> str:
    """`get_arch_list()` as the options of NVIDIA's compiler."""
    numbers = [each.partition("_")[2] for each in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{number},code=sm_{number}" for number in numbers)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether tensors of bfloat16 can be computed with: on every device, because weft's kernels convert them."""
    return is_available()


def is_tf32_supported() -> bool:
    """Whether the current device has products of TF32 numbers: NVIDIA's from compute capability 8.0 on."""
    return is_available() and get_device_capability() >= (8, 0)


def ipc_collect() -> None:
    """Free memory that other processes have given back: there is none, because no process shares memory of devices.

    Raises: RuntimeError without a device.
    """
    init()


class _DeviceGuard(Restoring):
    """A context in which the CUDA device of a number is the current one; libraries enter it."""

    def __init__(self, index: int):
        self.idx, self.prev_idx = index, -1

    def __enter__(self) -> None:
        before = _exchange_device(self.idx)
        self.prev_idx = before

    def _restore(self) -> None:
        _exchange_device(self.prev_idx)


def _is_compiled() -> bool:
    return is_available()


def _is_in_bad_fork() -> bool:
    return False


def _lazy_init() -> None:
    init()


def _lazy_call(callable: Any, **kwargs: Any) -> None:
    """Call a function; PyTorch waits with it until a device is used."""
    callable()


# Few programs use them, and they load layers and kernels.
_LATE = "CUDAGraph graph graph_pool_handle is_current_stream_capturing make_graphed_callables".split()
_missing = module_getattr(
    __name__, ("amp", "comm", "graphs", "jiterator", "nvtx", "profiler"), dict.fromkeys(_LATE, "graphs")
)


def __getattr__(name: str) -> Any:
    if name == "default_generators":  # asked for each time, because a device that is not used yet has none
        return tuple(DEVICES.gpu(index).default_generator for index in range(device_count()))
    return _missing(name)
