"""`import torch` bound to weft, and what a name that weft does not have says."""

from weft.compat.binding import install, uninstall

__all__ = ["install", "uninstall"]
