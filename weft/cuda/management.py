"""Temperatures, clocks and processes of NVIDIA's devices, by the package nvidia-ml-py. It has never run on hardware."""

from __future__ import annotations

import importlib
import os
from typing import Any

from ._devices import DEVICES

_TEMPERATURE_OF_GPU, _CLOCK_OF_SM = 0, 1  # NVML_TEMPERATURE_GPU, NVML_CLOCK_SM


def _handle(device: Any) -> tuple[Any, Any]:
    """The module pynvml, and the device as it names it."""
    try:
        nvml = importlib.import_module("pynvml")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "nvidia-ml-py does not seem to be installed or it can't be imported."
        ) from None
    nvml.nvmlInit()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = [each.strip() for each in visible.split(",")] if visible else []
    index = DEVICES.index_of(device)
    name = names[index] if index < len(names) else str(index)
    if name.isdecimal():
        return nvml, nvml.nvmlDeviceGetHandleByIndex(int(name))
    return nvml, nvml.nvmlDeviceGetHandleByUUID(name)


def device_memory_used(device: Any = None) -> int:
    """The bytes of a device that all programs use.

    Raises: ModuleNotFoundError without nvidia-ml-py.
    """
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetMemoryInfo(handle).used


def memory_usage(device: Any = None) -> int:
    """The percentage of time in which a device read or wrote its memory.

    Raises: ModuleNotFoundError without nvidia-ml-py.
    """
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetUtilizationRates(handle).memory


def utilization(device: Any = None) -> int:
    """The percentage of time in which a device ran kernels.

    Raises: ModuleNotFoundError without nvidia-ml-py.
    """
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetUtilizationRates(handle).gpu


def temperature(device: Any = None) -> int:
    """The temperature of a device in degrees Celsius.

    Raises: ModuleNotFoundError without nvidia-ml-py.
    """
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetTemperature(handle, _TEMPERATURE_OF_GPU)


def power_draw(device: Any = None) -> int:
    """The power that a device draws, in milliwatts.

    Raises: ModuleNotFoundError without nvidia-ml-py.
    """
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetPowerUsage(handle)


def clock_rate(device: Any = None) -> int:
    """The frequency of the multiprocessors in MHz.

    Raises: ModuleNotFoundError without nvidia-ml-py.
    """
    nvml, handle = _handle(device)
    return nvml.nvmlDeviceGetClockInfo(handle, _CLOCK_OF_SM)


def list_gpu_processes(device: Any = None) -> str:
    """The processes that use a device, with the memory of each, as text to print. Without nvidia-ml-py the text asks for it."""
    try:
        nvml, handle = _handle(device)
    except ModuleNotFoundError:
        return "pynvml module not found, please install nvidia-ml-py"
    lines = [f"GPU:{DEVICES.index_of(device)}"]
    processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    lines += [
        f"process {each.pid:>10d} uses {(each.usedGpuMemory or 0) / (1 << 20):>12.3f} MB GPU memory"
        for each in processes
    ]
    return "\n".join(lines if processes else [*lines, "no processes are running"])
