"""Ops with a bool mask (where, masked_fill, masked_select, masked_scatter), and nonzero, which lists the true elements."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.batched import is_sample
from ...core.derivative import Derivative
from ...core.device import CPU, device
from ...core.dtype import LEGACY_NAMES, DType, bool_, cpp_name, int64, uint8
from ...core.iteration import broadcast_shapes
from ...core.limits import check_number
from ...core.op import Op
from ...core.outputs import check_inplace, write_out
from ...core.promotion import common_dtype
from ...core.public import add_inplace, public
from ...core.recording import needs_recording, record_inplace
from ...core.spec import Spec, contiguous_spec, make_spec
from ...core.tensor import Tensor, empty, make
from ...core.warn import user_level
from ...engine import scalar as s
from ...families.array_op import array, check_values, from_array, on_device
from ...families.calls import is_operand, shortcut
from ...families.custom_vjp import CustomVjp
from ...families.indexed import (
    count_true,
    mask_changed,
    pack,
    pack_into,
    packed_storage,
    plain,
    spread,
    unshared,
    vector_spec,
)
from ...families.map import COPY, Map, Types, apart, normalise, same_dtype, spec_or_type
from ..assembly.filling import fill_
from ..assembly.joining import cat
from ..creation.from_data import as_tensor
from ..creation.ranges import arange


class _Chosen(Map):
    """The first operand is a condition and takes no part in promotion."""

    def _types(self, operands: Sequence[Any]) -> Types:
        return super()._types(operands[1:])


def _is_true(condition: Any) -> Any:
    return s.ne(condition, 0)


def _filled(a, mask, value):
    return s.where(_is_true(mask), value, a)


_filled_back = (
    lambda ct, out, a, mask, value: MASKED_FILL(ct, mask, 0),
    None,
    lambda ct, out, a, mask, value: WHERE(mask, ct, 0),
)

WHERE: Map = _Chosen(
    "where",
    same_dtype,
    lambda condition, a, b: s.where(_is_true(condition), a, b),
    derivative=(
        None,
        lambda ct, out, condition, a, b: WHERE(condition, ct, 0),
        lambda ct, out, condition, a, b: WHERE(condition, 0, ct),
    ),
)
MASKED_FILL: Map = Map(
    "masked_fill", same_dtype, _filled, deciding=1, contiguous=True, derivative=_filled_back
)
# The same ops under PyTorch's names for filling with a tensor and for `tensor[mask] = value`.
MASKED_FILL_TENSOR = Map(
    "masked_fill.tensor",
    same_dtype,
    _filled,
    deciding=1,
    contiguous=True,
    derivative=_filled_back,
    node_name="MaskedFillBackward1",
)
MASKED_PUT = Map(
    "index_put.mask", same_dtype, _filled, deciding=1, derivative=_filled_back, node_name="IndexPutBackward0"
)


def scalar_view(value: Tensor) -> Tensor:
    """Return a tensor of one element as a 0-dim tensor."""
    spec = value.spec
    return (
        value
        if not spec.shape
        else make(
            value._storage,
            value._byte_offset,
            make_spec((), (), spec.dtype, spec.device, spec.conj, spec.neg),
        )
    )


@public("function")
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """The elements of `input` where `condition` is true, else those of `other`; all three are broadcast.

    `where(condition)` is `nonzero(condition, as_tuple=True)`.

    >>> import weft as torch
    >>> torch.where(torch.tensor([True, False]), 1.0, torch.tensor([5.0, 6.0]))
    tensor([1., 6.])
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if not isinstance(condition, Tensor) or not is_operand(input) or not is_operand(other):
        given = ", ".join(type(value).__name__ for value in (condition, input, other) if value is not None)
        raise TypeError(
            f"where() received an invalid combination of arguments - got ({given}), but expected (Tensor condition, "
            "Tensor or Number input, Tensor or Number other) or (Tensor condition)"
        )
    if condition.spec.dtype is uint8:
        warnings.warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version "
            "of PyTorch. Use a boolean condition instead.",
            UserWarning,
            stacklevel=user_level(),
        )
    elif condition.spec.dtype is not bool_:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{LEGACY_NAMES[condition.spec.dtype]}"
        )
    for value in (input, other):
        if type(value) is not Tensor and not (type(value) in (int, float) and -100 <= value <= 100):
            input, other = _fitting(input, other)  # the most frequent numbers fit every dtype
            break
    return WHERE(condition, input, other) if out is None else WHERE.into(out, condition, input, other)


shortcut(where, WHERE, 3, lambda condition, *values: getattr(condition, "dtype", None) is bool_, small=True)


def _fitting(*operands: Any) -> Sequence[Any]:
    """Replace numbers of NumPy by Python's. Raises: RuntimeError for numbers that do not fit the common dtype."""
    values = normalise("where", operands)
    dtype = common_dtype(map(spec_or_type, values))
    for value in values:
        if not isinstance(value, Tensor):
            check_number(value, dtype)
    return values


