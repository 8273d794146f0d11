"""How tensors and storages are pickled for other processes."""

from ..core.names import name_public
from ..interop.sharing import reduce_storage, reduce_tensor

__all__ = ["reduce_storage", "reduce_tensor"]

name_public(__name__)
