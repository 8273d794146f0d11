"""weft.nn: so far the functions of neural networks; the modules build on autograd, which is not there yet."""

from ..compat.missing import module_getattr
from . import functional, init

__all__ = ["functional", "init"]

__getattr__ = module_getattr(__name__)
