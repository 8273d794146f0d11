"""The older names of mixed precision, which tell the device: `torch.cuda.amp`, `torch.cpu.amp`."""

from __future__ import annotations

import warnings

from ..core.dtype import DType
from ..core.warn import user_level
from .autocast_mode import autocast
from .grad_scaler import GradScaler


def _deprecated(device: str, name: str) -> None:
    warnings.warn(
        f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('{device}', args...)` instead.",
        FutureWarning,
        stacklevel=user_level(),
    )


def autocast_of(device: str, default: DType, module: str) -> type[autocast]:
    """The class `torch.DEVICE.amp.autocast`, defined in `module`."""

    class OfDevice(autocast):
        def __init__(self, enabled: bool = True, dtype: DType = default, cache_enabled: bool = True):
            _deprecated(device, "autocast")
            super().__init__(device, dtype, enabled, cache_enabled)

    OfDevice.__doc__ = f'`torch.amp.autocast("{device}", ...)`.'
    OfDevice.__name__ = OfDevice.__qualname__ = "autocast"
    OfDevice.__module__ = module
    return OfDevice


def grad_scaler_of(device: str, module: str) -> type[GradScaler]:
    """The class `torch.DEVICE.amp.GradScaler`, defined in `module`."""

    class OfDevice(GradScaler):
        def __init__(
            self,
            init_scale: float = 65536.0,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            enabled: bool = True,
        ):
            _deprecated(device, "GradScaler")
            super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    OfDevice.__doc__ = f'`torch.amp.GradScaler("{device}", ...)`.'
    OfDevice.__name__ = OfDevice.__qualname__ = "GradScaler"
    OfDevice.__module__ = module
    return OfDevice
