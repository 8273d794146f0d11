"""`torch.storage`: the classes of storages."""

import io
from typing import Any

from .compat.missing import module_getattr
from .core.storage import Storage as UntypedStorage
from .ops.tensor.storage import TypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


def _load_from_bytes(b: bytes) -> Any:
    """The storage in the bytes of an archive: what pickles that PyTorch's tensors write by `pickle.dump` call.

    The bytes hold a storage and nothing else, so they are read without running code.
    """
    from .serialization import load  # above this module

    return load(io.BytesIO(b), weights_only=True)


__getattr__ = module_getattr(__name__)
