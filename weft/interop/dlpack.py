"""DLPack: tensors of other libraries as ours and ours as theirs, on the same memory.

Source: the structures of DLPack 1.1 (dmlc.github.io/dlpack), the protocol of the Python array API standard.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

from ..core import dtype as dt
from ..core.device import CPU, as_device
from ..core.dtype import DType
from ..core.op import public
from ..core.spec import contiguous_stride, spec
from ..core.storage import foreign
from ..core.tensor import Tensor, make

CPU_TYPE = 1  # kDLCPU
VERSION = (1, 1)
READ_ONLY, COPIED = 1, 2  # bits of `flags`


class _Device(Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class _DataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class _DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", _Device),
        ("ndim", c_int32),
        ("dtype", _DataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _Managed(Structure):
    """What a capsule named "dltensor" points to."""

    _fields_ = [("tensor", _DLTensor), ("context", c_void_p), ("deleter", c_void_p)]


class _ManagedVersioned(Structure):
    """What a capsule named "dltensor_versioned" points to."""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _DLTensor),
    ]


# fmt: off
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_SPECIAL_CODES = {
    dt.bfloat16: 4, dt.float8_e4m3fn: 10, dt.float8_e4m3fnuz: 11, dt.float8_e5m2: 12, dt.float8_e5m2fnuz: 13,
}
# fmt: on
_KEYS = {
    dtype: (_SPECIAL_CODES.get(dtype, _CODES[dtype.kind]), 8 * dtype.itemsize) for dtype in dt.DTYPES.values()
}
_DTYPES = {key: dtype for dtype, key in _KEYS.items()}

# ---- The capsules of Python's C interface -------------------------------------------------------------------------------

# Names are compared by their characters, but a capsule keeps only the address: they must live on.
_NAMES = {False: b"dltensor", True: b"dltensor_versioned"}
_USED = {False: b"used_dltensor", True: b"used_dltensor_versioned"}

_destructor_type = ctypes.PYFUNCTYPE(None, c_void_p)
_deleter_type = ctypes.CFUNCTYPE(None, c_void_p)


def _interface(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_new_capsule = _interface("PyCapsule_New", ctypes.py_object, c_void_p, ctypes.c_char_p, c_void_p)
_is_valid = _interface("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_pointer = _interface("PyCapsule_GetPointer", c_void_p, ctypes.py_object, ctypes.c_char_p)
_set_name = _interface("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
# For a capsule that is being destroyed: it must not be counted as an object again.
_is_valid_address = _interface("PyCapsule_IsValid", ctypes.c_int, c_void_p, ctypes.c_char_p)
_pointer_address = _interface("PyCapsule_GetPointer", c_void_p, c_void_p, ctypes.c_char_p)

# ---- Ours to others -------------------------------------------------------------------------------------------------------

# address of a structure -> all that must live until its deleter is called
_lent: dict[int, tuple] = {}


@_deleter_type
def _give_back(address: int) -> None:
    _lent.pop(address, None)


@_destructor_type
def _destroy(capsule: int) -> None:
    """A capsule dies: if nobody took what it points to, that is given back."""
    for name in _NAMES.values():
        if _is_valid_address(capsule, name):
            _lent.pop(_pointer_address(capsule, name), None)


def _export(tensor: Tensor, versioned: bool, copied: bool) -> Any:
    own = tensor.spec
    managed: Any = _ManagedVersioned() if versioned else _Managed()
    sizes = (c_int64 * max(len(own.shape), 1))(*own.shape)
    strides = (c_int64 * max(len(own.shape), 1))(*own.stride)
    described = managed.tensor
    described.data = tensor._storage.ptr + tensor._start if own.numel else None
    described.device.type, described.device.id = CPU_TYPE, 0
    described.ndim = len(own.shape)
    described.dtype.code, described.dtype.bits = _KEYS[own.dtype]
    described.dtype.lanes = 1
    described.shape, described.strides = sizes, strides
    managed.deleter = ctypes.cast(_give_back, c_void_p)
    if versioned:
        managed.major, managed.minor = VERSION
        managed.flags = COPIED if copied else 0
    tensor._storage.exposed = True
    address = ctypes.addressof(managed)
    _lent[address] = (managed, sizes, strides, tensor._storage)
    return _new_capsule(address, _NAMES[versioned], ctypes.cast(_destroy, c_void_p))


@public("method")
def __dlpack__(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A capsule that describes this memory; versioned if `max_version` says that the consumer knows such.

    Raises: BufferError if the memory cannot be shared as it is.
    """
    own = self.spec
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if own.conj:
        raise BufferError("Can't export tensors with the conjugate bit set")
    if own.neg:
        raise BufferError("Can't export tensors with the negative bit set")
    if own.device is not CPU:
        raise BufferError(f"Can't export tensors on device {own.device}")
    if stream is not None:
        raise AssertionError("stream should be None on cpu.")
    if dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__():
        raise BufferError(f"Can't export a tensor on {own.device} to DLPack device {dl_device}")
    tensor = self.clone() if copy else self
    return _export(tensor, max_version is not None and max_version[0] >= 1, bool(copy))


