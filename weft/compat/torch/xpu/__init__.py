"""weft.xpu: GPUs of OpenCL, such as Intel's. No driver is loaded before a program asks for a device.

Without a device, functions that only ask answer as PyTorch's CPU build does, and functions that need one raise its AssertionError.
What is not here is declared in compat/interface/xpu.txt, and raises NotImplementedError.
"""

from __future__ import annotations

from typing import Any

from weft.accelerator._devices import DeviceContext
from weft.compat.missing import module_getattr

from ._devices import DEVICES, DeviceProperties
from .memory import (
    MemPool,
    empty_cache,
    get_per_process_memory_fraction,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
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
from .streams import Event, Stream, StreamContext, current_stream, set_stream, stream

is_available, device_count = DEVICES.is_available, DEVICES.device_count
init, is_initialized = DEVICES.init, DEVICES.is_initialized
current_device, set_device, synchronize = DEVICES.current_device, DEVICES.set_device, DEVICES.synchronize
get_device_name, can_device_access_peer = DEVICES.get_device_name, DEVICES.can_device_access_peer


class device(DeviceContext):  # noqa: N801 (PyTorch's name)
    """A context in which "xpu" means this device. Without an XPU device it does nothing."""

    _devices = DEVICES


class device_of(device):  # noqa: N801 (PyTorch's name)
    """A context in which "xpu" means the device of a tensor or storage. One that is not on an XPU device changes nothing."""

    def __init__(self, obj: Any):
        super().__init__(obj.device.index if obj.device.type == "xpu" else -1)


def get_device_properties(device: Any = None) -> DeviceProperties:
    """The name, memory and limits of a device.

    Raises: AssertionError without a device.
    """
    return DeviceProperties(DEVICES.runtime(device))


def get_device_capability(device: Any = None) -> dict[str, Any]:
    """What `get_device_properties` says, by name.

    Raises: AssertionError without a device.
    """
    return dict(vars(get_device_properties(device)))


def get_arch_list() -> list[str]:
    """The processors that kernels are compiled for beforehand: none, because the driver compiles them."""
    return []


def get_gencode_flags() -> str:
    """`get_arch_list()` as the options of a compiler."""
    return ""


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether tensors of bfloat16 can be computed with: on every device, because weft's kernels convert them."""
    return is_available()


def is_tf32_supported() -> bool:
    """Whether there are products of TF32 numbers. weft has none on XPU devices."""
    return False


def _is_compiled() -> bool:
    return is_available()


def _is_in_bad_fork() -> bool:
    return False


def _lazy_init() -> None:
    init()


# Few programs use them, and they load layers and kernels.
_LATE = "XPUGraph graph graph_pool_handle is_current_stream_capturing make_graphed_callables".split()
_missing = module_getattr(__name__, ("graphs",), dict.fromkeys(_LATE, "graphs"))


def __getattr__(name: str) -> Any:
    if name == "default_generators":  # asked for each time, because a device that is not used yet has none
        return tuple(DEVICES.gpu(index).default_generator for index in range(device_count()))
    return _missing(name)
