"""What chooses the weights that are set to 0."""

from ....compat.missing import module_getattr

_MODULES = ("base_sparsifier", "nearly_diagonal_sparsifier", "utils", "weight_norm_sparsifier")
__getattr__ = module_getattr(__name__, _MODULES)
