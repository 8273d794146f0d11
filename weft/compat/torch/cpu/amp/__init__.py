"""weft.cpu.amp: mixed precision on the processor, by its old names."""

from .autocast_mode import autocast
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
