"""What particular devices can carry out."""

from ....compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("cudagraphs",))
