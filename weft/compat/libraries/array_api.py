"""The main namespace of the Python array API standard, 2025.12 (data-apis.org/array-api): `tensor.__array_namespace__()`.

Most functions are those of weft. This module defines the functions for which the standard differs: 0-dim arrays take part in
promotion, Python scalars may be the first operand, arguments have other names, and reductions accept any set of axes.

>>> import weft
>>> xp = weft.ones(2).__array_namespace__()
>>> xp.unique_counts(xp.asarray([3, 1, 3])).counts
tensor([1, 2])
"""

from __future__ import annotations

import builtins
import functools
import math
from collections import namedtuple
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from ...core import dtype as dt
from ...core.device import CPU
from ...core.dtype import DType, get_default_dtype
from ...core.limits import finfo as _finfo
from ...core.limits import iinfo as _iinfo
from ...core.promotion import common_dtype, promote_types
from ...core.registry import FUNCTIONS
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor, wrap_dim
from ...ops.assembly.joining import cat as _cat
from ...ops.assembly.joining import stack as _stack
from ...ops.creation.creation import empty as _empty
from ...ops.creation.creation import empty_like as _empty_like
from ...ops.creation.creation import full as _full
from ...ops.creation.creation import full_like as _full_like
from ...ops.creation.creation import ones as _ones
from ...ops.creation.creation import ones_like as _ones_like
from ...ops.creation.creation import zeros as _zeros
from ...ops.creation.from_data import asarray as _asarray
from ...ops.creation.meshgrid import meshgrid as _meshgrid
from ...ops.creation.ranges import arange as _arange
from ...ops.creation.ranges import linspace as _linspace
from ...ops.elementwise.float_bits import complex as _complex
from ...ops.indexing.masking import where as _where
from ...ops.linalg.matmul import tensordot as _tensordot
from ...ops.order.searching import isin as _isin
from ...ops.order.searching import searchsorted as _searchsorted
from ...ops.reductions.reduction import mean as _mean
from ...ops.views.broadcasting import broadcast_tensors as _broadcast_tensors
from ...ops.views.complex_views import conj_physical as _conj_physical

__array_api_version__ = "2025.12"

e, inf, nan, pi, newaxis = math.e, math.inf, math.nan, math.pi, None

bool = dt.bool_  # noqa: A001 (the standard's name, as most that follow)
uint8, uint16, uint32, uint64 = dt.uint8, dt.uint16, dt.uint32, dt.uint64
int8, int16, int32, int64 = dt.int8, dt.int16, dt.int32, dt.int64
float32, float64, complex64, complex128 = dt.float32, dt.float64, dt.complex64, dt.complex128

_SCALARS = (builtins.bool, int, float, complex)
_UNSIGNED = (uint8, uint16, uint32, uint64)
_SIGNED = (int8, int16, int32, int64)
_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}

Shape = int | Sequence[int]
Axis = int | tuple[int, ...] | None

