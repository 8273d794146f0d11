"""Defines sort and argsort, and elements selected by rank: topk, kthvalue, the medians, mode."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ...core.arguments import integer
from ...core.checking import check_tensor
from ...core.dtype import FLOAT8, LEGACY_NAMES, DType, bfloat16, bool_, int64
from ...core.layout import preserve_format
from ...core.public import public
from ...core.return_types import return_type
from ...core.spec import Spec, contiguous_spec, contiguous_stride
from ...core.tensor import Tensor, empty, make, wrap_dim
from ...families.array_op import ArrayOp, array, array_op, here, on_device, tensor_in, tensor_of
from ...families.indexed import bare
from ...families.map import COPY, FILL
from ...families.reduce import reduced_sizes
from ..assembly.copying import formatted_spec
from ..indexing.gather import GATHER
from ..tensor.rules import scatter_into_zeros, split_among_ties, with_reduced_dims
from . import kernels
from .keys import order_keys

# elements; in longer rows the least elements are looked for among few candidates
SHORT_ROW = 2048
# bytes of keys; rows up to this length stay in the second-level cache, where a pass for each bit costs little. Measured on AMD Zen 4, one
# thread, with the medians of 4 million float32: rows of 2000 take 9.9 ms, with NumPy's partition 31 ms; rows of 100 take 20 and 15 ms.
RANKED_ROW = 1 << 20
# Dtypes that NumPy cannot sort.
ALIEN = FLOAT8 | {bfloat16}
# Dtypes that are sorted by keys. Bools are among them, because NumPy compares their bytes, and memory from outside may hold
# bytes other than 0 and 1.
KEYED = ALIEN | {bool_}
# elements; up to this number NumPy's own stable sort takes less time than making the keys
FEW = 256
# Elements: in rows that are not longer the tables of the radix sort cost more than they save. Measured on AMD Zen 4, one thread, 10^6
# keys: in rows of 32 it takes 17 ms, NumPy's sort of packed keys 8 ms; in rows of 128, 8 ms and 7 ms. It uses all threads.
FEW_IN_ROW = 64


# ---- Orders of arrays ----------------------------------------------------------------------------------------------


def stable_order(key: np.ndarray) -> np.ndarray:
    """Indices (int64) that sort the last axis of unsigned integers; equal keys stay in their order.

    NumPy's fast sorts are unstable. So short rows are sorted as integers that hold the key and, below it, the position.
    """
    n = key.shape[-1]
    if n > FEW_IN_ROW and (order := here().backend.extras.get("stable_order")) is not None:
        return order(key)
    if n > FEW_IN_ROW or key.itemsize > 4:
        return np.argsort(key, axis=-1, kind="stable")
    wide: Any = np.uint32 if key.itemsize <= 2 else np.uint64
    shift = 4 * np.dtype(wide).itemsize
    packed = key.astype(wide) << wide(shift)
    packed |= np.arange(n, dtype=wide)
    packed.sort(axis=-1)
    return (packed & wide((1 << shift) - 1)).astype(np.int64)


def rows_of(values: np.ndarray, dim: int) -> np.ndarray:
    """The array with `dim` moved to the end, contiguous."""
    return np.ascontiguousarray(values if dim == values.ndim - 1 else np.moveaxis(values, dim, -1))


def back(rows: np.ndarray, dim: int, ndim: int) -> np.ndarray:
    """The inverse of `rows_of`: the last axis becomes `dim`."""
    return rows if dim == ndim - 1 else np.moveaxis(rows, -1, dim)


def _least(input: Tensor, dim: int, k: int | None, descending: bool) -> np.ndarray:
    """Return the positions of the `k` least (greatest, if `descending`; all, if None) elements along `dim`, in order.

    The last axis runs along `dim`. NaN is the greatest; of equals, the first comes first.
    """
    if input.spec.numel <= FEW and input.spec.dtype not in KEYED:
        rows = rows_of(array(input), dim).copy()  # as for `order_keys`
        if not descending:
            return rows.argsort(axis=-1, kind="stable")[..., :k]
        backwards = rows[..., ::-1].argsort(axis=-1, kind="stable")
        return (rows.shape[-1] - 1 - backwards)[..., ::-1][..., :k]
    key = order_keys(input, dim, descending)
    return stable_order(key) if k is None else _least_keys(key, k)


def _in_order(input: Tensor, dim: int, descending: bool, k: int) -> tuple[Tensor, Tensor] | None:
    """What `kernels.ordered` computes; None where other ways are faster, or the device has no kernel."""
    spec = input.spec
    if not spec.numel or not k or not spec.shape:
        return None
    orders = spec.device.backend.extras.get("orders_rows")
    if orders is None or not orders(spec.shape[dim], k):
        return None
    return kernels.ordered(input, dim, descending, k)


# ---- What the ops share --------------------------------------------------------------------------------------------


def not_implemented(kernel: str, dtype: DType) -> NotImplementedError:
    return NotImplementedError(f"\"{kernel}\" not implemented for '{LEGACY_NAMES[dtype]}'")


def check_comparable(input: Tensor, kernel: str) -> None:
    """Raises: NotImplementedError for complex numbers, which have no order."""
    if input.spec.dtype.is_complex:
        raise not_implemented(kernel, input.spec.dtype)


def _check_selectable(input: Tensor, kernel: str) -> None:
    """Like `check_comparable`, but a 0-dim tensor or one without elements may be complex, because nothing is compared."""
    if input.spec.shape and input.spec.numel:
        check_comparable(input, kernel)


def dim_of(input: Tensor, dim: Any, name: str) -> int:
    check_tensor(input, name)
    return wrap_dim(integer(dim, name, "dim"), len(input.spec.shape))


def check_not_empty(input: Tensor, dim: int, name: str) -> None:
    if input.spec.shape and input.spec.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def _alone(input: Tensor) -> tuple[Tensor, Tensor]:
    """The element of a 0-dim tensor, and its position."""
    where = input.spec.device
    value = COPY.write(empty(contiguous_spec((), input.spec.dtype, where)), bare(input))
    return value, FILL.write(empty(contiguous_spec((), int64, where)), 0)


def take_rows(input: Tensor, dim: int, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the elements at `order` (rows: the last axis runs along `dim`), and `order`, in the dims of the input."""
    ndim = len(input.spec.shape)
    rows = rows_of(array(input), dim)
    values = rows[order] if ndim == 1 else np.take_along_axis(rows, order, -1)
    return back(values, dim, ndim), back(order, dim, ndim)


