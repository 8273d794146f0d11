"""DLPack: zero-copy exchange of tensors with other libraries.

Source: the structures of DLPack 1.1 (dmlc.github.io/dlpack), the protocol of the Python array API standard.
"""

from __future__ import annotations

import ctypes
import enum
from ctypes import POINTER, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core.device import CPU, as_device, device
from ..core.dtype import DType
from ..core.public import public
from ..core.spec import contiguous_stride, make_spec
from ..core.storage import foreign
from ..core.streams import current_id
from ..core.tensor import Tensor, address, make
from .numpy import shared_array

VERSION = (1, 1)


class DLDeviceType(enum.IntEnum):
    """The type of the device of memory in DLPack. Tensors are exchanged on the CPU and on CUDA devices."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
    kDLTrn = 18


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
    """The struct to which a capsule named "dltensor" points."""

    _fields_ = [("tensor", _DLTensor), ("context", c_void_p), ("deleter", c_void_p)]


class _ManagedVersioned(Structure):
    """The struct to which a capsule named "dltensor_versioned" points."""

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

# A capsule stores the address of its name, so the names must stay alive.
_NAMES = {False: b"dltensor", True: b"dltensor_versioned"}
_USED = {False: b"used_dltensor", True: b"used_dltensor_versioned"}

_deleter_type = ctypes.CFUNCTYPE(None, c_void_p)


def _interface(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_is_valid = _interface("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_pointer = _interface("PyCapsule_GetPointer", c_void_p, ctypes.py_object, ctypes.c_char_p)
_set_name = _interface("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)

# The type of device of weft's by that of DLPack. Pinned memory is on the CPU.
_TYPES: dict[int, str] = {
    DLDeviceType.kDLCPU: "cpu",
    DLDeviceType.kDLCUDA: "cuda",
    DLDeviceType.kDLCUDAHost: "cpu",
    DLDeviceType.kDLROCM: "cuda",
    DLDeviceType.kDLROCMHost: "cpu",
}
_KINDS = {"cpu": DLDeviceType.kDLCPU, "cuda": DLDeviceType.kDLCUDA}
# Numbers of the array API standard. The default stream is number 1 of CUDA and number 0 of ROCm, where 1 and 2 mean nothing.
_LEGACY_STREAM, _THREAD_STREAM, _ROCM_STREAM, _NO_SYNCHRONIZATION = 1, 2, 0, -1

# ---- From weft to other libraries -------------------------------------------------------------------------------------------------------

# For dtypes that NumPy lacks, let NumPy export an array of the bits.
_BITS = {1: dt.uint8, 2: dt.uint16, 4: dt.uint32}


def _export(tensor: Tensor, versioned: bool, copy: bool | None) -> Any:
    """A capsule made by NumPy. Its destructor must be machine code, because it may run while an exception is active."""
    dtype, where = tensor.spec.dtype, tensor.spec.device
    foreign_to_numpy = dtype in _SPECIAL_CODES or dtype is dt.complex32
    bits = tensor.view(_BITS[dtype.itemsize]) if foreign_to_numpy else tensor
    values = shared_array(bits) if where is CPU else np.asarray(_Addressed(bits.clone() if copy else bits))
    capsule = values.__dlpack__(
        max_version=VERSION if versioned else None, copy=copy if where is CPU else None
    )
    described = _managed(capsule).tensor
    if foreign_to_numpy:
        described.dtype.code, described.dtype.bits = _KEYS[dtype]
    described.device.type, described.device.id = tensor.__dlpack_device__()
    return capsule


class _Addressed:
    """What NumPy makes an array of, whose elements must not be read: the memory is that of another device."""

    def __init__(self, tensor: Tensor):
        spec = tensor.spec
        tensor._storage.exposed = True
        self.tensor = tensor  # which the array keeps alive
        self.__array_interface__ = {
            "version": 3,
            "typestr": spec.dtype.numpy.str,
            "shape": tuple(spec.shape),
            "strides": spec.byte_stride,
            "data": (address(tensor), False),
        }


def _managed(capsule: Any) -> Any:
    """The struct of a capsule that is not consumed yet."""
    versioned = bool(_is_valid(capsule, _NAMES[True]))
    kind: Any = _ManagedVersioned if versioned else _Managed
    return kind.from_address(_pointer(capsule, _NAMES[versioned]))


@public("method")
def __dlpack__(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A capsule that describes this memory. It is versioned if `max_version` says that the consumer supports this.

    Raises: BufferError if DLPack cannot describe the memory.
    """
    spec = self.spec
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if spec.conj:
        raise BufferError("Can't export tensors with the conjugate bit set")
    if spec.neg:
        raise BufferError("Can't export tensors with the negative bit set")
    if spec.device.type not in _KINDS:
        raise BufferError(f"Can't export tensors on device {spec.device}")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if spec.device is CPU:
        if stream not in (None, _NO_SYNCHRONIZATION):
            raise AssertionError("stream should be None on cpu.")
    else:
        _order_before(stream, spec.device)
    if dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__():
        raise BufferError(f"Can't export a tensor on {spec.device} to DLPack device {dl_device}")
    return _export(self, max_version is not None and max_version[0] >= 1, copy)


