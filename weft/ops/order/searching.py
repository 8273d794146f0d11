"""Finds distinct values and their positions: unique, searchsorted, bucketize, isin."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ...core.checking import check_tensor
from ...core.derivative import Derivative, nondifferentiable
from ...core.dtype import LEGACY_NAMES, DType, bool_, int32, int64
from ...core.op import Op
from ...core.outputs import write_out
from ...core.promotion import common_dtype
from ...core.public import public
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, make, wrap_dim
from ...core.warn import user_level
from ...families.array_op import array, array_op, here, tensor_of, wide_array
from ...families.map import NUMBERS, normalise
from ..creation.creation import dtype_of_number
from ..creation.from_data import tensor
from ..elementwise.pointwise import OPS
from ..tensor.rules import unknown
from . import kernels
from .keys import order_keys
from .sorting import check_comparable, stable_order

# ---- Distinct elements ---------------------------------------------------------------------------------------------


def _group(
    differs: np.ndarray, order: np.ndarray | None, inverse: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first element of each run of equal elements, the run of each element if `inverse`, and the length of each run.

    `differs[i]`: element i + 1 of the order differs from element i. Each run is represented by its first element.
    """
    n = 0 if order is None and differs.size == 0 else differs.size + 1
    starts = np.flatnonzero(np.concatenate([np.ones(min(n, 1), bool), differs]))
    counts = np.diff(starts, append=n)
    runs = np.repeat(np.arange(len(starts)), counts if inverse else 0)
    if order is None:
        return starts, runs, counts
    places = np.empty(runs.size, np.int64)
    if inverse:
        places[order] = runs
    return order[starts], places, counts


def _rows_differ(rows: np.ndarray) -> np.ndarray:
    """For each row of values or keys, whether it differs from the row before it. NaN differs from NaN."""
    return (rows[1:] != rows[:-1]).any(axis=tuple(range(1, rows.ndim)))


@array_op(derivative=nondifferentiable)
def _unique(input: Tensor, consecutive: bool, inverse: bool) -> tuple[Tensor, Tensor, Tensor]:
    """(values, inverse, counts) along the first dim of a tensor with at least one dim; an empty inverse unless it is wanted."""
    if input.spec.numel and input.spec.device.backend.prefers_kernels:
        return kernels.distinct(input, consecutive, inverse)
    values = array(input)
    n = len(values)
    if n == 0:
        empty = np.empty(0, np.int64)
        return tensor_of(values.copy()), tensor_of(empty), tensor_of(empty.copy())
    if values.ndim == 1 and values.dtype.kind in "biu" and not consecutive:
        low, high = int(values.min()), int(values.max())
        if high - low < 4 * n:
            return _unique_by_count(values, low, high - low + 1, inverse)
    order = None if consecutive else _row_order(order_keys(input, values.ndim - 1).reshape(n, -1))
    ordered = values if order is None else values[order]
    found, runs, counts = _group(_rows_differ(ordered), np.arange(n) if order is None else order, inverse)
    return tensor_of(values[found]), tensor_of(runs), tensor_of(counts)


def _unique_by_count(values: np.ndarray, low: int, span: int, inverse: bool) -> tuple[Tensor, Tensor, Tensor]:
    """`unique` of integers that lie within a short span from `low` on."""
    dtype = values.dtype
    if dtype.kind == "b":
        values = (values.view(np.uint8) != 0).view(np.uint8)  # memory from outside may hold 2 or 255 for True
    least = np.uint64(low % 2**64)  # differences are exact modulo 2**64
    count = here().backend.extras.get("count")
    if count is None or inverse:
        offsets = (values.astype(np.uint64) - least).astype(np.int64)
    if count is None:
        occurrences = np.bincount(offsets, minlength=span)
    else:
        occurrences = count(values, low, span)[:-1]
    found = np.flatnonzero(occurrences)
    distinct = (found.astype(np.uint64) + least).astype(dtype)
    number = np.cumsum(occurrences > 0) - 1
    runs = number[offsets] if inverse else np.empty(0, np.int64)
    return tensor_of(distinct), tensor_of(runs), tensor_of(occurrences[found])


