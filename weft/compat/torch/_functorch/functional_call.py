"""Modules as functions of their parameters."""

from weft.compat.missing import module_getattr
from weft.func import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]

__getattr__ = module_getattr(__name__)