@public("method", name="where")
def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The elements of this tensor where `condition` is true, else those of `other`."""
    return where(condition, self, other)


# ---- masked_fill ----------------------------------------------------------------------------------------------------


@public("function method")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy of `input` with `value`, a number or a 0-dim tensor, where the bool `mask` is true.

    >>> import weft as torch
    >>> t = torch.tensor([1.0, -2.0])
    >>> t.masked_fill(t < 0, 0)
    tensor([1., 0.])
    """
    op = MASKED_FILL_TENSOR if isinstance(value, Tensor) else MASKED_FILL
    return op(input, mask, _fill_value(input, mask, value))


def masked_fill_(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Write `value`, a number or a 0-dim tensor, where the bool `mask` is true."""
    value = _fill_value(self, mask, value)
    if self.spec.overlaps:
        return self.index_put_((mask.expand(self.spec.shape),), as_tensor(value, dtype=self.spec.dtype))
    op = MASKED_FILL_TENSOR if isinstance(value, Tensor) else MASKED_FILL
    return op.inplace(self, mask, apart(value, self))


add_inplace("masked_fill", masked_fill_)


def _fill_value(input: Tensor, mask: Tensor, value: Any) -> Any:
    if not isinstance(mask, Tensor) or not is_operand(value):
        raise TypeError(
            "masked_fill() received an invalid combination of arguments - got "
            f"({type(mask).__name__}, {type(value).__name__}), but expected (Tensor mask, Tensor or Number value)"
        )
    if mask.spec.dtype is not bool_:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {cpp_name(mask.spec.dtype)}"
        )
    if isinstance(value, Tensor):
        if value.spec.shape:
            raise RuntimeError(
                f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension(s)."
            )
        check_read(value, input.spec.dtype)
        return value
    check_number(value, input.spec.dtype)
    return value


def check_read(value: Tensor, dtype: DType) -> None:
    """Raises: RuntimeError if the only element of `value`, which PyTorch reads as a number, does not fit `dtype`."""
    if value.spec.dtype is not dtype and value.spec.device.backend.has_memory:
        check_number(value.item(), dtype)


# ---- masked_select and masked_scatter ---------------------------------------------------------------------------------


def _broadcast(input: Tensor, mask: Tensor, name: str) -> tuple[Tensor, Tensor]:
    sizes = broadcast_shapes(name, input.spec.shape, mask.spec.shape)
    return input.expand(sizes), mask.expand(sizes)


@public("function method", out="apart")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements of `input` where the bool `mask` is true, in one dimension; both are broadcast.

    >>> import weft as torch
    >>> t = torch.tensor([1.0, -2.0, 3.0])
    >>> t.masked_select(t > 0)
    tensor([1., 3.])
    """
    if mask.spec.dtype is not bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    return MASKED_SELECT(*_broadcast(input, mask, "masked_select"))


def _selection(name: str) -> CustomVjp:
    """The op (input, mask), which have one shape: the elements where the mask is true."""

    def select(input: Tensor, mask: Tensor) -> Tensor:
        check_values(name, mask)
        return pack(input, mask)

    def cotangent(ct, out, a, mask, *, specs):
        # By the method, because `vmap` loops over public functions without a batching rule.
        return ct.new_zeros(specs[0].shape).masked_scatter_(mask, ct)

    return CustomVjp(select, cotangent, None, name=name)


MASKED_SELECT = _selection("masked_select")
MASKED_INDEX = _selection("index")  # `tensor[mask]`


def masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Write the first elements of `source`, in order, where the bool `mask` (broadcast to this shape) is true.

    Raises: RuntimeError if `source` has too few elements; nothing is written then.
    """
    if mask.spec.dtype is not bool_:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {LEGACY_NAMES[mask.spec.dtype]}"
        )
    if self.spec.dtype is not source.spec.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{LEGACY_NAMES[self.spec.dtype]} and {LEGACY_NAMES[source.spec.dtype]}"
        )
    check_inplace(self, "masked_scatter")
    if needs_recording((self, source)):
        return record_inplace(
            MASKED_SCATTER, self, (self, mask, source), (), masked_scatter_, self, mask, source
        )
    if any(type(each) is not Tensor and is_sample(each) for each in (self, mask, source)):
        return _scatter_samples(self, mask, source)
    mask = unshared(mask.expand(self.spec.shape), self)
    if not self.spec.device.backend.has_memory:
        return self
    count = count_true(mask)
    if source.spec.numel < count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    if self.spec.conj or self.spec.neg:
        return self.copy_(masked_scatter_(plain(self), mask, source))
    spread(self, mask, plain(unshared(source, self)).contiguous(), count)
    return self


def _scatter_samples(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`masked_scatter_` for samples that `vmap` maps over, of which each may have another number of true elements."""
    if not source.spec.numel:
        return self
    flat = mask.expand(self.spec.shape).reshape(-1)
    places = (flat.cumsum(0) - 1).clamp(0, source.spec.numel - 1)
    values = source.reshape(-1).gather(0, places).reshape(self.spec.shape)
    return self.copy_(WHERE(mask, values, self))


def _packed(ct, out, a, mask, source, *, specs):
    """The cotangent of the source. Elements of the source that were not written get zeros."""
    spec = specs[2]
    if not spec.device.backend.has_memory:  # the mask has no values, but the shape of the cotangent is known
        return ct.new_zeros(spec.shape)
    chosen = MASKED_SELECT(ct, mask.expand(ct.shape))
    unread = ct.new_zeros((spec.numel - chosen.spec.numel,))
    return cat([chosen, unread]).reshape(spec.shape)


MASKED_SCATTER = Op(
    "masked_scatter", Derivative(lambda ct, out, a, mask, source: MASKED_FILL(ct, mask, 0), None, _packed)
)
add_inplace("masked_scatter", masked_scatter_)


def contiguous_copy(input: Tensor) -> Tensor:
    """A contiguous copy, which the caller may write into."""
    copied = input.contiguous()
    return copied.clone() if copied is input else copied


@public("function method")
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy of `input` (broadcast with `mask`) with the elements of `source`, in order, where `mask` is true."""
    wide, mask = _broadcast(input, mask, "masked_scatter")
    return masked_scatter_(contiguous_copy(wide), mask, source)


# ---- nonzero -------------------------------------------------------------------------------------------------------


def as_mask(input: Tensor) -> Tensor:
    """Which elements are not 0."""
    spec = input.spec
    if spec.dtype is bool_:
        return input
    return COPY.write(empty(contiguous_spec(spec.shape, bool_, spec.device)), input.detach())


def columns_of(mask: Tensor) -> list[Tensor]:
    """Where a bool tensor is true: the positions in each dim, in the order of the elements."""
    matrix = _positions(mask)
    return [matrix[:, dim] for dim in range(len(mask.spec.shape))]


def _positions(mask: Tensor) -> Tensor:
    """One row for each element that is true; a column, which is contiguous, for each dim."""
    check_values("nonzero", mask)
    sizes, where = mask.spec.shape, mask.spec.device
    if len(sizes) == 1:
        by_numpy = where is CPU and sizes[0] > COUNTED
        found = _true_positions(mask) if by_numpy else pack(counting(sizes[0], where), mask)
        return make(found._storage, 0, _positions_spec(found.spec.numel, 1, where))
    count = count_true(mask)
    storage = packed_storage(contiguous_spec((), int64, where), count * len(sizes))
    for dim, size in enumerate(sizes):
        steps = counting(size, where)
        along = tuple(int(other == dim) for other in range(len(sizes)))
        positions = make(steps._storage, steps._byte_offset, make_spec(sizes, along, int64, where))
        packed = pack_into(storage.ptr + 8 * count * dim, count, positions, mask)
        if packed != count:
            raise mask_changed(count, packed)
    return make(storage, 0, _positions_spec(count, len(sizes), where))


def _true_positions(mask: Tensor) -> Tensor:
    """Where a bool tensor of one dimension on the CPU is true."""
    return from_array(np.flatnonzero(array(mask)))


# Interned specs are weak references. This cache keeps them alive, because making one costs more than finding a few elements.
@functools.lru_cache(maxsize=1024)
def _positions_spec(count: int, dims: int, where: device) -> Spec:
    return make_spec((count, dims), (1, count), int64, where)


# Elements of a 1-d mask on the CPU. Up to here the positions of true elements are packed out of 0, 1, 2, ..., which takes 19 us for 16384
# elements where NumPy takes 23; for 65536 it takes 66 us, and NumPy 38 (AMD EPYC, one thread).
COUNTED = 1 << 14


@functools.cache
def _counted(where: device) -> Tensor:
    return on_device(np.arange(COUNTED), where)


def counting(size: int, where: device) -> Tensor:
    """0, 1, 2, ... The caller must only read it, because later calls return the same memory."""
    if size > COUNTED:
        return arange(size, device=where)
    counted = _counted(where)
    return make(counted._storage, 0, vector_spec(size, int64, where))


@public("function method")
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """The positions of all elements that are not 0: a matrix with a row for each, or a tuple with a tensor for each dim.

    >>> import weft as torch
    >>> torch.nonzero(torch.tensor([[1, 0], [0, 1]]))
    tensor([[0, 0],
            [1, 1]])
    """
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return tuple(columns_of(as_mask(input if input.spec.shape else input.reshape(1))))
    positions = _positions(as_mask(input))
    if out is None:
        return positions
    if out.spec.dtype is not int64:
        raise RuntimeError(
            f"nonzero: Expected out tensor to have scalar type Long but got scalar type {LEGACY_NAMES[out.dtype]}"
        )
    return write_out(out, positions, "nonzero")


@public("function method")
def argwhere(input: Tensor) -> Tensor:
    """The positions of all elements that are not 0, one row for each."""
    return nonzero(input)


@public("function method", out="exact")
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` rows of `nonzero(input)`; if there are fewer, the rest is `fill_value`."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    result = empty(contiguous_spec((size, len(input.spec.shape)), int64, input.spec.device))
    if not input.spec.device.backend.has_memory:
        return result
    positions = _positions(as_mask(input))
    count = min(size, positions.spec.shape[0])
    result[:count] = positions[:count]
    fill_(result[count:], fill_value)
    return result
