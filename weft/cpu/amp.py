"""weft.cpu.amp: mixed precision on the processor, by its old names."""

from ..amp.by_device import autocast_of, grad_scaler_of
from ..compat.missing import module_getattr
from ..core.dtype import bfloat16

__all__ = ["GradScaler", "autocast"]

autocast = autocast_of("cpu", bfloat16)
GradScaler = grad_scaler_of("cpu")

__getattr__ = module_getattr(__name__)
