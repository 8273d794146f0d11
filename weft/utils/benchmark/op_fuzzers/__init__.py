"""Random operands for kinds of operations."""

from ....compat.missing import module_getattr

__all__ = ["binary", "spectral", "unary"]

__getattr__ = module_getattr(__name__, ("binary", "spectral", "unary"))