def _taken(input: Tensor, indices: Tensor, dim: int) -> Tensor:
    return GATHER.run(make(input._storage, input._byte_offset, input.spec), (indices,), dim)


def _dense(values: np.ndarray, spec: Spec) -> Tensor:
    """`values` as a new tensor with a dense spec, without a copy if they lie in that order."""
    return tensor_of(values) if values.flags.c_contiguous and spec.is_contiguous else tensor_in(values, spec)


def in_order_of(spec: Spec, dtype: DType) -> Spec:
    """A dense spec in the memory order of `own`."""
    return formatted_spec(spec, preserve_format, dtype, spec.device)


# ---- Sorting -------------------------------------------------------------------------------------------------------


def _order_rule(ct, out, input, dim, descending, *, specs):
    return scatter_into_zeros(ct[0], out[1], specs[0], dim)


@array_op(derivative=_order_rule)
def _sort(input: Tensor, dim: int, descending: bool) -> tuple[Tensor, Tensor]:
    spec = input.spec
    if not spec.shape:
        return _alone(input)
    if (found := _in_order(input, dim, descending, spec.shape[dim])) is not None:
        if spec.stride == contiguous_stride(spec.shape):
            return found
        values, indices = (COPY.write(empty(in_order_of(spec, each.spec.dtype)), each) for each in found)
        return values, indices
    order = back(_least(input, dim, None, descending), dim, spec.ndim)
    indices = _dense(order, in_order_of(spec, int64))
    values = _taken(input, indices, dim)
    wanted = in_order_of(spec, spec.dtype)
    return values if values.spec is wanted else tensor_in(array(values), wanted), indices


@_sort.spec_rule
def _sort_specs(input: Spec, dim: int, descending: bool) -> tuple[Spec, Spec]:
    return in_order_of(input, input.dtype), in_order_of(input, int64)


