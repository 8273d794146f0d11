"""Batch norms without running statistics."""

from weft.compat.missing import module_getattr
from weft.func import replace_all_batch_norm_modules_

__all__ = ["replace_all_batch_norm_modules_"]

__getattr__ = module_getattr(__name__)
