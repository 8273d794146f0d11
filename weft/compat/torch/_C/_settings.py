"""Settings of PyTorch's C++ part: devices, and switches of its compilers, which are kept and have no effect."""

from __future__ import annotations

from collections.abc import Callable

from weft.core import device as places
from weft.core.device import device


def _get_accelerator() -> device:
    """The device that programs should use: the CPU, where there is no accelerator."""
    return device(places.accelerator() or "cpu")


def _get_default_device() -> str:
    """The kind of device on which tensors are made unless a device is given to the type of tensors."""
    return "cpu"


def _get_privateuse1_backend_name() -> str:
    """The name of the kind of device that extensions may define."""
    return places.private_name


def _set_math_sdp_allow_fp16_bf16_reduction(enabled: bool) -> None:
    """Nothing: attention computes its sums in float32."""


_switches: dict[str, bool] = {}


def _switch(name: str, initially: bool) -> Callable[[bool], bool]:
    """A function that keeps a value and returns the one before."""
    _switches[name] = initially

    def function(enabled: bool, /) -> bool:
        before, _switches[name] = _switches[name], bool(enabled)
        return before

    function.__name__ = function.__qualname__ = name
    return function


_jit_set_profiling_executor = _switch("_jit_set_profiling_executor", True)
_jit_set_profiling_mode = _switch("_jit_set_profiling_mode", True)
_jit_set_texpr_fuser_enabled = _switch("_jit_set_texpr_fuser_enabled", True)
_jit_set_nvfuser_enabled = _switch("_jit_set_nvfuser_enabled", False)
_jit_set_nvfuser_guard_mode = _switch("_jit_set_nvfuser_guard_mode", True)


_get_graph_executor_optimize = _switch("_get_graph_executor_optimize", True)
_profiled_runs = 1
_emit_hooks: tuple[Callable | None, Callable | None] = (None, None)


def _jit_set_emit_hooks(module_hook: Callable | None, function_hook: Callable | None, /) -> None:
    """Keep the functions that TorchScript calls with what it has compiled. Nothing is compiled, so they are not called."""
    global _emit_hooks
    _emit_hooks = module_hook, function_hook


def _jit_clear_class_registry() -> None:
    """Nothing: TorchScript has compiled no classes."""


def _jit_get_emit_hooks() -> tuple[Callable | None, Callable | None]:
    """The functions that were kept last."""
    return _emit_hooks


def _jit_set_num_profiled_runs(count: int, /) -> int:
    """Keep how often TorchScript should run a function before it compiles it, and return the number before."""
    global _profiled_runs
    before, _profiled_runs = _profiled_runs, count
    return before


def _jit_can_fuse_on_cpu() -> bool:
    """Whether TorchScript would fuse kernels on the CPU: there is none."""
    return False


def _jit_can_fuse_on_gpu() -> bool:
    """Whether TorchScript would fuse kernels on GPUs: there is none."""
    return False


def _jit_override_can_fuse_on_cpu(enabled: bool, /) -> None:
    """Nothing: TorchScript is not compiled."""


def _jit_override_can_fuse_on_gpu(enabled: bool, /) -> None:
    """Nothing: TorchScript is not compiled."""
