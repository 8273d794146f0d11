"""`torch._prims`: the few operations that PyTorch's references consist of. weft's are the primitives of `engine/expr.py`."""

from .. import _prims_common as utils