# ---- Data types ------------------------------------------------------------------------------------------------------


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The common dtype of arrays, dtypes and Python scalars. A 0-dim array counts like any other.

    Raises: TypeError for uint64 with a signed integer, which have no common dtype; ValueError for scalars only.
    """
    numbers = [type(each) for each in arrays_and_dtypes if isinstance(each, _SCALARS)]
    dtypes = [
        each.dtype if isinstance(each, Tensor) else each
        for each in arrays_and_dtypes
        if not isinstance(each, _SCALARS)
    ]
    if not dtypes:
        raise ValueError("result_type: at least one array or dtype is needed")
    found = functools.reduce(_promoted, dtypes)
    return common_dtype((contiguous_spec((1,), found), *numbers)) if numbers else found


def _promoted(a: DType, b: DType) -> DType:
    if a is b:
        return a
    if {a.kind, b.kind} == {"u", "i"}:
        unsigned, signed = (a, b) if a.kind == "u" else (b, a)
        for wide in _SIGNED:
            if wide.itemsize > unsigned.itemsize and wide.itemsize >= signed.itemsize:
                return wide
        raise TypeError(f"result_type: {a} and {b} have no common integer dtype")
    if a.kind == b.kind == "u":
        return a if a.itemsize >= b.itemsize else b
    return promote_types(a, b)


def can_cast(from_: DType | Tensor, to: DType, /) -> builtins.bool:
    try:
        return result_type(from_, to) is to
    except (TypeError, RuntimeError):
        return False


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> builtins.bool:
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, DType):
        return dtype is kind
    if kind not in _KINDS:
        raise ValueError(f"isdtype: unknown kind {kind!r}: the kinds are {', '.join(_KINDS)}")
    return dtype.kind in _KINDS[kind]


def astype(x: Tensor, dtype: DType, /, *, copy: builtins.bool = True, device: Any = None) -> Tensor:
    return x.to(device=device or x.device, dtype=dtype, copy=copy)


def finfo(type: DType | Tensor, /) -> SimpleNamespace:
    dtype = type.dtype if isinstance(type, Tensor) else type
    names = "bits", "eps", "max", "min", "smallest_normal"
    return SimpleNamespace(**{name: getattr(_finfo(dtype), name) for name in names}, dtype=dtype.to_real())


def iinfo(type: DType | Tensor, /) -> SimpleNamespace:
    dtype = type.dtype if isinstance(type, Tensor) else type
    return SimpleNamespace(
        **{name: getattr(_iinfo(dtype), name) for name in ("bits", "max", "min")}, dtype=dtype
    )


class __array_namespace_info__:  # noqa: N801 (the standard's name)
    """The capabilities of this namespace."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> Any:
        return CPU

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        real = get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": int64,
            "indexing": int64,
        }

    def devices(self) -> list[Any]:
        return [CPU]

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        standard = (bool, *_SIGNED, *_UNSIGNED, float32, float64, complex64, complex128)
        return {each.name: each for each in standard if kind is None or isdtype(each, kind)}


# ---- Elementwise -----------------------------------------------------------------------------------------------------

_SAME = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh empty_like exp expm1 floor from_dlpack imag isfinite isinf isnan "
    "log log10 log1p log2 logical_not negative ones_like positive real reciprocal signbit sin sinh sqrt square tan tanh "
    "trunc zeros_like broadcast_shapes broadcast_to moveaxis asarray"
).split()  # fmt: skip
_SAME_OF_TWO = (
    "add atan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift copysign divide floor_divide "
    "greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor matmul maximum minimum "
    "multiply nextafter not_equal pow remainder subtract"
).split()  # fmt: skip


def _as_arrays(*values: Any) -> list[Tensor]:
    """Convert all values to arrays of their common dtype; scalars become 0-dim arrays."""
    common = result_type(*values)
    where = next(each.device for each in values if isinstance(each, Tensor))
    return [
        each.to(common) if isinstance(each, Tensor) else asarray(each, dtype=common, device=where)
        for each in values
    ]


def _of_two(function: Callable) -> Callable:
    """Apply `function` to two arrays, or to an array and a scalar, after conversion to their common dtype."""

    @functools.wraps(function, assigned=("__name__", "__doc__"))
    def promoted(x1: Any, x2: Any, /) -> Tensor:
        return function(*_as_arrays(x1, x2))

    return promoted


asarray: Callable = _asarray
equal = _of_two(FUNCTIONS["eq"])
globals().update({name: FUNCTIONS[name] for name in _SAME})
globals().update({name: _of_two(FUNCTIONS[name]) for name in _SAME_OF_TWO})
bitwise_invert = FUNCTIONS["bitwise_not"]
conj = _conj_physical  # materialized, because other libraries cannot read a pending conjugation


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    result = x
    for bound, pick in ((min, FUNCTIONS["maximum"]), (max, FUNCTIONS["minimum"])):
        if bound is not None:
            result = pick(result, _bound(bound, x))
    return x.clone() if result is x else result


def _bound(value: Any, x: Tensor) -> Tensor:
    if type(value) is int and x.dtype.is_integral:  # the dtype may not be able to represent the scalar
        value = builtins.max(_iinfo(x.dtype).min, builtins.min(_iinfo(x.dtype).max, value))
    return asarray(value, dtype=x.dtype, device=x.device)


def round(x: Tensor, /) -> Tensor:  # noqa: A001
    if not x.is_complex():
        return x.round()
    return _complex(x.real.round(), x.imag.round())


def sign(x: Tensor, /) -> Tensor:
    if x.is_complex():
        return x.sgn()
    return _where(x.isnan(), x, x.sign()) if x.is_floating_point() else x.sign()


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    return _where(condition, *_as_arrays(x1, x2))


