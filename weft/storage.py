"""`torch.storage`: the classes of storages."""

from .core.storage import Storage as UntypedStorage
from .ops.storage import TypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
