"""`__cuda_array_interface__`: zero-copy exchange of arrays on CUDA devices, of version 3 of Numba's description."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core.device import as_device, device
from ..core.dtype import DType, from_numpy_dtype
from ..core.registry import add_member
from ..core.spec import contiguous_stride, make_spec
from ..core.storage import foreign
from ..core.streams import current_id
from ..core.tensor import Tensor, address, make

_LEGACY_STREAM, _THREAD_STREAM = (
    1,
    2,
)  # the protocol's numbers of default streams: that of all threads, and that of each
_BFLOAT16 = "<V2"  # as ml_dtypes and PyTorch write it


def _interface(self: Tensor) -> dict[str, Any]:
    """Where a tensor lies and how, for libraries that compute on CUDA devices.

    Raises: AttributeError for a tensor that is not on a CUDA device, RuntimeError for one that requires grad.
    """
    spec = self.spec
    if not self.is_cuda:
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} "
            "If CUDA data is required use tensor.cuda() to copy tensor to device memory."
        )
    if self.is_sparse:
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on sparse type: {self.type()} "
            "Use Tensor.to_dense() to convert to a dense tensor first."
        )
    if self.requires_grad:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. "
            "If gradients aren't required, use var.detach() to get Variable that doesn't require grad."
        )
    spec.device.backend.finish(current_id(spec.device))  # the description names no stream to wait for
    self._storage.exposed = True
    return {
        "typestr": _BFLOAT16 if spec.dtype is dt.bfloat16 else spec.dtype.numpy.str,
        "shape": tuple(spec.shape),
        "strides": None if spec.is_contiguous else spec.byte_stride,
        "data": (address(self) if spec.numel else 0, False),
        "version": 2,
    }


add_member("__cuda_array_interface__", property(_interface))


def from_interface(array: Any) -> Tensor:
    """A tensor on the memory of an object with `__cuda_array_interface__`, on the current device.

    Raises: ValueError for strides that are negative or no multiples of the size of an element.
    """
    described = array.__cuda_array_interface__
    dtype, shape = _dtype(described["typestr"]), tuple(described["shape"])
    bytes_apart = described.get("strides")
    if bytes_apart is None:
        stride = contiguous_stride(shape)
    elif any(step < 0 or step % dtype.itemsize for step in bytes_apart):
        raise ValueError(f"strides of {tuple(bytes_apart)} bytes are not supported: copy the array first")
    else:
        stride = tuple(step // dtype.itemsize for step in bytes_apart)
    where = as_device("cuda")
    spec = make_spec(shape, stride, dtype, where)
    if described.get("stream") is not None:
        _wait_for(described["stream"], where)
    return make(foreign(described["data"][0], spec.span * dtype.itemsize, array, where=where), 0, spec)


def _wait_for(stream: int, where: device) -> None:
    """Let the current stream wait for a stream of another library, by the protocol's number."""
    backend = where.backend
    if stream == _THREAD_STREAM:  # of which the driver has one for each thread
        backend.synchronize()
    else:
        backend.wait(current_id(where), backend.mark(0 if stream == _LEGACY_STREAM else stream))


def _dtype(name: str) -> DType:
    return dt.bfloat16 if name == _BFLOAT16 else from_numpy_dtype(np.dtype(name))
