"""Modules as functions of their parameters."""

from weft.func import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]