def _row_order(key: np.ndarray) -> np.ndarray:
    """Return the stable order of rows of keys, compared element by element."""
    if key.shape[1] == 1:
        return stable_order(key[:, 0])
    # Big-endian unsigned integers have the order of their bytes.
    texts = key.astype(key.dtype.newbyteorder(">")).view(np.dtype((np.void, key.shape[1] * key.itemsize)))
    return np.argsort(texts[:, 0], kind="stable")


def _results(parts: tuple, inverse: bool, counts: bool) -> Any:
    chosen = [parts[0]] + [parts[1]] * bool(inverse) + [parts[2]] * bool(counts)
    return tuple(chosen) if len(chosen) > 1 else chosen[0]


def _distinct(
    input: Tensor, dim: Any, consecutive: bool, wanted: bool, name: str
) -> tuple[Tensor, Tensor, Tensor]:
    """(values, inverse, counts); the inverse is empty unless it is wanted."""
    check_tensor(input, name)
    check_comparable(input, "unique" if dim is None else "unique_dim")
    plain, sizes = input.detach(), input.spec.shape
    if dim is None:
        values, inverse, counts = _unique(plain.reshape(-1), consecutive, wanted)
        return _without_rule(name, values, input), inverse.reshape(sizes) if wanted else inverse, counts
    if not sizes:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = wrap_dim(dim, len(sizes))
    if 0 in sizes[:dim] + sizes[dim + 1 :]:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied\n"
            f"{name}: shape {list(sizes)}, dim {dim}"
        )
    values, inverse, counts = _unique(plain.movedim(dim, 0), consecutive, wanted)
    moved = values.movedim(0, dim)
    # The result is not a view, because users never see its base.
    values = make(moved._storage, moved._byte_offset, moved.spec)
    return _without_rule(name, values, input), inverse, counts


def _without_rule(name: str, values: Tensor, input: Tensor) -> Tensor:
    """`values` as the result of a recorded step whose derivative raises, because PyTorch has none either."""
    return Op(name, Derivative(unknown(name))).recorded(values, (input,))


@public("function method")
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements, or slices along `dim`, in ascending order (also if `sorted` is False).

    Returns values, or (values, inverse, counts) with those asked for: `values[inverse]` is the input.

    >>> import weft as torch
    >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    return _results(
        _distinct(input, dim, False, bool(return_inverse), "unique"), return_inverse, return_counts
    )


@public("function method")
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements, or slices along `dim`, without those equal to the one before them.

    >>> import weft as torch
    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    return _results(
        _distinct(input, dim, True, bool(return_inverse), "unique_consecutive"), return_inverse, return_counts
    )


# ---- Positions in sorted sequences ---------------------------------------------------------------------------------


@array_op(derivative=nondifferentiable)
def _searchsorted(boundaries: Tensor, input: Tensor, sorter: Tensor | None, side: Any, dtype: Any) -> Tensor:
    if input.spec.device.backend.prefers_kernels:
        sequences = boundaries if sorter is None else boundaries.gather(-1, sorter)
        return kernels.places(sequences, input, side == "right", dtype)
    edges, values = wide_array(boundaries), wide_array(input)
    if sorter is not None:
        # NumPy checks the indices once and then reads memory by them, so no other thread may change them.
        order = array(sorter).copy()
        edges = np.take_along_axis(edges, order, -1)
    if values.size and (search := here().backend.extras.get("search")) is not None:
        return tensor_of(search(_searchable(edges), _searchable(values), side == "right", dtype))
    result: np.ndarray = np.empty(values.shape, dtype.numpy)
    if edges.ndim == 1:
        result[...] = _places(edges, values, side)
    else:
        for row in np.ndindex(edges.shape[:-1]):
            result[row] = _places(edges[row], values[row], side)
    return tensor_of(result)


