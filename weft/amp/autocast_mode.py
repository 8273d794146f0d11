"""The context within which functions choose their own dtype, and the questions about it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ..core.autocast import converted, open_contexts, state
from ..core.device import device, is_present
from ..core.dtype import DType, bfloat16, float16
from ..core.restoring import Restoring
from ..core.warn import user_level

_OTHER_DEVICES = ("cuda", "mps", "xpu", "hpu", "xla", "mtia")


class _Autocast(Restoring):
    """A context in which autocast is what `_inner` says."""

    _outer: Any = None  # the state to return to, and what this was before: from the innermost entry outwards

    def _inner(self) -> tuple[frozenset[str], dict[str, DType]]:
        """The types of devices for which it is on, and the dtypes that products compute in."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        inner = self._inner()
        self._outer = (state.enabled, state.dtypes), self._outer
        state.enabled, state.dtypes = inner
        open_contexts[:0] = (None,)
        return self

    def _restore(self) -> None:
        (state.enabled, state.dtypes), self._outer = self._outer
        del open_contexts[:1]


class autocast(_Autocast):  # noqa: N801 (PyTorch's name)
    """Inside, products (matmul, linear, conv, attention) compute in `dtype`, losses and decompositions in float32.

    A context, or a decorator of a function. dtype: bfloat16 (the default) or float16.
    Raises: RuntimeError for an unknown device type. For a device that is not there it warns and does nothing.

    >>> import weft as torch
    >>> a = torch.ones(2, 2)
    >>> with torch.autocast("cpu"):
    ...     (a @ a).dtype, (a + a).dtype
    (torch.bfloat16, torch.float32)
    """

    def __init__(
        self,
        device_type: str,
        dtype: DType | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device(device_type).type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = dtype or get_autocast_dtype(device_type)
        self._enabled = bool(enabled)
        if not enabled:
            return
        if device_type != "cpu" and not is_present(device_type):
            warnings.warn(
                f"User provided device_type of '{device_type}', but {device_type.upper()} is not available. Disabling",
                UserWarning,
                stacklevel=user_level(),
            )
            self._enabled = False
        elif device_type == "cpu" and self.fast_dtype not in (bfloat16, float16):
            warnings.warn(
                f"In CPU autocast, but the target dtype {self.fast_dtype} is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtype of torch.bfloat16, torch.float16 currently.",
                UserWarning,
                stacklevel=user_level(),
            )
            self._enabled = False

    def _inner(self) -> tuple[frozenset[str], dict[str, DType]]:
        return _switched(self.device, self._enabled), {**state.dtypes, self.device: self.fast_dtype}

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return decorated


def _switched(device_type: str, enabled: bool) -> frozenset[str]:
    """The types of devices for which autocast is on once it is switched for this one."""
    return state.enabled | {device_type} if enabled else state.enabled - {device_type}


class autocast_of_now(_Autocast):  # noqa: N801 (as `autocast`)
    """A context with what autocast is, for all devices, when the object is made."""

    def __init__(self) -> None:
        self._now = state.enabled, state.dtypes

    def _inner(self) -> tuple[frozenset[str], dict[str, DType]]:
        return self._now


def custom_fwd(
    fwd: Callable | None = None, *, device_type: str, cast_inputs: DType | None = None
) -> Callable:
    """Decorator of a `Function.forward`: within autocast for that device, it runs with inputs of dtype `cast_inputs`.

    Then autocast is off inside; without `cast_inputs` it is on as around the call, and on again in `custom_bwd`.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        around = is_autocast_enabled(device_type)
        args[0]._dtype = get_autocast_dtype(device_type)
        args[0]._fwd_used_autocast = around and cast_inputs is None
        if cast_inputs is None or not around:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*converted(args, cast_inputs), **converted(kwargs, cast_inputs))

    return decorated


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """Decorator of a `Function.backward`: it runs with autocast as in the forward of `custom_fwd`."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorated


def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast` knows that type of device."""
    return device_type == "cpu" or device_type in _OTHER_DEVICES


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on now, for that type of device.

    >>> import weft as torch
    >>> with torch.autocast("cpu"):
    ...     torch.is_autocast_enabled("cpu")
    True
    """
    return device_type in state.enabled


def get_autocast_dtype(device_type: str) -> DType:
    """The dtype that products compute in within autocast, unless it is given another one."""
    return state.dtype(device_type)


def is_autocast_cpu_enabled() -> bool:
    """`is_autocast_enabled("cpu")`, by its old name."""
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> DType:
    """`get_autocast_dtype("cpu")`, by its old name."""
    return state.dtype("cpu")


def get_autocast_gpu_dtype() -> DType:
    """`get_autocast_dtype("cuda")`, by its old name."""
    return state.dtype("cuda")


# ---- The switches behind the context, as libraries set them --------------------------------------------------------------

_cache_enabled = True
_nesting = 0


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Switch autocast on or off for a type of device; with one argument, for CUDA.

    >>> import weft as torch
    >>> torch.set_autocast_enabled("cpu", True)
    >>> torch.is_autocast_enabled("cpu")
    True
    >>> torch.set_autocast_enabled("cpu", False)
    """
    name, wanted = ("cuda", device_type) if isinstance(device_type, bool) else (device_type, bool(enabled))
    if wanted == is_autocast_enabled(name):
        return
    state.enabled = _switched(name, wanted)
    if wanted:
        open_contexts[:0] = (None,)
    else:
        del open_contexts[:1]


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """The dtype that products compute in within autocast, for a type of device."""
    state.dtypes = {**state.dtypes, device_type: dtype}


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """`set_autocast_enabled("cpu", enabled)`, by its old name."""
    set_autocast_enabled("cpu", enabled)


def set_autocast_cpu_dtype(dtype: DType) -> None:
    """`set_autocast_dtype("cpu", dtype)`, by its old name."""
    set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: DType) -> None:
    """`set_autocast_dtype("cuda", dtype)`, by its old name."""
    set_autocast_dtype("cuda", dtype)


def is_autocast_ipu_enabled() -> bool:
    """Whether autocast is on for Graphcore's devices: no."""
    return False


def is_autocast_xla_enabled() -> bool:
    """Whether autocast is on for XLA's devices: no."""
    return False


def get_autocast_ipu_dtype() -> DType:
    """`get_autocast_dtype("ipu")`, by its old name."""
    return state.dtype("ipu")


def get_autocast_xla_dtype() -> DType:
    """`get_autocast_dtype("xla")`, by its old name."""
    return state.dtype("xla")


def set_autocast_ipu_enabled(enabled: bool) -> None:
    """Ignored, because the device is not there."""


def set_autocast_xla_enabled(enabled: bool) -> None:
    """Ignored, because the device is not there."""


def set_autocast_ipu_dtype(dtype: DType) -> None:
    """`set_autocast_dtype("ipu", dtype)`, by its old name."""
    set_autocast_dtype("ipu", dtype)


def set_autocast_xla_dtype(dtype: DType) -> None:
    """`set_autocast_dtype("xla", dtype)`, by its old name."""
    set_autocast_dtype("xla", dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether converted weights would be kept. weft converts a weight at each use, so the switch has no effect."""
    return _cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set the switch that `is_autocast_cache_enabled` reads."""
    global _cache_enabled
    _cache_enabled = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget converted weights. weft keeps none."""


def autocast_increment_nesting() -> int:
    """Count one more context, and return how many there are."""
    global _nesting
    _nesting += 1
    return _nesting


def autocast_decrement_nesting() -> int:
    """Count one context fewer, and return how many there are."""
    global _nesting
    _nesting -= 1
    return _nesting


def autocast_decorator(autocast_instance: autocast, func: Callable) -> Callable:
    """`func`, called within the context."""
    return autocast_instance(func)
