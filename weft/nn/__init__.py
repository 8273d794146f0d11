"""weft.nn: so far the functions of neural networks; the modules build on autograd, which is not there yet."""

from . import functional

__all__ = ["functional"]
