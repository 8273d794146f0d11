"""`import torch` bound to weft, what a name that weft does not have says, and tracebacks that end at the user's line."""

from weft.compat.binding import install, uninstall
from weft.compat.reports import short_tracebacks

__all__ = ["install", "short_tracebacks", "uninstall"]