def _checked_sort(input: Tensor, dim: Any, descending: Any, name: str) -> tuple[Tensor, Tensor]:
    dim = dim_of(input, dim, name)
    if input.spec.dtype.is_complex:
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    return _sort(input, dim, bool(descending))


@public("function method", out=True)
def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = False) -> Any:
    """Compute (values, indices): the elements in order along `dim`, NaN as the greatest, and where they came from.

    Equal elements keep their order, whether `stable` asks for it or not.

    Raises: IndexError for a dim out of range, RuntimeError for complex tensors.

    >>> import weft as torch
    >>> torch.tensor([3, 1, 2]).sort(descending=True)
    torch.return_types.sort(
    values=tensor([3, 2, 1]),
    indices=tensor([0, 2, 1]))
    """
    return return_type("sort", ("values", "indices"))(_checked_sort(input, dim, descending, "sort"))


@public("function method", out=True)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """Return the indices that sort `input` along `dim`: those of `sort`.

    >>> import weft as torch
    >>> torch.argsort(torch.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    check_tensor(input, "argsort")
    return _checked_sort(input.detach(), dim, descending, "argsort")[1]


@public("function method", out=True)
def msort(input: Tensor) -> Tensor:
    """Return the elements in ascending order along the first dim."""
    return sort(input, 0)[0]


# ---- Selection by rank ---------------------------------------------------------------------------------------------


def _least_keys(key: np.ndarray, k: int) -> np.ndarray:
    """Return the positions of the `k` least in the last axis, in order."""
    n = key.shape[-1]
    if n > SHORT_ROW and 0 < k <= n // 64:
        rows = [_least_of_many(row, k) for row in key.reshape(-1, n)]
        return np.array(rows, np.int64).reshape(*key.shape[:-1], k)
    if 0 < k <= n // 8:
        candidates = np.sort(np.argpartition(key, k - 1, axis=-1)[..., :k], axis=-1)
        order = stable_order(np.take_along_axis(key, candidates, -1))
        return np.take_along_axis(candidates, order, -1)
    return stable_order(key)[..., :k]


def _least_of_many(row: np.ndarray, k: int) -> np.ndarray:
    # The k-th smallest of the columns' minima is not below the k-th smallest element, so larger elements need no sorting.
    columns = len(row) // 64
    minima = row[: 64 * columns].reshape(64, columns).min(axis=0)
    candidates = np.flatnonzero(row <= np.partition(minima, k - 1)[k - 1])
    return candidates[stable_order(row[candidates])[:k]]


def _topk_rule(ct, out, input, k, dim, largest, *, specs):
    return scatter_into_zeros(ct[0], out[1], specs[0], dim)


@array_op(derivative=_topk_rule)
def _topk(input: Tensor, k: int, dim: int, largest: bool) -> tuple[Tensor, Tensor]:
    if not input.spec.shape:
        return _alone(input)
    if not k:
        specs = _topk_specs(input.spec, k, dim, largest)
        values, indices = (empty(each.like(device=input.spec.device)) for each in specs)
        return values, indices
    found = _in_order(input, dim, largest, k)
    if found is not None:
        return found
    indices = tensor_of(back(_least(input, dim, k, largest), dim, input.spec.ndim))
    return _taken(input, indices, dim), indices


@_topk.spec_rule
def _topk_specs(input: Spec, k: int, dim: int, largest: bool) -> tuple[Spec, Spec]:
    sizes = [k if each == dim else size for each, size in enumerate(input.shape)]
    return contiguous_spec(sizes, input.dtype), contiguous_spec(sizes, int64)


@public("function method", out=True)
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """(values, indices) of the `k` greatest (or least) elements along `dim`, in order; NaN is the greatest.

    Raises: RuntimeError if there are fewer than `k`.

    >>> import weft as torch
    >>> torch.topk(torch.tensor([3.0, 1.0, 2.0]), 2).values
    tensor([3., 2.])
    """
    dim = dim_of(input, dim, "topk")
    if not 0 <= k <= (input.spec.shape[dim] if input.spec.shape else 1):
        raise RuntimeError(
            f"selected index k out of range\ntopk: k = {k}, dim {dim} of shape {list(input.spec.shape)}"
        )
    if input.spec.dtype.is_complex or input.spec.dtype is bool_:
        kind = "bool" if input.spec.dtype is bool_ else "complex"
        raise RuntimeError(f" topk does not support {kind} dtypes on CPU")
    return return_type("topk", ("values", "indices"))(
        # PyTorch returns the number even if k is 0.
        _topk(input, k if input.spec.shape else 1, dim, bool(largest))
    )


class _Choice(Protocol):
    """Chooses an element of each row by the keys of the elements (`order_keys`)."""

    def in_array(self, key: np.ndarray) -> np.ndarray:
        """The positions in the last axis, which has size 1 in the result."""

    def in_tensor(self, key: Tensor, dim: int) -> Tensor:
        """The same along `dim` of a tensor on a device that prefers kernels."""


def _chosen_rule(ct, out, input, dim, keepdim, choose, *, specs):
    return scatter_into_zeros(
        *(with_reduced_dims(each, (dim,), keepdim or not specs[0].shape) for each in (ct[0], out[1])),
        specs[0],
        dim,
    )


def _chosen(input: Tensor, dim: int, keepdim: bool, choose: _Choice) -> tuple[Tensor, Tensor]:
    """One element of each row along `dim` and its position."""
    spec = input.spec
    if not spec.shape:  # it may be complex, because nothing is compared
        return _alone(input)
    if spec.device.backend.prefers_kernels and spec.numel:
        place = choose.in_tensor(kernels.keys_of(input), dim)
        found = _taken(input, place, dim), place
    else:
        chosen, where = take_rows(input, dim, choose.in_array(order_keys(input, dim)))
        found = tensor_of(chosen), tensor_of(where)
    if keepdim:
        return found
    values, indices = (each.squeeze(dim) for each in found)
    # The results are not views, because users never see their bases.
    return make(values._storage, 0, values.spec), make(indices._storage, 0, indices.spec)


_SELECTIONS = {
    name: ArrayOp(_chosen, _chosen_rule, name=name, node_name=node_name)
    for name, node_name in (
        ("kthvalue", None),
        ("median", "MedianBackward1"),
        ("nanmedian", "NanmedianBackward1"),
        ("mode", None),
    )
}


def _chosen_specs(input: Spec, dim: int, keepdim: bool, choose: _Choice) -> tuple[Spec, Spec]:
    sizes = reduced_sizes(input.shape, (dim,), keepdim)
    return contiguous_spec(sizes, input.dtype), contiguous_spec(sizes, int64)


for _selection in _SELECTIONS.values():
    _selection.spec_rule(_chosen_specs)


def _at_rank(key: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """The first position of the element that would come at `rank` if the row were sorted."""
    n = key.shape[-1]
    if (
        FEW < n <= RANKED_ROW // key.itemsize
        and (at_rank := here().backend.extras.get("at_rank")) is not None
    ):
        return at_rank(key, rank)
    ranked = np.take_along_axis(np.partition(key, np.unique(rank), axis=-1), rank, -1)
    return np.argmax(key == ranked, axis=-1, keepdims=True)


class _AtRank(NamedTuple):
    """The first element that would come at `rank` if the row were sorted."""

    rank: int

    def in_array(self, key: np.ndarray) -> np.ndarray:
        return _at_rank(key, np.full((*key.shape[:-1], 1), self.rank))

    def in_tensor(self, key: Tensor, dim: int) -> Tensor:
        return kernels.first_at_rank(key, dim, self.rank)


class _Median(NamedTuple):
    """The lower of the two middle elements, or the first NaN unless NaN are ignored."""

    is_float: bool
    ignore_nan: bool

    def _rank(self, valid: Any, n: int) -> Any:
        """The rank in rows of n elements, of which `valid` are not NaN: numbers, arrays or tensors."""
        middle = abs(valid - 1) // 2
        return middle if self.ignore_nan else middle + (valid < n) * (valid - middle)

    def in_array(self, key: np.ndarray) -> np.ndarray:
        n, nan = key.shape[-1], np.iinfo(key.dtype).max
        valid = np.full((*key.shape[:-1], 1), n)
        if self.is_float and (key.max(-1) == nan).any():
            valid -= (key == nan).sum(-1, keepdims=True)
        return _at_rank(key, self._rank(valid, n))

    def in_tensor(self, key: Tensor, dim: int) -> Tensor:
        n, nan = key.spec.shape[dim], 2 ** (8 * key.spec.dtype.itemsize) - 1
        valid = n - (key == nan).sum(dim, keepdim=True) if self.is_float else n
        return kernels.first_at_rank(key, dim, self._rank(valid, n))


class _Mode(NamedTuple):
    """The last element of the longest run of equal elements; of several such runs, the first. All NaN are equal."""

    def in_array(self, key: np.ndarray) -> np.ndarray:
        order = stable_order(key)
        ordered = np.take_along_axis(key, order, -1)
        position = np.arange(key.shape[-1])
        starts = np.ones(key.shape, bool)
        starts[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
        first = np.maximum.accumulate(np.where(starts, position, 0), axis=-1)
        return np.take_along_axis(order, np.argmax(position - first, axis=-1, keepdims=True), -1)

    def in_tensor(self, key: Tensor, dim: int) -> Tensor:
        return kernels.last_of_longest_run(key, dim)


def _select(name: str, input: Tensor, dim: int, keepdim: bool, choose: _Choice) -> Any:
    result = _SELECTIONS[name](input, dim, bool(keepdim), choose)
    return return_type(name, ("values", "indices"))(result)


@public("function method", out="apart")
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Compute (values, indices) of the `k`-th smallest element along `dim`, counted from 1.

    Raises: RuntimeError if there are fewer than `k`.

    >>> import weft as torch
    >>> torch.kthvalue(torch.tensor([3, 1, 2]), 2).values
    tensor(2)
    """
    dim = dim_of(input, dim, "kthvalue")
    check_not_empty(input, dim, "kthvalue")
    if not 1 <= k <= (input.spec.shape[dim] if input.spec.shape else 1):
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {dim}\nk = {k}, shape {list(input.spec.shape)}"
        )
    _check_selectable(input, "kthvalue_cpu")

    return _select("kthvalue", input, dim, keepdim, _AtRank(k - 1))


