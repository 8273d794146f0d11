"""Copies and conversions: clone, contiguous, copy_, to and its short forms."""

from __future__ import annotations

from typing import Any

from ..core import dtype as dt
from ..core.device import as_device, device
from ..core.dtype import DType
from ..core.iteration import broadcast_shapes, memory_order
from ..core.layout import MemoryFormat, channels_last, channels_last_3d, contiguous_format, preserve_format, strides_for
from ..core.op import check_inplace, needs_recording, public, record, set_copy
from ..core.spec import Spec, contiguous_spec, spec, strides_in_order
from ..core.tensor import Tensor, empty, make
from ..families.map import COPY


def copy_values(target: Tensor, source: Tensor) -> None:
    """Write `source`, broadcast and converted, into `target`; across devices too."""
    if target.spec.numel == 0:
        return
    if source.spec.device is target.spec.device:
        COPY.write(target, source)
        return
    COPY.write(target, _transfer(source, target.spec.device))


set_copy(copy_values)


def _transfer(source: Tensor, where: device) -> Tensor:
    """A dense copy on another device."""
    if where.type == "meta":
        return empty(_dense(source.spec).like(device=where))
    if source.spec.device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    raise NotImplementedError(f"copy from {source.spec.device} to {where}")


def _dense(own: Spec) -> Spec:
    """The spec itself if it is dense and plain, else a contiguous one of its shape."""
    if own.is_dense and not own.conj and not own.neg:
        return own
    return contiguous_spec(own.shape, own.dtype, own.device)


def formatted_spec(own: Spec, memory_format: MemoryFormat, dtype: DType, where: device) -> Spec:
    """The spec of a copy of a tensor in a memory format; `preserve_format` keeps dense strides."""
    if memory_format is preserve_format:
        if own.is_dense:
            return spec(own.shape, own.stride, dtype, where)
        order = memory_order(own.shape, [own.stride])
        return spec(own.shape, strides_in_order(own.shape, order), dtype, where)
    return spec(own.shape, strides_for(own.shape, memory_format), dtype, where)


@public("function method")
def clone(input: Tensor, *, memory_format: MemoryFormat = preserve_format) -> Tensor:
    """A copy with memory of its own.

    >>> import weft as torch
    >>> a = torch.zeros(2); b = a.clone(); b[0] = 1.0; a
    tensor([0., 0.])
    """
    own = input.spec
    return copy_to(input, formatted_spec(own, memory_format, own.dtype, own.device))


def copy_to(input: Tensor, wanted: Spec) -> Tensor:
    result = empty(wanted)
    recorded = needs_recording((input,))
    if wanted.numel:
        copy_values(result, input.detach() if recorded else input)
    return record(COPY, result, (input,)) if recorded else result


@public("method")
def contiguous(input: Tensor, memory_format: MemoryFormat = contiguous_format) -> Tensor:
    """The tensor itself if its memory already has this format, else a copy that has."""
    if is_contiguous(input, memory_format):
        return input
    return clone(input, memory_format=memory_format)


@public("method")
def is_contiguous(input: Tensor, memory_format: MemoryFormat = contiguous_format) -> bool:
    """Whether the elements lie in memory in the order of `memory_format`, without holes."""
    own = input.spec
    if memory_format is contiguous_format:
        return own.is_contiguous
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    wanted = {channels_last: 4, channels_last_3d: 5}[memory_format]
    if len(own.shape) != wanted:
        return False
    expected = strides_for(own.shape, memory_format)
    return all(size == 1 or a == b for size, a, b in zip(own.shape, own.stride, expected, strict=True))


@public("method")
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Write `src`, broadcast to this shape and converted to this dtype, into this tensor."""
    if not isinstance(src, Tensor):
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
    check_inplace(self, "copy")
    if broadcast_shapes("copy_", self.spec.shape, src.spec.shape) != self.spec.shape:
        raise RuntimeError(
            f"output with shape {list(self.spec.shape)} doesn't match the broadcast shape {list(src.spec.shape)}"
        )
    copy_values(self, src)
    return self


@public("method")
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor with another dtype or device: itself if nothing changes and `copy` is not asked for.

    Forms: to(dtype), to(device), to(device, dtype), to(other); then non_blocking, copy, memory_format.

    >>> import weft as torch
    >>> torch.tensor([1.9, -1.9]).to(torch.int32)
    tensor([ 1, -1], dtype=torch.int32)
    """
    where, dtype, copy, memory_format = _parse_to(self, args, kwargs)
    own = self.spec
    where = own.device if where is None else where
    dtype = dtype or own.dtype
    same_format = memory_format is preserve_format or is_contiguous(self, memory_format)
    if not copy and dtype is own.dtype and where is own.device and same_format:
        return self
    return copy_to(self, formatted_spec(own, memory_format, dtype, where))


def _parse_to(self: Tensor, args: tuple, kwargs: dict) -> tuple[device | None, DType | None, bool, MemoryFormat]:
    where = dtype = None
    rest = list(args)
    if rest and isinstance(rest[0], Tensor) or "other" in kwargs:
        other = rest.pop(0) if rest else kwargs.pop("other")
        where, dtype = other.spec.device, other.spec.dtype
    elif rest and isinstance(rest[0], DType):
        dtype = rest.pop(0)
    elif rest:
        where = None if rest[0] is None else as_device(rest[0])
        rest.pop(0)
        if rest and isinstance(rest[0], (DType, type(None))):
            dtype = rest.pop(0)
    for name in ("non_blocking", "copy"):
        if rest and name not in kwargs:
            kwargs[name] = rest.pop(0)
    unknown = set(kwargs) - {"device", "dtype", "non_blocking", "copy", "memory_format"}
    if rest or unknown:
        raise TypeError(f"to() received an invalid combination of arguments: {args} {kwargs}")
    if kwargs.get("device") is not None:
        where = as_device(kwargs["device"])
    dtype = kwargs.get("dtype") or dtype
    if dtype is not None and not isinstance(dtype, DType):
        raise TypeError(f"to(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    return where, dtype, bool(kwargs.get("copy", False)), kwargs.get("memory_format") or preserve_format


def _short_form(name: str, dtype: DType) -> None:
    def method(self: Tensor, memory_format: MemoryFormat = preserve_format) -> Tensor:
        return to(self, dtype, memory_format=memory_format)

    method.__doc__ = f"The tensor as {dtype!r}: itself if it is that already."
    method.__name__ = name
    setattr(Tensor, name, method)


# fmt: off
for _name, _dtype in {
    "float": dt.float32, "double": dt.float64, "half": dt.float16, "bfloat16": dt.bfloat16,
    "int": dt.int32, "long": dt.int64, "short": dt.int16, "char": dt.int8, "byte": dt.uint8, "bool": dt.bool_,
    "cfloat": dt.complex64, "cdouble": dt.complex128, "chalf": dt.complex32,
}.items():
    _short_form(_name, _dtype)
# fmt: on


@public("method")
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor with the dtype and device of `other`."""
    return to(self, other)


@public("method")
def cpu(self: Tensor, memory_format: MemoryFormat = preserve_format) -> Tensor:
    """The tensor on the CPU: itself if it is there."""
    return to(self, as_device("cpu"), memory_format=memory_format)


@public("method")
def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format=preserve_format) -> Tensor:
    """The tensor on a CUDA device: itself if it is there."""
    return to(self, as_device("cuda" if device is None else device), memory_format=memory_format)


@public("method")
def detach(self: Tensor) -> Tensor:
    """The same memory, outside of autograd."""
    return make(self._storage, self._start, self.spec)
