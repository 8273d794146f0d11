"""`functorch.einops`: `rearrange`, which names dims."""

from weft.compat.missing import module_getattr
from weft.func import rearrange

__all__ = ["rearrange"]

__getattr__ = module_getattr(__name__)
