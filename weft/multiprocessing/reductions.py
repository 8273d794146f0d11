"""How tensors and storages are pickled for other processes."""

from ..interop.sharing import reduce_storage, reduce_tensor

__all__ = ["reduce_storage", "reduce_tensor"]
