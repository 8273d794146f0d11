"""weft.amp: mixed precision. `autocast` chooses dtypes, `GradScaler` keeps small gradients from vanishing."""

from ..compat.missing import module_getattr
from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

__getattr__ = module_getattr(__name__)
