"""Settings of `torch.save` and `torch.load`."""

from ...compat.missing import module_getattr
from . import config

__all__ = ["config"]

__getattr__ = module_getattr(__name__)