@public("method")
def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    """The DLPack device: (kDLCPU, 0)."""
    if self.spec.device is not CPU:
        raise ValueError(f"Unknown device type {self.spec.device.type} for Dlpack")
    return CPU_TYPE, 0


@public("function")
def to_dlpack(tensor: Tensor, /) -> Any:
    """A capsule that describes the memory of a tensor, to be taken once by `from_dlpack` of any library."""
    return tensor.__dlpack__()


# ---- Others to us ---------------------------------------------------------------------------------------------------------


class _Borrowed:
    """Keeps foreign memory until the last of our storages on it is gone."""

    __slots__ = ("managed",)

    def __init__(self, managed: Any):
        self.managed = managed

    def __del__(self):
        if self.managed.deleter:
            _deleter_type(self.managed.deleter)(ctypes.addressof(self.managed))


@public("function")
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of another library's array, or of a DLPack capsule.

    copy: True always copies, False never does.

    >>> import numpy as np, weft as torch
    >>> a = np.arange(3.0); t = torch.from_dlpack(a); a[0] = 7; t
    tensor([7., 1., 2.], dtype=torch.float64)
    """
    capsule = ext_tensor
    copied = False
    if hasattr(ext_tensor, "__dlpack__"):
        kind = int(ext_tensor.__dlpack_device__()[0])
        if kind != CPU_TYPE:
            raise NotImplementedError(
                f"from_dlpack: arrays on DLPack device {kind}: weft takes those on the CPU"
            )
        capsule, copied = _requested(ext_tensor, copy)
    result = _import(capsule)
    where = None if device is None else as_device(device)
    if copy and not copied:
        return result.clone() if where is None else result.to(where, copy=True)
    return result if where is None else result.to(where)


def _requested(array: Any, copy: bool | None) -> tuple[Any, bool]:
    """The capsule of an array, and whether it is of a copy; older libraries know fewer arguments."""
    try:
        if copy is None:
            return array.__dlpack__(max_version=VERSION), False
        return array.__dlpack__(max_version=VERSION, copy=copy), copy
    except TypeError:
        return array.__dlpack__(), False


def _import(capsule: Any) -> Tensor:
    is_capsule = type(capsule).__name__ == "PyCapsule"
    versioned = is_capsule and bool(_is_valid(capsule, _NAMES[True]))
    name = _NAMES[versioned]
    if not is_capsule or not _is_valid(capsule, name):
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might "
            "have already constructed a tensor from it once."
        )
    kind: Any = _ManagedVersioned if versioned else _Managed
    managed = kind.from_address(_pointer(capsule, name))
    described = managed.tensor
    dtype = _imported_dtype(described.dtype)
    shape = tuple(described.shape[: described.ndim])
    if described.strides:
        stride = tuple(described.strides[: described.ndim])
    else:
        stride = contiguous_stride(shape)
    if any(step < 0 for step in stride):
        raise ValueError(f"from_dlpack: negative strides {stride} are not supported: copy the array first")
    own = spec(shape, stride, dtype)
    _set_name(capsule, _USED[versioned])
    address = (described.data or 0) + described.byte_offset
    return make(foreign(address, own.span * dtype.itemsize, _Borrowed(managed)), 0, own)


def _imported_dtype(given: _DataType) -> DType:
    found = _DTYPES.get((given.code, given.bits))
    if found is None or given.lanes != 1:
        raise BufferError(
            f"Unsupported DLPack type: code {given.code}, {given.bits} bits, {given.lanes} lanes"
        )
    return found
