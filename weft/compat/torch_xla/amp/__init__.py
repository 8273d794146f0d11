"""`torch_xla.amp`: autocast on a device."""

from __future__ import annotations

from typing import Any

from ....amp import autocast_mode
from ....core.device import device as _device
from ....core.dtype import DType

__all__ = ["autocast"]


class autocast(autocast_mode.autocast):  # noqa: N801 (PyTorch/XLA's name)
    """`torch.autocast("xla", ...)`, given the device."""

    def __init__(
        self, device: Any, enabled: bool = True, dtype: DType | None = None, cache_enabled: bool | None = True
    ):
        super().__init__(_device(device).type, dtype, enabled, cache_enabled)
