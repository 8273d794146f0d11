"""The bridge to NumPy: arrays on a tensor's memory, without copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dtype import complex32, numpy_dtype
from ..core.op import public
from ..core.tensor import Tensor
from ..families.library import resolved


class _Exporter:
    """Describes a tensor's memory to NumPy, and keeps its storage alive as the array's base."""

    __slots__ = ("storage", "__array_interface__")

    def __init__(self, tensor: Tensor):
        own = tensor.spec
        self.storage = tensor._storage
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(own.shape),
            "strides": own.byte_stride,
            "typestr": f"|V{own.dtype.itemsize}" if own.dtype.itemsize > 1 else "|u1",
            "data": (tensor._storage.ptr + tensor._start, False),
        }


@public("method")
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """An array on the memory of this tensor: writes through either are seen by both.

    `force` also accepts tensors that require grad, are elsewhere, or have a pending conjugation; it may copy.
    bfloat16 and float8 give arrays of ml_dtypes; complex32, which NumPy lacks, gives a complex64 copy.

    Raises: RuntimeError or TypeError if sharing is not possible; the message says what to call first.

    >>> import weft as torch
    >>> t = torch.zeros(2); a = t.numpy(); a[0] = 1; t
    tensor([1., 0.])
    """
    if force:
        self = self.detach().cpu().resolve_conj().resolve_neg()
    own = self.spec
    if self.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if own.device.type != "cpu":
        raise TypeError(
            f"can't convert {own.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    for pending, name in ((own.conj, "conj"), (own.neg, "neg")):
        if pending:
            kind = {"conj": "conjugate", "neg": "negative"}[name]
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {kind} bit set. Use tensor.resolve_{name}().numpy() instead."
            )
    return shared_array(resolved(self) if own.dtype is complex32 else self)


def shared_array(tensor: Tensor) -> np.ndarray:
    """An array on the tensor's memory that keeps it alive."""
    own = tensor.spec
    tensor._storage.exposed = True
    if own.numel == 0:
        return np.empty(own.shape, numpy_dtype(own.dtype))
    return np.asarray(_Exporter(tensor)).view(numpy_dtype(own.dtype))


@public("method")
def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """What np.asarray(tensor) gives: the shared array, converted or copied only if asked for."""
    values = self.numpy()
    if dtype is not None and values.dtype != dtype:
        if copy is False:
            raise ValueError(f"converting {values.dtype} to {dtype} needs a copy, which copy=False forbids")
        return values.astype(dtype)
    return values.copy() if copy else values