def _define_median(name: str, ignore_nan: bool) -> ArrayOp:
    """The public function. Returns the op of the median of all elements."""
    of_all = ArrayOp(_median_of_all, _median_of_all_rule, name=name)
    of_all.spec_rule(lambda input, choose: contiguous_spec((), input.dtype))

    of_nan = "NaN is left out" if ignore_nan else "NaN if there is one"

    @public("function method", name=name, out=True, words={"of_nan": of_nan})
    def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        """Return the median of all elements, or (values, indices) along `dim`: the lower one of two; {of_nan}.

        >>> import weft as torch
        >>> torch.{name}(torch.tensor([4.0, 1.0, 3.0, 2.0]))
        tensor(2.)
        """
        check_tensor(input, name)
        choose = _Median(input.spec.dtype.is_floating_point, ignore_nan)
        if dim is None:
            check_comparable(input, "median_cpu")
            return of_all(input, choose)
        dim = dim_of(input, dim, name)
        check_not_empty(input, dim, "median")  # nanmedian's error has this name, too
        check_comparable(input, "median_out")
        return _select(name, input, dim, keepdim, choose)

    return of_all


def _median_of_all(input: Tensor, choose: _Choice) -> Tensor:
    spec = input.spec
    if spec.numel == 0:
        return on_device(np.array(np.nan), spec.device, spec.dtype)
    return _chosen(input.reshape(-1), 0, False, choose)[0]


def _median_of_all_rule(ct, out, input, choose):
    """Equal elements share the cotangent."""
    return split_among_ties(ct, (input == out) | (input.isnan() & out.isnan()), None)


_MEDIANS_OF_ALL = _define_median("median", ignore_nan=False), _define_median("nanmedian", ignore_nan=True)


@public("function method", out=True)
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """(values, indices): the most frequent element along `dim`, the smallest of several, and where it is last.

    >>> import weft as torch
    >>> torch.mode(torch.tensor([1, 3, 3, 2, 2]))
    torch.return_types.mode(
    values=tensor(2),
    indices=tensor(4))
    """
    dim = dim_of(input, dim, "mode")
    check_not_empty(input, dim, "mode")
    _check_selectable(input, "mode_cpu")
    return _select("mode", input, dim, keepdim, _Mode())
