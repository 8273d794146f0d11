"""`vmap`, and the type of its `in_dims`."""

from ..compat.missing import module_getattr
from ..func import vmap

__all__ = ["in_dims_t", "out_dims_t", "vmap"]

in_dims_t = int | tuple
out_dims_t = int | tuple[int, ...]

__getattr__ = module_getattr(__name__)
