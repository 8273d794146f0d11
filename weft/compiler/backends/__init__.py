"""Backends of `torch.compile`."""

from ...compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("registry",))