def _order_before(stream: int | None, where: device) -> None:
    """Let a stream of another library wait for the work that the current stream of a device has been given. None: the default stream."""
    if _is_rocm(where):
        if stream in (_LEGACY_STREAM, _THREAD_STREAM):
            raise AssertionError(f"unsupported stream on ROCm: {stream}.")
    elif stream == _THREAD_STREAM:
        raise BufferError("per-thread default stream is not supported.")
    elif stream == _ROCM_STREAM:
        raise AssertionError(f"unsupported stream on {where.type.upper()}: {stream}.")
    if stream == _NO_SYNCHRONIZATION:
        return
    named = 0 if stream in (None, _LEGACY_STREAM) else stream
    if named != where.backend.stream_handle(current_id(where)):
        where.backend.wait(named, where.backend.mark())
    else:
        where.backend.give_deferred()


@public("method")
def __dlpack_device__(self: Tensor) -> tuple[DLDeviceType, int]:
    """The DLPack device: (kDLCPU, 0), or (kDLCUDA, number), or (kDLROCM, number) for a GPU of AMD."""
    where = self.spec.device
    if where.type not in _KINDS:
        raise ValueError(f"Unknown device type {where.type} for Dlpack")
    return DLDeviceType.kDLROCM if _is_rocm(where) else _KINDS[where.type], where.index or 0


def _is_rocm(where: device) -> bool:
    if where.type != "cuda":
        return False
    from ..devices import cuda  # loaded with the first device

    return cuda.driver() == "hip"


@public("function")
def to_dlpack(tensor: Tensor, /) -> Any:
    """A capsule that describes the memory of a tensor. `from_dlpack` of any library can consume it once."""
    return tensor.__dlpack__()


# ---- From other libraries to weft ---------------------------------------------------------------------------------------------------------


class _Borrowed:
    """Keeps foreign memory alive until the last Storage on it is deleted."""

    __slots__ = ("managed",)

    def __init__(self, managed: Any):
        self.managed = managed

    def __del__(self):
        if self.managed.deleter:
            _deleter_type(self.managed.deleter)(ctypes.addressof(self.managed))


@public("function")
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of an array of another library, or of a DLPack capsule.

    copy: True always copies, False never does.

    >>> import numpy as np, weft as torch
    >>> a = np.arange(3.0); t = torch.from_dlpack(a); a[0] = 7; t
    tensor([7., 1., 2.], dtype=torch.float64)
    """
    capsule = ext_tensor
    copied = False
    if hasattr(ext_tensor, "__dlpack__"):
        kind, index = map(int, ext_tensor.__dlpack_device__())
        if kind not in _TYPES:
            raise NotImplementedError(
                f"from_dlpack: arrays on DLPack device {kind}: weft takes those on the CPU and on CUDA devices"
            )
        stream = (
            {} if _TYPES[kind] == "cpu" else {"stream": _current_stream(as_device(f"{_TYPES[kind]}:{index}"))}
        )
        capsule, copied = _requested(ext_tensor, copy, stream)
    result = _import(capsule)
    where = None if device is None else as_device(device)
    if copy and not copied:
        return result.clone() if where is None else result.to(where, copy=True)
    return result if where is None else result.to(where)


def _current_stream(where: device) -> int:
    """DLPack's number for the stream that a tensor on a device is used by next."""
    default = _ROCM_STREAM if _is_rocm(where) else _LEGACY_STREAM
    return where.backend.stream_handle(current_id(where)) or default


def _requested(array: Any, copy: bool | None, stream: dict[str, int]) -> tuple[Any, bool]:
    """The capsule of an array, and whether it contains a copy. Older libraries support fewer arguments."""
    try:
        if copy is None:
            return array.__dlpack__(max_version=VERSION, **stream), False
        return array.__dlpack__(max_version=VERSION, copy=copy, **stream), copy
    except TypeError:
        return array.__dlpack__(**stream), False


def _import(capsule: Any) -> Tensor:
    is_capsule = type(capsule).__name__ == "PyCapsule"
    versioned = is_capsule and bool(_is_valid(capsule, _NAMES[True]))
    if not is_capsule or not _is_valid(capsule, _NAMES[versioned]):
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might "
            "have already constructed a tensor from it once."
        )
    managed = _managed(capsule)
    described = managed.tensor
    dtype = _imported_dtype(described.dtype)
    shape = tuple(described.shape[: described.ndim])
    if described.strides:
        stride = tuple(described.strides[: described.ndim])
    else:
        stride = contiguous_stride(shape)
    if any(step < 0 for step in stride):
        raise ValueError(f"from_dlpack: negative strides {stride} are not supported: copy the array first")
    name = _TYPES.get(described.device.type)
    if name is None:
        raise BufferError(f"Unsupported DLPack device type {described.device.type}")
    where = CPU if name == "cpu" else device(name, described.device.id)
    _ = where.backend  # raises an error if the device does not exist
    spec = make_spec(shape, stride, dtype, where)
    _set_name(capsule, _USED[versioned])
    start = (described.data or 0) + described.byte_offset
    return make(foreign(start, spec.span * dtype.itemsize, _Borrowed(managed), where=where), 0, spec)


def _imported_dtype(given: _DataType) -> DType:
    found = _DTYPES.get((given.code, given.bits))
    if found is None or given.lanes != 1:
        raise BufferError(
            f"Unsupported DLPack type: code {given.code}, {given.bits} bits, {given.lanes} lanes"
        )
    return found
