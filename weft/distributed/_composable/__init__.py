"""`torch.distributed._composable`: functions that change a module in place, so that its processes work together."""

from ...compat.missing import module_getattr
from .replicate import replicate

__all__ = ["replicate"]

__getattr__ = module_getattr(__name__)
