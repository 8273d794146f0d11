"""Copies and conversions: clone, contiguous, copy_, to and its short forms."""

from __future__ import annotations

from typing import Any

from ...core import dtype as dt
from ...core.arguments import no_form
from ...core.copy_on_write import can_share, lazy_copy
from ...core.device import CPU, as_device, as_named_device, device
from ...core.dispatch import watchers
from ...core.dtype import PYTHON_DTYPES, DType
from ...core.entry import entry, in_front_of
from ...core.grad_mode import mode
from ...core.iteration import broadcast_shapes, memory_order
from ...core.layout import (
    MemoryFormat,
    channels_last,
    channels_last_3d,
    contiguous_format,
    preserve_format,
    strides_for,
    suggested_format,
)
from ...core.names import named
from ...core.nearest import note_nearest
from ...core.op import Op
from ...core.outputs import check_inplace, set_copy
from ...core.plans import PlanCache
from ...core.public import public
from ...core.recording import needs_recording, record, tape
from ...core.registry import add_member
from ...core.spec import Spec, contiguous_spec, make_spec, strides_in_order
from ...core.storage import Storage
from ...core.tensor import Tensor, empty, make
from ...core.warn import warn_once
from ...families.array_op import send, to_device
from ...families.custom_vjp import custom_vjp
from ...families.map import COPY, NUMBERS, Plan, storage_of


def copy_values(target: Tensor, source: Tensor) -> None:
    """Write `source`, broadcast and converted, into `target`; across devices too."""
    if target.spec.numel == 0 and not needs_recording((target, source)):
        return
    if source.spec.dtype.is_complex and target.spec.dtype.kind in "uif":
        warn_once("Casting complex values to real discards the imaginary part")
    if source.spec.device is target.spec.device:
        COPY.write(target, source)
        return
    COPY.write(target, _transfer(source, target.spec.device))


set_copy(copy_values)


def _transfer(source: Tensor, where: device) -> Tensor:
    """Return a dense copy on another device."""
    if where.type == "meta":
        return empty(_dense(source.spec).like(device=where))
    if source.spec.device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    result = to_device(source, where)
    if needs_recording((source,)):
        return record(TO_COPY, result, (source,))
    return result


def _dense(spec: Spec) -> Spec:
    """The spec itself if it is dense and plain, else a contiguous one of its shape."""
    if spec.is_dense and not spec.conj and not spec.neg:
        return spec
    return contiguous_spec(spec.shape, spec.dtype, spec.device)


def formatted_spec(spec: Spec, memory_format: MemoryFormat, dtype: DType, where: device) -> Spec:
    """The spec of a copy of a tensor in a memory format; `preserve_format` keeps dense strides."""
    return _formats[spec, memory_format, dtype, where]


def _format(spec: Spec, memory_format: MemoryFormat | None, dtype: DType, where: device) -> Spec:
    if memory_format is None or memory_format is preserve_format:
        if spec.is_dense:
            return make_spec(spec.shape, spec.stride, dtype, where)
        order = memory_order(spec.shape, [spec.stride])
        return make_spec(spec.shape, strides_in_order(spec.shape, order), dtype, where)
    return make_spec(spec.shape, strides_for(spec.shape, memory_format), dtype, where)


_formats = PlanCache(_format)


@public("function method")
def clone(input: Tensor, *, memory_format: MemoryFormat | None = preserve_format) -> Tensor:
    """A copy with memory of its own.

    >>> import weft as torch
    >>> a = torch.zeros(2); b = a.clone(); b[0] = 1.0; a
    tensor([0., 0.])
    """
    spec = input.spec
    return copy_to(input, _formats[spec, memory_format, spec.dtype, spec.device], COPY)


@custom_vjp(lambda ct, out, a: ct)
def _lazy_clone(input: Tensor) -> Tensor:
    return make(lazy_copy(input._storage), input._byte_offset, input.spec)


@public("function method", name="_lazy_clone")
def lazy_clone(input: Tensor) -> Tensor:
    """A copy with the same strides that shares the memory of `input` until one of the two is written.

    Memory that code outside of weft may write is copied at once.
    """
    return _lazy_clone(input) if can_share(input._storage) else clone(input)


TO_COPY = Op("to_copy", COPY.derivative)


class CopyTo(Op):
    """Copies into new memory with given metadata; a call is recorded as a step of `op`."""

    def run(self, input: Tensor, wanted: Spec, op: Any = TO_COPY) -> Tensor:
        plan = _copy_plans[input.spec, wanted]
        if plan is None:
            result = empty(wanted)
            copy_values(result, detach(input))
        else:
            result = make(storage_of(plan, input), 0, wanted)
        return result if input._autograd is None or not mode.enabled else record(op, result, (input,))


copy_to = CopyTo("to_copy", COPY.derivative)


def plan_of_copy(spec: Spec, wanted: Spec) -> Plan | None:
    """The plan of a copy within one device; None sends it the long way."""
    if spec.device is not wanted.device or spec.dtype.is_complex and not wanted.dtype.is_complex:
        return None
    return COPY.write_plans[wanted, spec]


