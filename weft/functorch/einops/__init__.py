"""`functorch.einops`: `rearrange`, which names dims."""

from ...compat.missing import module_getattr
from ...func import rearrange

__all__ = ["rearrange"]

__getattr__ = module_getattr(__name__)
