"""`vmap`, `grad` and `grad_and_value`."""

from ..compat.missing import module_getattr
from ..func import grad, grad_and_value, vmap

__all__ = ["grad", "grad_and_value", "vmap"]

__getattr__ = module_getattr(__name__)
