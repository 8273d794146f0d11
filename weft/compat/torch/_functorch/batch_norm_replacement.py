"""Batch norms without running statistics."""

from weft.func import replace_all_batch_norm_modules_

__all__ = ["replace_all_batch_norm_modules_"]
