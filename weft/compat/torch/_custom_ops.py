"""`torch._custom_ops`, an older name of parts of `torch.library`."""

from weft.compat.missing import module_getattr as _module_getattr
from weft.library import get_ctx as get_ctx

__getattr__ = _module_getattr(__name__)
