"""`autocast` for CUDA and what goes with it, by their old names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import amp
from ...amp.by_device import autocast_of
from ...core.dtype import DType, float16

__all__ = ["autocast", "custom_bwd", "custom_fwd"]

autocast = autocast_of("cuda", float16, __name__)


def custom_fwd(fwd: Callable | None = None, *, cast_inputs: DType | None = None) -> Any:
    """`torch.amp.custom_fwd(..., device_type="cuda")`."""
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable | None = None) -> Any:
    """`torch.amp.custom_bwd(..., device_type="cuda")`."""
    return amp.custom_bwd(bwd, device_type="cuda")
