"""`torch._subclasses`: kinds of tensors that PyTorch's tools use."""

from weft.compat.missing import module_getattr
from weft.library.fake_tensor import (
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)

__all__ = ["DynamicOutputShapeException", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException"]

__getattr__ = module_getattr(__name__, ("fake_utils",), {"CrossRefFakeMode": "fake_utils"})
