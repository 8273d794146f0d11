"""weft.cpu.amp: mixed precision on the processor, by its old names."""

from weft.compat.missing import module_getattr

from .autocast_mode import autocast
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]

__getattr__ = module_getattr(__name__)