# ---- Creation --------------------------------------------------------------------------------------------------------


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DType | None = None,
    device: Any = None,
) -> Tensor:
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step <= 0:  # PyTorch raises an error here
        real = builtins.any(isinstance(each, float) for each in (start, stop, step))
        return empty(0, dtype=dtype or (get_default_dtype() if real else int64), device=device)
    return _arange(start, stop, step, dtype=dtype, device=device)


def empty(shape: Shape, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    return _empty(shape, dtype=dtype, device=device)


def zeros(shape: Shape, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    return _zeros(shape, dtype=dtype, device=device)


def ones(shape: Shape, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    return _ones(shape, dtype=dtype, device=device)


def full(shape: Shape, fill_value: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    sizes = (shape,) if isinstance(shape, int) else shape
    return _full(sizes, fill_value, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    return _full_like(x, fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType | None = None,
    device: Any = None,
) -> Tensor:
    result = zeros((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype, device=device)
    if -n_rows < k < result.shape[1]:
        result.diagonal(k).fill_(1)
    return result


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: Any = None,
    endpoint: builtins.bool = True,
) -> Tensor:
    if endpoint:
        return _linspace(start, stop, num, dtype=dtype, device=device)
    return _linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    return tuple(_meshgrid(*arrays, indexing=indexing)) if arrays else ()


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    return x.tril(k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    return x.triu(k)


# ---- Shapes ----------------------------------------------------------------------------------------------------------


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    return tuple(_broadcast_tensors(*arrays))


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    arrays = _as_arrays(*arrays)
    if axis is None:
        return _cat([each.flatten() for each in arrays])
    return _cat(arrays, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    return _stack(_as_arrays(*arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    return x.unbind(axis)


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    axes = _axes(axis, x.ndim + (1 if isinstance(axis, int) else len(axis)))
    for each in sorted(axes):
        x = x.unsqueeze(each)
    return x


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    axes = _axes(axis, x.ndim)
    if builtins.any(x.shape[each] != 1 for each in axes):
        raise ValueError(f"squeeze: not all of the axes {axis} of shape {tuple(x.shape)} have size 1")
    return x.squeeze(axes)


def flip(x: Tensor, /, *, axis: Axis = None) -> Tensor:
    return x.flip(_axes(axis, x.ndim))


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    return x.permute(axes)


def matrix_transpose(x: Tensor, /) -> Tensor:
    return x.mT


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    return x.repeat_interleave(repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: builtins.bool | None = None) -> Tensor:
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(f"reshape: {error}") from None
    return (x.clone() if copy else x).reshape(shape)


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: Axis = None) -> Tensor:
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return x.roll(shift, () if axis is None else axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    return x.tile(repetitions)


# ---- Products --------------------------------------------------------------------------------------------------------


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    return _tensordot(*_as_arrays(x1, x2), dims=axes)  # type: ignore[misc]


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    x1, x2 = _as_arrays(x1, x2)
    # The axis refers to each array. After broadcasting, it is counted from the end.
    a, b = x1.movedim(axis, -1), x2.movedim(axis, -1)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"vecdot: sizes {a.shape[-1]} and {b.shape[-1]} along axis {axis} differ")
    return (a.conj().unsqueeze(-2) @ b.unsqueeze(-1)).squeeze(-1).squeeze(-1)


# ---- Reductions ------------------------------------------------------------------------------------------------------


def _axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """The axes as nonnegative numbers; None stands for all axes.

    Raises: IndexError if an axis does not exist, ValueError if one appears twice.
    """
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(wrap_dim(each, ndim) for each in (axis if isinstance(axis, tuple) else (axis,)))
    if len({*axes}) < len(axes):
        raise ValueError(f"axis {axis} names an axis of {ndim} twice")
    return axes


def _reduction(function: Callable) -> Callable:
    """Apply `function`, which reduces one or more dims, to any set of axes: None means all, () means none."""

    @functools.wraps(function, assigned=("__name__", "__doc__"))
    def reduce(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False, **options: Any) -> Tensor:
        axes = _axes(axis, x.ndim)
        if not axes:  # for PyTorch, () means all axes
            return function(x.unsqueeze(-1), (-1,), False, **options)
        return function(x, axes, keepdims, **options)

    return reduce


def _summed(x: Tensor, axes: tuple[int, ...], keepdims: builtins.bool, dtype: Any = None) -> Tensor:
    return x.sum(axes, keepdims, dtype=dtype or _sum_dtype(x.dtype))


def _multiplied(x: Tensor, axes: tuple[int, ...], keepdims: builtins.bool, dtype: Any = None) -> Tensor:
    for each in sorted(axes, reverse=True):
        x = x.prod(each, keepdims, dtype=dtype or _sum_dtype(x.dtype))
    return x


def _sum_dtype(dtype: DType) -> DType:
    """The dtype of a sum: 64 bits for smaller integers, with the same signedness."""
    return {"u": uint64, "i": int64, "b": int64}.get(dtype.kind, dtype)


def _counted(x: Tensor, axes: tuple[int, ...], keepdims: builtins.bool) -> Tensor:
    return (x != 0).sum(axes, keepdims)


def _deviation(name: str) -> Callable:
    def reduce(x: Tensor, axes: tuple[int, ...], keepdims: builtins.bool, correction: float = 0.0) -> Tensor:
        return FUNCTIONS[name](x, axes, correction=correction, keepdim=keepdims)

    return _reduction(reduce)


def _question(name: str) -> Callable:
    return _reduction(lambda x, axes, keepdims: FUNCTIONS[name](x.to(bool), axes, keepdims))


sum, prod, mean = _reduction(_summed), _reduction(_multiplied), _reduction(_mean)
max, min = _reduction(FUNCTIONS["amax"]), _reduction(FUNCTIONS["amin"])
std, var = _deviation("std"), _deviation("var")
all, any = _question("all"), _question("any")
count_nonzero = _reduction(_counted)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Tensor:
    return _cumulative("cumsum", 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Tensor:
    return _cumulative("cumprod", 1, x, axis, dtype, include_initial)


def _cumulative(name: str, first: int, x: Tensor, axis: int | None, dtype: Any, initial: Any) -> Tensor:
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{name}: an array of {x.ndim} dimensions needs an axis")
        axis = 0
    result = FUNCTIONS[name](x, axis, dtype=dtype or _sum_dtype(x.dtype))
    if not initial:
        return result
    if x.ndim == 0:
        result = result.unsqueeze(0)
    edge = list(result.shape)
    edge[axis] = 1
    return _cat([full(edge, first, dtype=result.dtype, device=x.device), result], axis)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    return x.diff(n, axis, prepend, append)


# ---- Searching, sorting, sets ----------------------------------------------------------------------------------------


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    return x.argmax(axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    return x.argmin(axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    if x.ndim == 0:
        raise ValueError("nonzero: an array of no dimensions has no positions")
    return x.nonzero(as_tuple=True)


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    boundaries, values = _as_arrays(x1, x2)
    return _searchsorted(boundaries, values, side=side, sorter=sorter)


def sort(
    x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    return x.sort(dim=axis, descending=descending, stable=stable).values


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True
) -> Tensor:
    return x.argsort(dim=axis, descending=descending, stable=stable)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: an array of {x.ndim} dimensions needs an axis")
        axis = 0
    return x[(slice(None),) * wrap_dim(axis, x.ndim) + (indices,)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    from_front = _where(indices < 0, indices + x.shape[axis], indices)
    return x.take_along_dim(from_front, axis)


UniqueAll = namedtuple("UniqueAll", "values indices inverse_indices counts")
UniqueCounts = namedtuple("UniqueCounts", "values counts")
UniqueInverse = namedtuple("UniqueInverse", "values inverse_indices")


def unique_all(x: Tensor, /) -> UniqueAll:
    """The sorted unique values, the index of the first occurrence of each, the inverse indices, and the counts.

    Every NaN counts as unique.
    """
    flat = x.flatten()
    order = flat.argsort(stable=True)
    ordered = flat[order]
    starts = _ones_like(ordered, dtype=bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    inverse = _empty_like(order)
    inverse[order] = starts.cumsum(0) - 1
    (first,) = starts.nonzero(as_tuple=True)
    counts = first.diff(append=first.new_full((1,), len(flat)))
    return UniqueAll(ordered[starts], order[starts], inverse.reshape(x.shape), counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: builtins.bool = False) -> Tensor:
    return _isin(*_as_arrays(x1, x2), invert=invert)
