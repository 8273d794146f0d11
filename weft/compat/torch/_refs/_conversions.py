"""`torch._refs._conversions`: conversions to a dtype, as functions."""

from weft.core.tensor import Tensor
from weft.ops.elementwise.float_bits import complex as complex
from weft.ops.elementwise.float_bits import polar as polar

# The methods of tensors: `_conversions.bfloat16(a)`.
_NAMES = "bfloat16 half float double chalf cfloat cdouble bool byte char short int long".split()
globals().update({name: getattr(Tensor, name) for name in _NAMES})
