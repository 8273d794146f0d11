"""The bridge to NumPy: arrays that share memory with tensors, and tensors that share memory with arrays."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..core.dtype import FLOAT, DType, bfloat16, complex32, from_numpy_dtype
from ..core.grad_mode import is_grad_enabled
from ..core.plans import PlanCache
from ..core.public import public
from ..core.registry import add_member
from ..core.spec import Spec, contiguous_spec, make_spec
from ..core.storage import foreign
from ..core.tensor import Tensor, make
from ..core.warn import user_level
from ..families.array_op import memory_array, resolved

# ---- Tensor -> array -------------------------------------------------------------------------------------------------


@public("method")
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """An array that shares memory with this tensor.

    `force` also accepts tensors that require grad, are on another device, or have pending conjugation; it may copy.
    bfloat16 and float8 give arrays of ml_dtypes dtypes. complex32, which NumPy lacks, gives a complex64 copy.

    Raises: RuntimeError or TypeError if sharing is not possible; the message names the method to call first.

    >>> import weft as torch
    >>> t = torch.zeros(2); a = t.numpy(); a[0] = 1; t
    tensor([1., 0.])
    """
    if force:
        self = self.detach().cpu().resolve_conj().resolve_neg()
    spec = self.spec
    if self.requires_grad and is_grad_enabled():
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    if spec.device.type != "cpu":
        raise TypeError(
            f"can't convert {spec.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    for pending, name in ((spec.conj, "conj"), (spec.neg, "neg")):
        if pending:
            kind = {"conj": "conjugate", "neg": "negative"}[name]
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {kind} bit set. Use tensor.resolve_{name}().numpy() instead."
            )
    if spec.dtype is complex32:
        return shared_array(resolved(self))
    self._storage.lend()
    return memory_array(self)


def shared_array(tensor: Tensor) -> np.ndarray:
    """An array that shares memory with the tensor and keeps the memory alive."""
    tensor._storage.exposed = True
    return memory_array(tensor)


@public("method")
def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """The result of `np.asarray(tensor)`: an array that shares memory, unless NumPy asks for a dtype or a copy."""
    values = self.numpy()
    if dtype is not None and values.dtype != dtype:
        if copy is False:
            raise ValueError(f"converting {values.dtype} to {dtype} needs a copy, which copy=False forbids")
        return values.astype(dtype)
    return values.copy() if copy else values


@public("method")
def __array_wrap__(
    self: Tensor, array: np.ndarray, context: Any = None, return_scalar: bool = False
) -> Tensor:
    """The result of a NumPy function of this tensor, as a tensor."""
    if array.dtype == bool:
        # As in PyTorch, the results of NumPy's logical functions become uint8 tensors, because older versions had no bool tensors.
        array = array.astype("uint8")
    return from_numpy(np.asarray(array))


def __buffer__(self: Tensor, flags: int) -> memoryview:
    """The result of `memoryview(tensor)` from Python 3.12 on. Buffers support only some dtypes."""
    values = self.numpy()
    if values.dtype.kind not in "biufc" or self.spec.dtype is bfloat16:
        raise BufferError(f"the buffer protocol has no format for {self.spec.dtype}")
    return memoryview(values)  # type: ignore[arg-type]  # a buffer for the checker from Python 3.12 on


add_member("__buffer__", __buffer__)

# ---- Array or buffer -> tensor ---------------------------------------------------------------------------------------


@public("function")
def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor that shares memory with an array.

    Raises: TypeError for other objects and dtypes, ValueError for negative strides.

    >>> import numpy as np, weft as torch
    >>> a = np.zeros(2); t = torch.from_numpy(a); a[0] = 1; t
    tensor([1., 0.], dtype=torch.float64)
    """
    if not isinstance(ndarray, np.ndarray):
        kind = type(ndarray)
        in_python = (
            kind.__flags__ & 1 << 9
        )  # Py_TPFLAGS_HEAPTYPE: C code prints the name of such a class without its module
        named_alone = in_python or kind.__module__ == "builtins"
        name = kind.__name__ if named_alone else f"{kind.__module__}.{kind.__name__}"
        raise TypeError(f"expected np.ndarray (got {name})")
    if not ndarray.flags.writeable:
        _warn_read_only("NumPy array")
    return tensor_on(ndarray)


def tensor_on(values: np.ndarray) -> Tensor:
    """A tensor that shares memory with an array, which may be read-only.

    Raises: TypeError for unsupported dtypes, ValueError for unsupported strides and byte orders.
    """
    spec = _shared_specs[values.dtype, values.shape, values.strides]
    address = values.__array_interface__["data"][0]
    return make(foreign(address, spec.span * spec.dtype.itemsize, values), 0, spec)


def _shared_spec(dtype: np.dtype, shape: tuple[int, ...], strides: tuple[int, ...]) -> Spec:
    ours = from_numpy_dtype(dtype)
    if not dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported."
        )
    if any(step < 0 for step in strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with array.copy().) "
            f"Strides: {strides}"
        )
    if any(step % dtype.itemsize for step in strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the "
            f"memory. Strides: {strides}, element size: {dtype.itemsize}"
        )
    return make_spec(shape, tuple(step // dtype.itemsize for step in strides), ours)


_shared_specs = PlanCache(_shared_spec)


def _warn_read_only(what: str) -> None:
    warnings.warn(
        f"The given {what} is not writable, and PyTorch does not support non-writable tensors. This means writing to "
        "this tensor will result in undefined behavior. You may want to copy the array to protect its data or make it "
        "writable before converting it to a tensor.",
        UserWarning,
        stacklevel=user_level(),
    )


def has_buffer(value: Any) -> bool:
    """Whether `value` supports the buffer protocol."""
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


@public("function")
def frombuffer(
    buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A 1-d tensor that shares memory with a buffer (bytearray, mmap, array). A negative `count` means all elements.

    Units: `offset` in bytes.

    Raises: ValueError if the buffer is too short or not a whole number of elements.

    >>> import weft as torch
    >>> torch.frombuffer(bytearray(b"abc"), dtype=torch.uint8, offset=1)
    tensor([98, 99], dtype=torch.uint8)
    """
    if not has_buffer(buffer):
        raise ValueError("object does not implement Python buffer protocol.")
    if not isinstance(dtype, DType):
        raise TypeError(f"frombuffer(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    try:
        memory = np.frombuffer(buffer, np.uint8) if memoryview(buffer).nbytes else np.empty(0, np.uint8)
    except BufferError as error:  # the buffer is not contiguous
        raise RuntimeError(f"could not retrieve buffer from object: {error}") from None
    length = memory.nbytes
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count < 0:
        if (length - offset) % dtype.itemsize:
            raise ValueError(
                f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element "
                f"size ({dtype.itemsize})"
            )
        count = (length - offset) // dtype.itemsize
    if offset + count * dtype.itemsize > length:
        raise ValueError(
            f"requested buffer length ({count} * {dtype.itemsize} bytes) after offset ({offset} bytes) must not be "
            f"greater than actual buffer length ({length} bytes)"
        )
    if not memory.flags.writeable:
        _warn_read_only("buffer")
    storage = foreign(memory.ctypes.data, length, memory)
    result = make(storage, offset, contiguous_spec((count,), dtype))
    if requires_grad and dtype.category < FLOAT:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return result.requires_grad_() if requires_grad else result
