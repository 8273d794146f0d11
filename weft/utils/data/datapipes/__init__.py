"""Data pipes, `torch.utils.data.datapipes`: datasets that are built from each other."""

from ....compat.missing import module_getattr
from . import iter, map

__all__ = ["iter", "map"]

__getattr__ = module_getattr(__name__, ("_decorator", "_hook_iterator", "dataframe", "datapipe", "utils"))
