"""Evenly spaced numbers: arange, linspace, logspace, range. The same bits as PyTorch's vector loops give."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import device as places
from ...core import dtype as dt
from ...core.device import as_device, device
from ...core.dtype import (
    FLOAT,
    INTEGER,
    LEGACY_NAMES,
    REDUCED_FLOATS,
    DType,
    compute_type,
    float32,
    float64,
    get_default_dtype,
    int64,
)
from ...core.limits import check_number, overflow
from ...core.outputs import check_inplace, check_unrecorded, resize_out
from ...core.plans import PlanCache
from ...core.public import public
from ...core.spec import contiguous_spec
from ...core.symbols import as_float
from ...core.tensor import Tensor, address, make
from ...core.tensor import empty as empty_of
from ...core.warn import warn_once
from ...engine.convert import convert
from ...engine.expr import floor, fma, select
from ...families.array_op import on_device
from ...families.map import Map, Types
from ..assembly.copying import copy_values
from ..assembly.filling import fill_
from ..elementwise.float_bits import complex as complex_of
from ..elementwise.powers import pow as power
from .creation import (
    check_dtype,
    check_layout,
    check_out_options,
    check_storage_size,
    number_argument,
    with_grad,
)

# Kernels read the position of an element from a tensor 0, 1, 2, ..., block by block.
BLOCK = 1 << 15


@functools.cache
def _counter(where: device) -> Tensor:
    return on_device(np.arange(BLOCK, dtype=np.int64), where)


# ---- Rows: (position in the block, position of the block, *numbers) -> one element ---------------------------------------


@functools.cache
def _steps(dtype: DType, by_vectors: bool) -> Map:
    """start + step * index; `by_vectors`, from the rounded first element of each vector of 32 bytes."""
    if dtype.category < FLOAT:
        return Map(
            "arange", lambda _: Types(int64, dtype), lambda i, first, start, step: start + (i + first) * step
        )
    lanes = 32 // dtype.itemsize
    compute = compute_type(dtype) if dtype in REDUCED_FLOATS else float64

    def element(i, first, start, step):
        if not by_vectors:
            return fma(step, first + i, start)
        begin = floor(i * (1 / lanes)) * float(lanes)
        base = convert(convert(fma(step, first + begin, start), dtype), compute)
        # PyTorch's vectors of half precision round the products.
        return base + step * (i - begin) if dtype in REDUCED_FLOATS else fma(step, i - begin, base)

    return Map("arange", lambda _: Types(compute, dtype), element)


@functools.cache
def _between(dtype: DType) -> Map:
    """From `start` up in the first half, from `end` down in the second, so that both are met exactly."""
    compute = compute_type(dtype) if dtype.category == FLOAT else float64

    def narrow(value):
        return convert(convert(value, dtype), compute)

    def element(i, first, start, end, step, half, last):
        index = first + i
        if dtype in REDUCED_FLOATS:  # PyTorch's half precision rounds after every operation
            up, down = start + narrow(step * narrow(index)), end - narrow(step * narrow(last - index))
        else:
            up, down = fma(step, index, start), fma(-step, last - index, end)
        return select(index < half, up, down)

    return Map("linspace", lambda _: Types(compute, dtype), element)


class _Range:
    """A new 1-d tensor of `length` elements, and the launches that fill it."""

    __slots__ = ("spec", "allocate", "launches", "counter")

    def __init__(self, length: int, dtype: DType, where: device, parts: list[tuple[Map, int, int, tuple]]):
        """`parts`: (row, first element, end, types of the numbers that the row takes)."""
        self.spec = check_storage_size(contiguous_spec((length,), dtype, where))
        self.allocate = where.backend.allocator(self.spec.nbytes)
        self.launches = []
        self.counter = _counter(where)
        if length > BLOCK:
            self.allocate()  # fails before there is a launch for each of too many blocks
        if where.backend.has_memory:
            for row, begin, end, kinds in parts:
                if end - begin > BLOCK:
                    for first in range(begin, end, BLOCK):
                        self.launches.append(self._launch(row, first, min(BLOCK, end - first), kinds))
                elif end > begin:
                    # The values of the bounds are not needed, so that one template serves many lengths.
                    self.launches.append(self._launch(row, begin, end - begin, kinds))

    def _launch(self, row: Map, first: int, length: int, kinds: tuple):
        spec = self.spec
        target = contiguous_spec((length,), spec.dtype, spec.device)
        plan = row.write_plans[(target, contiguous_spec((length,), int64, spec.device), *kinds)]
        begin = first if kinds[0] is int else as_float(first)
        return plan.entry, first * spec.dtype.itemsize, begin, plan.meta, plan.count, plan.keepalive

    def __call__(self, *numbers: Any) -> Tensor:
        storage = self.allocate()
        counter = address(self.counter)
        for entry, offset, first, meta, count, _ in self.launches:
            entry(storage.ptr + offset, counter, first, *numbers, meta, count)
        return make(storage, 0, self.spec)


def _stepped(length: int, dtype: DType, where: device) -> _Range:
    # PyTorch's loop takes two vectors per step, and computes the elements that remain one by one.
    if dtype.category < FLOAT:
        return _stepped_singly(length, dtype, where)
    cut = length - length % (64 // dtype.itemsize)
    kinds = (float, float, float)
    parts = [(_steps(dtype, True), 0, cut, kinds), (_steps(dtype, False), cut, length, kinds)]
    return _Range(length, dtype, where, parts)


def _stepped_singly(length: int, dtype: DType, where: device) -> _Range:
    kind = int if dtype.category < FLOAT else float
    return _Range(length, dtype, where, [(_steps(dtype, False), 0, length, (kind, kind, kind))])


_stepped_plans = PlanCache(_stepped, with_sizes=True)
_between_plans = PlanCache(
    lambda length, dtype, where: _Range(length, dtype, where, [(_between(dtype), 0, length, (float,) * 6)]),
    with_sizes=True,
)


# ---- arange and range ---------------------------------------------------------------------------------------------------


@public("function")
def arange(
    *bounds: Any,
    start: Any = None,
    end: Any = None,
    step: Any = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    names: Any = None,
) -> Tensor:
    """Numbers from `start` (0 unless given) to before `end`, `step` (1 unless given) apart.

    Forms: arange(end), arange(start, end), arange(start, end, step). dtype: int64 if all are integers, else the
    default float.

    Raises: RuntimeError if `step` is zero or leads away from `end`.

    >>> import weft as torch
    >>> torch.arange(4), torch.arange(1, 2.5, 0.5)
    (tensor([0, 1, 2, 3]), tensor([1.0000, 1.5000, 2.0000]))
    """
    if (
        len(bounds) == 1
        and type(bounds[0]) is int
        and 0 <= bounds[0] < 2**40
        and dtype is device is out is start is None
    ):
        if end is step is layout is None:  # the commonest form
            result = _stepped_plans[bounds[0], int64, places._default](0, 1)
            return with_grad(result, requires_grad, names)
    start, end, step = _bounds("arange", bounds, start, end, step)
    dtype = _range_dtype("arange", dtype, out, layout, device, (start, end, step))
    length = _length(start, end, step, dtype)
    if dtype.category < FLOAT:
        start, step = int(start), int(step)
    if dtype.category != INTEGER and dtype.category != FLOAT:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{LEGACY_NAMES[dtype]}'")
    where = places._default if device is None else as_device(device)
    wide = float32 if dtype in dt.FLOAT8 else dtype
    return _finish(_stepped_plans[length, wide, where](start, step).to(dtype), out, requires_grad, names)


def _bounds(name: str, bounds: tuple, start: Any, end: Any, step: Any) -> tuple[Any, Any, Any]:
    """start, end and step as Python numbers."""
    values = list(bounds)
    if len(values) == 1 and start is None and end is None and step is None:
        start, end = 0, values[0]
    else:
        start = values.pop(0) if values and start is None else 0 if start is None and not step else start
        end = values.pop(0) if values and end is None else end
        step = values.pop(0) if values and step is None else step
        if values or start is None or end is None:
            raise TypeError(
                f"{name}() received an invalid combination of arguments - got {bounds}: expected end, or start and end, "
                "or start, end and step"
            )
    numbers = []
    for position, (value, argument) in enumerate(
        ((start, "start"), (end, "end"), (1 if step is None else step, "step"))
    ):
        if type(value) is not int and type(value) is not float:
            value = number_argument(value, name, argument, min(position, len(bounds) - 1) + 1)
        if isinstance(value, complex):
            raise overflow(dt.float64)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            if 0 <= value < 2**64:
                raise overflow(dt.int64)
            raise OverflowError("int too big to convert")
        numbers.append(value)
    return tuple(numbers)  # type: ignore[return-value]


def _range_dtype(
    name: str, dtype: Any, out: Tensor | None, layout: Any, device: Any, numbers: tuple
) -> DType:
    dtype = check_dtype(dtype, name)
    check_layout(layout)
    if out is not None:
        check_out_options(out, dtype, layout, device)
        return out.spec.dtype
    if dtype is not None:
        return dtype
    return (
        get_default_dtype()
        if name == "range" or any(isinstance(number, float) for number in numbers)
        else int64
    )


def _length(start: Any, end: Any, step: Any, dtype: DType) -> int:
    """How many numbers there are from `start` to before `end`."""
    _check_range(start, end, step)
    if dtype is int64:
        if int(step) == 0:
            raise ValueError(f"step must be nonzero, but {step} as an int64 is zero")
        start, end, step = int(start), int(end), int(step)
        length = -((start - end) // step)
        reach = end - start + step - (1 if step > 0 else -1)
        if not -(2**63) <= reach < 2**63:
            raise RuntimeError(f"invalid size, possible overflow? arange from {start} to {end} by {step}")
    else:
        size = math.ceil((float(end) - float(start)) / float(step))
        length = size
    if not 0 <= length < 2**63:
        raise RuntimeError(f"invalid size, possible overflow? arange from {start} to {end} by {step}")
    return length


def _check_range(start: Any, end: Any, step: Any) -> None:
    if step == 0 or step != step:  # NaN is neither positive nor negative
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * math.copysign(1, step) < 0:
        raise RuntimeError(
            f"upper bound and lower bound inconsistent with step sign: from {start} to {end} by {step}"
        )


@public("function", name="range")
def inclusive_range(
    *bounds: Any,
    start: Any = None,
    end: Any = None,
    step: Any = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    names: Any = None,
) -> Tensor:
    """Numbers from `start` to `end`, which is included; deprecated in favour of `arange`."""
    if len(bounds) + (start is not None) + (end is not None) < 2:
        raise TypeError('range() missing 1 required positional arguments: "end"')
    warn_once(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    start, end, step = _bounds("range", bounds, start, end, step)
    dtype = _range_dtype("range", dtype, out, layout, device, (start, end, step))
    _check_range(start, end, step)
    length = math.floor((float(end) - float(start)) / float(step)) + 1
    if dtype.category < FLOAT:
        start, step = int(start), int(step)
    return _finish(_stepped_singly(length, dtype, as_device(device))(start, step), out, requires_grad, names)


def _finish(result: Tensor, out: Tensor | None, requires_grad: bool, names: Any) -> Tensor:
    if out is None:
        return with_grad(result, requires_grad, names)
    check_unrecorded("arange", (out,))
    if out.spec.numel != result.spec.numel:
        resize_out(out, result.spec.shape, "arange")
    check_inplace(out, "out")
    copy_values(out, result.reshape(out.spec.shape))
    return out


# ---- linspace and logspace ----------------------------------------------------------------------------------------------


@public("function")
def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    names: Any = None,
) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, at equal distances.

    >>> import weft as torch
    >>> torch.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    start, end = _ends("linspace", start, end)
    dtype = _space_dtype("linspace", dtype, out, layout, device, start, end)
    return _finish(
        _space(start, end, _count("linspace", steps), dtype, as_device(device)), out, requires_grad, names
    )


@public("function")
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    names: Any = None,
) -> Tensor:
    """`base` to the power of `steps` numbers from `start` to `end`, at equal distances.

    >>> import weft as torch
    >>> torch.logspace(0, 3, 4)
    tensor([   1.,   10.,  100., 1000.])
    """
    start, end = _ends("logspace", start, end)
    base = number_argument(base, "logspace", "base", 4)
    dtype = _space_dtype("logspace", dtype, out, layout, device, start, end)
    for number in (start, end):
        check_number(number, dtype)
    if dtype.category < FLOAT:
        start, end = int(start), int(end)
    # Powers are rounded once, to the dtype that is asked for.
    wide = compute_type(dtype) if dtype.category >= FLOAT else float64
    exponents = _space(start, end, _count("logspace", steps), wide, as_device(device))
    result = power(fill_(empty_of(contiguous_spec((), wide, as_device(device))), base), exponents)
    return _finish(result.to(dtype), out, requires_grad, names)


def _ends(name: str, start: Any, end: Any) -> tuple[Any, Any]:
    tensors = [each for each in (start, end) if isinstance(each, Tensor)]
    if any(each.spec.shape for each in tensors):
        dims = [each.dim() if isinstance(each, Tensor) else 0 for each in (start, end)]
        raise RuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got start with {dims[0]} dimension(s) and "
            f"end with {dims[1]} dimension(s)."
        )
    return number_argument(start, name, "start", 1), number_argument(end, name, "end", 2)


def _count(name: str, steps: Any) -> int:
    if isinstance(steps, (bool, float)) or not hasattr(steps, "__index__"):
        raise TypeError(f"{name}(): argument 'steps' (position 3) must be int, not {type(steps).__name__}")
    count = operator.index(steps)
    if count < 0:
        raise RuntimeError(f"number of steps must be non-negative, got {count}")
    return count


def _space_dtype(
    name: str, dtype: Any, out: Tensor | None, layout: Any, device: Any, start: Any, end: Any
) -> DType:
    dtype = check_dtype(dtype, name)
    check_layout(layout)
    inferred = get_default_dtype()
    if isinstance(start, complex) or isinstance(end, complex):
        inferred = dt.default_complex()
        if dtype is not None and not dtype.is_complex:
            raise RuntimeError(
                f"torch.{name}(): inferred dtype {inferred} can't be safely cast to passed dtype {LEGACY_NAMES[dtype]}"
            )
    if out is not None:
        check_out_options(out, dtype, layout, device)
        return out.spec.dtype
    dtype = dtype or inferred
    if dtype is dt.bool_:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{LEGACY_NAMES[dtype]}'")
    return dtype


def _space(start: Any, end: Any, count: int, dtype: DType, where: device) -> Tensor:
    if dtype.is_complex:
        start, end, part = complex(start), complex(end), dtype.to_real()
        real = _space(start.real, end.real, count, part, where)
        return complex_of(real, _space(start.imag, end.imag, count, part, where))
    if dtype in dt.FLOAT8:
        return _space(start, end, count, float32, where).to(dtype)
    start, end = (_as_dtype(number, dtype) for number in (start, end))
    # Each step of the arithmetic rounds.
    narrow: Callable = dtype.numpy.type if dtype.category == FLOAT else float
    # A step of -0.0 leaves the sign of -0.0.
    step = float((narrow(end) - narrow(start)) / narrow(count - 1)) if count > 1 else -0.0
    half = count // 2 if count > 1 else 1
    return _between_plans[count, dtype, where](start, end, step, float(half), float(count - 1))


def _as_dtype(number: Any, dtype: DType) -> float:
    """The number as the dtype holds it.

    Raises: RuntimeError if it cannot.
    """
    check_number(number, dtype)
    return float(int(number) if dtype.category < FLOAT else dtype.numpy.type(number))
