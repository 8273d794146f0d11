"""weft.cuda.amp: mixed precision on CUDA, by its old names. Without CUDA it does nothing, with a warning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import amp
from ..amp.by_device import autocast_of, grad_scaler_of
from ..compat.missing import module_getattr
from ..core.dtype import DType, float16

autocast = autocast_of("cuda", float16)
GradScaler = grad_scaler_of("cuda")


def custom_fwd(fwd: Callable | None = None, *, cast_inputs: DType | None = None) -> Any:
    """`torch.amp.custom_fwd(..., device_type="cuda")`."""
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable | None = None) -> Any:
    """`torch.amp.custom_bwd(..., device_type="cuda")`."""
    return amp.custom_bwd(bwd, device_type="cuda")


__getattr__ = module_getattr(__name__)