@_searchsorted.spec_rule
def _searchsorted_spec(boundaries: Spec, input: Spec, sorter: Spec | None, side: str, dtype: DType) -> Spec:
    return contiguous_spec(input.shape, dtype)


def _searchable(values: np.ndarray) -> np.ndarray:
    """The values as float32, float64 or int64, whose order is that of the values, contiguous."""
    if values.dtype.kind == "f":
        return np.asarray(values, order="C")
    if values.dtype.kind == "b":
        values = values.view(np.uint8) != 0  # memory from outside may hold 2 or 255 for True
    if values.dtype == np.uint64:
        values = (values ^ np.uint64(1 << 63)).view(np.int64)
    return np.asarray(values, np.int64, order="C")


def _places(edges: np.ndarray, values: np.ndarray, side: Any) -> np.ndarray:
    """The position where a binary search ends. In a sequence that is not sorted it depends on the steps, which are PyTorch's."""
    n = edges.size
    if n > 1 and (edges[:-1] <= edges[1:]).all():
        return np.searchsorted(edges, values, side)
    start, end = np.zeros(values.shape, np.int64), np.full(values.shape, n, np.int64)
    for _ in range(n.bit_length()):
        middle = (start + end) // 2
        probe = edges[np.minimum(middle, n - 1)]
        # Comparisons with NaN are false, so that the search goes right of NaN.
        is_left = (start < end) & ~((probe >= values) if side == "left" else (probe > values))
        is_right = (start < end) & ~is_left
        start, end = np.where(is_left, middle + 1, start), np.where(is_right, middle, end)
    return start


def _check_search(
    boundaries: Tensor, input: Any, sorter: Tensor | None, right: bool, side: str | None
) -> None:
    name = "torch.searchsorted():"
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"{name} side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            f"{name} side and right can't be set to opposites, got side of left while right was True"
        )
    sizes = boundaries.spec.shape
    if isinstance(input, Tensor) and input.spec.device is not boundaries.spec.device:
        raise RuntimeError(
            f"{name} boundaries and input value tensors should have same device type, but got boundaries tensor device "
            f"type {boundaries.spec.device} and input value tensor device type {input.spec.device}"
        )
    if sorter is not None:
        if sorter.spec.shape != sizes:
            raise RuntimeError(
                f"{name} boundary and sorter must have the same size, but got boundary tensor {list(sizes)}and got "
                f"sorter tensor {list(sorter.spec.shape)}"
            )
        if sorter.spec.dtype is not int64:
            raise RuntimeError(
                f"{name} sorter must be a tensor of long dtype but got dtype {LEGACY_NAMES[sorter.spec.dtype]}"
            )
        has_values = sorter.spec.numel and sorter.spec.device.backend.has_memory
        if has_values and not (int(sorter.min()) >= 0 and int(sorter.max()) < sizes[-1]):
            raise RuntimeError(f"{name} sorter index out of range")
    if not sizes:
        raise RuntimeError(f"{name} boundaries tensor should have positive dimension, but got 0 dimension")
    theirs = input.spec.shape if isinstance(input, Tensor) else ()
    if not theirs and len(sizes) != 1:
        raise RuntimeError(
            f"{name} input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries "
            f"tensor dim({len(sizes)}) and input value's dim(0) numel(1)"
        )
    if len(sizes) != 1 and (len(theirs) != len(sizes) or theirs[:-1] != sizes[:-1]):
        raise RuntimeError(
            f"{name} boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input "
            f"value tensor must match, but we got boundaries tensor {list(sizes)} and input value tensor {list(theirs)}"
        )


def _in_common(first: Any, second: Any) -> tuple[Tensor, Tensor]:
    """Return two tensors or numbers as tensors of the dtype they promote to."""
    dtype = common_dtype(
        value.spec if isinstance(value, Tensor) else type(value) for value in (first, second)
    )
    where = next(value.device for value in (first, second) if isinstance(value, Tensor))
    return tuple(  # type: ignore[return-value]
        value.detach().to(dtype) if isinstance(value, Tensor) else tensor(value, dtype=dtype, device=where)
        for value in (first, second)
    )


