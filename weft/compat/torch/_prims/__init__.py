"""`torch._prims`: the few operations that PyTorch's references consist of. weft's are the primitives of `engine/expr.py`."""

from weft.compat.missing import module_getattr

from .. import _prims_common as utils

__getattr__ = module_getattr(__name__)
