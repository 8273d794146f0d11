"""`functorch.einops`: `rearrange`, which names dims."""

from weft.func import rearrange

__all__ = ["rearrange"]
