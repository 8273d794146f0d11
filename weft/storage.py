"""`torch.storage`: the classes of storages."""

from .compat.missing import module_getattr
from .core.storage import Storage as UntypedStorage
from .ops.storage import TypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]

__getattr__ = module_getattr(__name__)