def is_same_memory(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same elements at the same places, so that a copy of one into the other changes nothing."""
    return a._storage is b._storage and a._byte_offset == b._byte_offset and a.spec is b.spec


def _overwrite_plan(target: Spec, source: Spec) -> Plan | None:
    """The plan of a copy into an existing tensor of the same shape; None sends it the long way."""
    return None if target.repeats or target.shape != source.shape else plan_of_copy(source, target)


_copy_plans = PlanCache(plan_of_copy)
_overwrite_plans = PlanCache(_overwrite_plan)


@public("method")
def contiguous(input: Tensor, memory_format: MemoryFormat = contiguous_format) -> Tensor:
    """The tensor itself if its memory already has this format, else a copy that has."""
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    if is_contiguous(input, memory_format):
        return input
    return clone(input, memory_format=memory_format)


@public("method")
def is_contiguous(input: Tensor, memory_format: MemoryFormat = contiguous_format) -> bool:
    """Whether the elements lie in memory in the order of `memory_format`, without holes."""
    spec = input.spec
    if memory_format is contiguous_format:
        return spec.is_contiguous
    if memory_format is preserve_format:
        return True
    if not isinstance(memory_format, MemoryFormat):
        raise TypeError(
            f"is_contiguous(): argument 'memory_format' must be torch.memory_format, not {type(memory_format).__name__}"
        )
    wanted = {channels_last: 4, channels_last_3d: 5}[memory_format]
    if len(spec.shape) != wanted:
        return False
    expected = strides_for(spec.shape, memory_format)
    return all(size == 1 or a == b for size, a, b in zip(spec.shape, spec.stride, expected, strict=True))


def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Write `src`, a tensor or number, broadcast to this shape and converted to this dtype, into this tensor.

    non_blocking: the host does not wait for a copy from pinned memory to a GPU. Until it is done the program must not change `src`.
    """
    if non_blocking and type(src) is Tensor:
        sent = send(src, self.spec.device)
        src = src if sent is None else sent
    if (
        type(src) is Tensor is type(self)
        and self._storage is not src._storage
        and not watchers
        and (
            not (recorded := (self._autograd is not None or src._autograd is not None) and mode.enabled)
            or tape.can_overwrite(self)
        )
    ):
        plan = _overwrite_plans[self.spec, src.spec]
        if plan is not None:
            # No variable holds the storage, because its references are counted when the write is recorded.
            self._storage.version += 1  # first, because it may raise
            plan.entry(
                self._storage.ptr + self._byte_offset,
                src._storage.ptr + src._byte_offset,
                plan.meta,
                plan.count,
            )
            if recorded:
                tape.record_overwrite(COPY.as_write, self, src)
            return self
    return _copy_entry(self, src)


def _copied(self: Tensor, src: Any) -> Tensor:
    if isinstance(src, NUMBERS):
        return self.fill_(src)
    if not isinstance(src, Tensor):
        kind = type(src)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {name}")
    if needs_recording((self, src)):  # PyTorch raises the error about leaves before the error about shapes
        tape.check_write(self)
    elif is_same_memory(self, src):
        self._storage.version += 1
        return self
    check_inplace(self, "copy")
    if broadcast_shapes("copy_", self.spec.shape, src.spec.shape) != self.spec.shape:
        raise RuntimeError(
            f"output with shape {list(self.spec.shape)} doesn't match the broadcast shape {list(src.spec.shape)}"
        )
    copy_values(self, src)
    return self


_copy_entry = entry(_copied, "copy_")
add_member("copy_", in_front_of(_copy_entry)(copy_))


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor with another dtype or device: itself if nothing changes and `copy` is not asked for.

    Forms: to(dtype), to(device), to(device, dtype), to(other); then non_blocking, copy, memory_format. With `non_blocking` the host does not
    wait for a copy from pinned memory to a GPU. Until it is done the program must not change the tensor.

    >>> import weft as torch
    >>> torch.tensor([1.9, -1.9]).to(torch.int32)
    tensor([ 1, -1], dtype=torch.int32)
    """
    spec = self.spec
    if not kwargs and len(args) == 1 and args[0] is spec.device:
        return self
    if not kwargs and len(args) == 1 and type(args[0]) is DType:  # the commonest form
        if args[0] is spec.dtype:
            return self
        return copy_to(self, formatted_spec(spec, preserve_format, args[0], spec.device))
    return _to_entry(self, *args, **kwargs)


def _moved(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    spec = self.spec
    wanted_device, wanted_dtype, copy, memory_format = parse_to(args, kwargs)
    where = wanted_device or spec.device
    dtype = wanted_dtype or spec.dtype
    same_format = memory_format is preserve_format or memory_format is suggested_format(spec)
    if not copy and dtype is spec.dtype and where is spec.device and same_format:
        return self
    wanted = formatted_spec(spec, memory_format, dtype, where)
    if is_non_blocking(args, kwargs) and (sent := send(self, where)) is not None:
        return sent if sent.spec is wanted else copy_to(sent, wanted)
    return copy_to(self, wanted)


_to_entry = entry(_moved, "to")
add_member("to", in_front_of(_to_entry)(to))


_TO_PARAMETERS = {"device", "dtype", "non_blocking", "copy", "memory_format", "other"}


def parse_to(
    args: tuple, kwargs: dict, copies: bool = True
) -> tuple[device | None, DType | None, bool, MemoryFormat]:
    """(device, dtype, copy, memory_format) of any form of `to`; None where the call states nothing.

    Raises: RuntimeError for the argument `copy` unless `copies`.
    """
    positional = list(args)
    options = dict(kwargs)
    if positional and isinstance(positional[0], Tensor):
        names = ["other"]
    elif positional and _is_dtype(positional[0]):
        names = ["dtype"]
    elif positional and (positional[0] is None or isinstance(positional[0], (str, int, device))):
        names = ["device", "dtype"]
    else:
        names = []
    for name in (*names, "non_blocking", "copy"):
        if positional and name not in options:
            options[name] = positional.pop(0)
    given = [options.get("non_blocking", False), options.get("copy", False)]
    dtype = options.get("dtype")
    if positional or options.keys() - _TO_PARAMETERS or any(type(value) is not bool for value in given):
        raise _invalid_to(args, kwargs)
    if (
        dtype is not None
        and not _is_dtype(dtype)
        or options.get("memory_format", None)
        and not _is_format(options)
    ):
        raise _invalid_to(args, kwargs)
    if not copies and "copy" in options:
        raise RuntimeError(".to() does not accept copy argument")
    other = options.get("other")
    if isinstance(other, Tensor):
        options = {"device": other.spec.device, "dtype": other.spec.dtype, **options}
        dtype = options["dtype"]
    named = None if options.get("device") is None else as_named_device(options["device"])
    return (
        named and named.place,
        PYTHON_DTYPES.get(dtype, dtype),
        # PyTorch copies for "cpu:0" even if the tensor is on "cpu", because it compares the names of the devices.
        given[1] or (named is not None and named.index is not None and named is not named.place),
        options.get("memory_format") or preserve_format,
    )


def is_non_blocking(args: tuple, kwargs: dict) -> bool:
    """Whether a call of any form of `to` says that the host need not wait."""
    flags = [value for value in args if type(value) is bool]
    return kwargs.get("non_blocking", flags[0] if flags else False)


def _is_dtype(value: Any) -> bool:
    return isinstance(value, DType) or isinstance(value, type) and value in PYTHON_DTYPES


def _is_format(options: dict) -> bool:
    return isinstance(options["memory_format"], MemoryFormat)


def _invalid_to(args: tuple, kwargs: dict) -> TypeError:
    error = no_form(
        "to",
        args,
        kwargs,
        "device, dtype, non_blocking, copy, *, memory_format",
        "dtype, non_blocking, copy, *, memory_format",
        "other tensor, non_blocking, copy, *, memory_format",
    )
    for keyword in kwargs.keys() - _TO_PARAMETERS:
        note_nearest(error, keyword, _TO_PARAMETERS)
    return error


def _short_form(name: str, dtype: DType) -> None:
    @named(name, dtype=dtype)
    def method(self: Tensor, memory_format: MemoryFormat = preserve_format) -> Tensor:
        """The tensor as {dtype!r}: itself if it is that already."""
        if memory_format is preserve_format:
            return to(self, dtype)
        return to(self, dtype, memory_format=memory_format)

    add_member(name, method)


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
    """Return the tensor with the dtype and device of `other`."""
    return to(self, other)


@public("method")
def cpu(self: Tensor, memory_format: MemoryFormat = preserve_format) -> Tensor:
    """The tensor on the CPU: itself if it is there."""
    return to(self, as_device("cpu"), memory_format=memory_format)


@public("method")
def cuda(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format=preserve_format
) -> Tensor:
    """The tensor on a CUDA device: itself if it is there."""
    return to(
        self,
        as_device("cuda" if device is None else device),
        non_blocking=non_blocking,
        memory_format=memory_format,
    )


@public("method")
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """A copy in memory from which an accelerator copies directly; the tensor itself if it is there.

    Raises: RuntimeError without an accelerator, and for a tensor that is not on the CPU.
    """
    spec = self.spec
    if spec.device is CPU and self._storage.is_pinned():
        return self
    room = Storage(spec.span * spec.dtype.itemsize, device=spec.device)
    pinned = make(room.pin_memory(), 0, make_spec(spec.shape, spec.stride, spec.dtype, CPU))
    copy_values(pinned, self)
    return pinned


@public("method")
def xpu(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format=preserve_format
) -> Tensor:
    """The tensor on a GPU of Intel's: itself if it is there."""
    return to(
        self,
        as_device("xpu" if device is None else device),
        non_blocking=non_blocking,
        memory_format=memory_format,
    )


@public("method")
def detach(self: Tensor) -> Tensor:
    """Return a tensor on the same memory, outside of autograd."""
    storage = self._storage
    return make(storage if type(storage) is Storage else storage.detached(), self._byte_offset, self.spec)