@public("function")
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Where to insert values so that a sequence stays sorted: before equal elements, or after them (`right`).

    Shapes: sorted_sequence [n], input of any shape; or [..., n] and [..., m] with the same leading sizes.
    sorter: indices that sort `sorted_sequence`.

    >>> import weft as torch
    >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 4]))
    tensor([1, 2])
    """
    check_tensor(sorted_sequence, "searchsorted")
    if not isinstance(input, (Tensor, *NUMBERS)):
        raise TypeError(
            f"searchsorted(): argument 'input' (position 2) must be Tensor, not {type(input).__name__}"
        )
    _check_search(sorted_sequence, input, sorter, right, side)
    dtype = int32 if out_int32 else int64
    if out is not None and out.spec.dtype is not dtype:
        raise RuntimeError(
            "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
            f"whether out_int32 flag is True, but we got output tensor's dtype {LEGACY_NAMES[out.spec.dtype]} and "
            f"out_int32 flag is {out_int32}"
        )
    _warn_of_copies(boundary=sorted_sequence, input_value=input, sorter=sorter)
    boundaries, values = _in_common(sorted_sequence, input)
    check_comparable(boundaries, "searchsorted_out_cpu")
    result = _searchsorted(boundaries, values, sorter, "right" if right else side or "left", dtype)
    return result if out is None else write_out(out, result, "searchsorted")


def _warn_of_copies(**tensors: Any) -> None:
    for name, given in tensors.items():
        if isinstance(given, Tensor) and not given.is_contiguous():
            what = name.replace("_", " ")
            warnings.warn(
                f"torch.searchsorted(): {what} tensor is non-contiguous, this will lower the performance due to extra data copy "
                f"when converting non-contiguous tensor to contiguous, please use contiguous {what} tensor if possible.",
                stacklevel=user_level(),
            )


@public("function")
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the number of the interval between sorted `boundaries` [n] that each value falls into.

    >>> import weft as torch
    >>> torch.bucketize(torch.tensor([0, 3, 9]), torch.tensor([1, 3, 5]))
    tensor([0, 1, 3])
    """
    if len(boundaries.spec.shape) != 1:
        raise RuntimeError(
            f"boundaries tensor must be 1 dimension, but got dim({len(boundaries.spec.shape)})"
        )
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


# ---- Membership ----------------------------------------------------------------------------------------------------


@array_op(derivative=nondifferentiable)
def _isin(elements: Tensor, test_elements: Tensor, assume_unique: bool, invert: bool) -> Tensor:
    if elements.spec.device.backend.prefers_kernels:
        return kernels.is_among(elements, test_elements) ^ invert
    return tensor_of(np.isin(wide_array(elements), wide_array(test_elements), assume_unique, invert))


@_isin.spec_rule
def _isin_spec(elements: Spec, test_elements: Spec, assume_unique: bool, invert: bool) -> Spec:
    return contiguous_spec(elements.shape, bool_)


@public("function", out=True)
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among `test_elements` (or, with `invert`, is not). One of them may be a number.

    >>> import weft as torch
    >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2]))
    tensor([False,  True, False])
    """
    elements, test_elements = normalise("isin", (elements, test_elements))
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError("isin(): at least one of elements and test_elements must be a Tensor")
    for value in (elements, test_elements):
        dtype = value.spec.dtype if isinstance(value, Tensor) else dtype_of_number(value)
        if dtype is bool_ or dtype.is_complex:
            raise RuntimeError(f"Unsupported input type encountered for isin(): {LEGACY_NAMES[dtype]}")
    if not isinstance(test_elements, Tensor):
        # A comparison rounds the number to the dtype of a narrow float tensor, as PyTorch does.
        return OPS["ne" if invert else "eq"](elements, test_elements)
    return _isin(*_in_common(elements, test_elements), assume_unique and not invert, invert)
