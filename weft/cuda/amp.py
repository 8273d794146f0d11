"""weft.cuda.amp: mixed precision on CUDA, by its old names. Without CUDA it does nothing, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .. import amp
from ..compat.missing import module_getattr
from ..core.dtype import DType, float16


def _deprecated(old: str, new: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{old}(args...)` is deprecated. Please use `torch.amp.{new}` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(amp.autocast):  # noqa: N801 (PyTorch's name)
    """`torch.amp.autocast("cuda", ...)`."""

    def __init__(self, enabled: bool = True, dtype: DType = float16, cache_enabled: bool = True):
        _deprecated("autocast", "autocast('cuda', args...)")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler("cuda", ...)`."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        _deprecated("GradScaler", "GradScaler('cuda', args...)")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Callable | None = None, *, cast_inputs: DType | None = None) -> Any:
    """`torch.amp.custom_fwd(..., device_type="cuda")`."""
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable | None = None) -> Any:
    """`torch.amp.custom_bwd(..., device_type="cuda")`."""
    return amp.custom_bwd(bwd, device_type="cuda")


__getattr__ = module_getattr(__name__)
