"""Writing by index tensors: scatter, index_add, index_copy, index_fill, index_reduce, put; and writing into views.

Where an index names an element twice, the last value stays, or all are combined in order. Nothing is written if an
index is out of range.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..core.dtype import LEGACY_NAMES, DType, bool_, int64
from ..core.op import add_inplace, check_inplace, public
from ..core.spec import contiguous_spec, spec
from ..core.tensor import Tensor, empty, make, wrap_dim
from ..engine import scalar as s
from ..families.indexed import Put, apart
from ..families.map import is_operand
from .creation import new
from .filling import check_number, fill_
from .gather import along, as_vector, bounds_error, check_index, flat, flat_error, out_of_range_in_self
from .indexing import add_elements, at
from .masking import contiguous_copy


def _copy_error(index: int, dim: int, size: int) -> Exception:
    return IndexError(f"index_copy_(): index {index} is out of bounds for dimension {dim} with size {size}")


SCATTER = Put("scatter_", along, error=bounds_error)
INDEX_ADD = Put("index_add_", at, error=out_of_range_in_self)
INDEX_COPY = Put("index_copy_", at, error=_copy_error)
INDEX_FILL = Put("index_fill_", at, wrap=True)
PUT_FLAT = Put("put_", at, wrap=True, error=flat_error)


# ---- Reductions: (old, new) -> what is stored --------------------------------------------------------------------------


def _is_bool(value: Any) -> bool:
    return getattr(value, "dtype", None) is bool_


def _multiply(old: Any, new: Any) -> Any:
    return old & new if _is_bool(old) else old * new


def _largest(old: Any, new: Any) -> Any:
    return old | new if _is_bool(old) else s.where((old < new) | s.isnan(new), new, old)


def _smallest(old: Any, new: Any) -> Any:
    return old & new if _is_bool(old) else s.where((new < old) | s.isnan(new), new, old)


_COMBINE: dict[str, Callable] = {
    "sum": add_elements,
    "mean": add_elements,
    "prod": _multiply,
    "amax": _largest,
    "amin": _smallest,
}


def _identity(reduce: str, dtype: DType) -> Any:
    """What leaves every other value as it is."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    largest = reduce == "amin"
    if dtype is bool_:
        return largest
    if dtype.is_floating_point:
        return float("inf") if largest else float("-inf")
    bits = 8 * dtype.itemsize - (dtype.kind == "i")
    return 2**bits - 1 if largest else (-(2**bits) if dtype.kind == "i" else 0)


def _scalar(value: Any, like: Tensor) -> Tensor:
    """A number as a 0-dim tensor of the dtype of `like`."""
    return fill_(empty(contiguous_spec((), like.spec.dtype, like.spec.device)), value)


def _reduce(put: Callable[..., Any], self: Tensor, source: Tensor, reduce: str, include_self: bool) -> Tensor:
    """Combine `source` into `self`; `put(target, source, combine)` knows where to."""
    if not include_self:
        put(self, _scalar(_identity(reduce, self.spec.dtype), self), None)
    put(self, source, _COMBINE[reduce])
    if reduce == "mean":
        counts = new(self.spec.shape, int64, self.spec.device)
        fill_(counts, int(include_self))
        put(counts, _scalar(1, counts), add_elements)
        counts = counts.clamp(min=1)
        self.div_(counts, rounding_mode=None if self.spec.dtype.category > 1 else "floor")
    return self


# ---- scatter -------------------------------------------------------------------------------------------------------


def _scatter(
    self: Tensor, dim: int, index: Tensor, source: Tensor, combine: Callable | None, name: str
) -> Tensor:
    dim = wrap_dim(dim, len(self.spec.shape))
    if index.spec.numel:
        check_index(index, name, "Expected dtype int32/int64 for index")
    if source.spec.dtype is not self.spec.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    check_inplace(self, name)
    if not index.spec.numel:
        return self
    source = _covered(self, dim, index, source)
    return SCATTER(self, (index,), source, dim, combine)


def _covered(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """The part of `source` that an index reads; a number serves every position."""
    sizes, wanted, given = self.spec.shape, index.spec.shape, source.spec.shape
    dims = max(len(wanted), 1)
    if max(len(sizes), 1) != dims:
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    number = not given and source.spec.numel == 1 and not (wanted and len(sizes) == 0)
    if given and max(len(given), 1) != dims:
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    too_long = any(a > b for other, (a, b) in enumerate(zip(wanted, sizes, strict=False)) if other != dim)
    if too_long or not number and any(a > b for a, b in zip(wanted, given or (1,), strict=False)):
        beyond = "" if number else f" and to be no larger size than src {list(given)}"
        raise RuntimeError(
            f"Expected index {list(wanted)} to be no larger than self {list(sizes)} apart from dimension {dim}{beyond}"
        )
    if number or given == wanted:
        return source
    own = source.spec
    return make(
        source._storage,
        source._start,
        spec(wanted, own.stride[: len(wanted)], own.dtype, own.device, own.conj, own.neg),
    )


def scatter_(
    self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """self[index[i][j]][j] = src[i][j] for dim 0, and so on, in place; `src` is a tensor or a number.

    reduce: "add" or "multiply" combine instead.

    Raises: RuntimeError for indices out of range; nothing is written then.
    """
    if src is None:
        src = value
    if not is_operand(src):
        raise TypeError(
            f"scatter_() received an invalid combination of arguments: src is {type(src).__name__}"
        )
    if reduce is not None and reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if not isinstance(src, Tensor):
        check_number(src, self.spec.dtype)
        src = _scalar(src, self)
    elif reduce is not None:
        warnings.warn(
            "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch "
            "release. Use torch.scatter_reduce instead for more reduction options.",
            UserWarning,
            stacklevel=2,
        )
    combine = {None: None, "add": add_elements, "multiply": _multiply}[reduce]
    return _scatter(self, dim, index, src, combine, "scatter")


@public("function method", out="exact")
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """A copy of `input` with copy[index[i][j]][j] = src[i][j] for dim 0, and so on; `src` is a tensor or a number.

    >>> import weft as torch
    >>> torch.zeros(2, 2).scatter(1, torch.tensor([[1], [0]]), 5.0)
    tensor([[0., 5.],
            [5., 0.]])
    """
    return scatter_(contiguous_copy(input), dim, index, src, value=value, reduce=reduce)


def scatter_add_(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """self[index[i][j]][j] += src[i][j] for dim 0, and so on, in place."""
    return _scatter(self, dim, index, src, add_elements, "scatter")


@public("function method", out="exact")
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy of `input` with copy[index[i][j]][j] += src[i][j] for dim 0, and so on.

    >>> import weft as torch
    >>> torch.zeros(2).scatter_add(0, torch.tensor([0, 0]), torch.tensor([1.0, 2.0]))
    tensor([3., 0.])
    """
    return scatter_add_(contiguous_copy(input), dim, index, src)


def scatter_reduce_(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Reduce all `src` that go to one element ("sum", "prod", "mean", "amax", "amin"), in place.

    include_self: the element that is there counts too.
    """
    if reduce not in _COMBINE:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if src.spec.dtype is not self.spec.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if index.spec.numel:
        src = _covered(self, wrap_dim(dim, len(self.spec.shape)), index, src)
    index, src = apart(index, self), apart(src, self)

    def put(target: Tensor, source: Tensor, combine: Callable | None) -> None:
        _scatter(target, dim, index, source, combine, "scatter")

    return _reduce(put, self, src, reduce, include_self)


@public("function method", out="exact")
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy of `input` with all `src` that go to one element reduced ("sum", "prod", "mean", "amax", "amin").

    >>> import weft as torch
    >>> torch.zeros(2).scatter_reduce(0, torch.tensor([0, 0]), torch.tensor([1.0, 3.0]), "mean", include_self=False)
    tensor([2., 0.])
    """
    return scatter_reduce_(contiguous_copy(input), dim, index, src, reduce, include_self=include_self)


# ---- index_add, index_copy, index_fill, index_reduce ---------------------------------------------------------------------


def _check_source(self: Tensor, dim: int, index: Tensor, source: Tensor, name: str) -> int:
    """The dim, wrapped.

    Raises: RuntimeError unless `source` has the shape of `self`, but for `dim`, where it has as many as `index`.
    """
    dim = wrap_dim(dim, len(self.spec.shape))
    if len(index.spec.shape) > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.dim()} with type: {LEGACY_NAMES[index.dtype]}"
        )
    check_index(index, name, "Expected dtype int32/int64 for index but got: {}")
    if self.spec.dtype is not source.spec.dtype:
        raise RuntimeError(
            f"{name}(): self ({LEGACY_NAMES[self.dtype]}) and source ({LEGACY_NAMES[source.dtype]}) must have the same scalar type"
        )
    if source.spec.shape and dim >= source.dim():
        raise RuntimeError(
            f"{name}(): Indexing dim {dim} is out of bounds of the source tensor with dim {source.dim()}"
        )
    count = source.spec.shape[dim] if source.spec.shape else 1
    if index.spec.numel != count:
        raise RuntimeError(
            f"{name}(): Number of indices ({index.spec.numel}) should be equal to source.size(dim): ({count}), for dim: {dim}"
        )
    _check_slices(self, source, dim)
    return dim


def _check_slices(self: Tensor, source: Tensor, dim: int) -> None:
    a, b = self.spec.shape, source.spec.shape
    if len(a) != len(b) or any(x != y for other, (x, y) in enumerate(zip(a, b, strict=True)) if other != dim):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(a)} source.shape = {list(b)}"
        )


def index_add_(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """self[index[i]] += alpha * source[i] for dim 0, self[:, index[i]] += alpha * source[:, i] for dim 1, and so on."""
    dim = _check_source(self, dim, index, source, "index_add_")
    check_inplace(self, "index_add")
    if alpha != 1:
        check_number(alpha, self.spec.dtype)
        source = source * (int(alpha) if self.spec.dtype.category == 1 else alpha)
    INDEX_ADD(as_vector(self), (as_vector(index),), as_vector(source), (dim,), add_elements)
    return self


@public("function method", out="exact")
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """A copy of `input` to whose slices along `dim`, numbered by `index`, those of alpha * `source` are added.

    >>> import weft as torch
    >>> torch.zeros(2).index_add(0, torch.tensor([1, 1]), torch.tensor([1.0, 2.0]))
    tensor([0., 3.])
    """
    return index_add_(contiguous_copy(input), dim, index, source, alpha=alpha)


def index_copy_(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """self[index[i]] = source[i] for dim 0, self[:, index[i]] = source[:, i] for dim 1, and so on."""
    dim = wrap_dim(dim, len(self.spec.shape))
    if index.dim() > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.dim()})")
    check_index(index, "index_copy_", "Expected a long tensor for index, but got {}", (int64,))
    if self.spec.dtype is not source.spec.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{LEGACY_NAMES[self.dtype]} and (source) {LEGACY_NAMES[source.dtype]}"
        )
    count = index.spec.numel
    if not source.spec.shape and count != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {count})")
    if source.dim() != self.dim() and source.dim() and self.dim():
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. "
            f"Source dimensionality ({source.dim()}), destination dimensionality ({self.dim()})"
        )
    target, source = as_vector(self), as_vector(source)
    a, b = ([size for other, size in enumerate(t.spec.shape) if other != dim] for t in (target, source))
    if a != b:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. "
            f"Destination slice shape: {a} at dimension {dim} and source slice shape: {b} at dimension {dim}."
        )
    if count != source.spec.shape[dim]:
        raise IndexError(
            f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({source.spec.shape[dim]})"
        )
    check_inplace(self, "index_copy")
    INDEX_COPY(target, (as_vector(index),), source, (dim,))
    return self


@public("function method", out="exact")
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy of `input` whose slices along `dim`, numbered by `index`, are those of `source`."""
    return index_copy_(contiguous_copy(input), dim, index, source)


def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Write `value`, a number or a 0-dim tensor, to the slices along `dim` that `index` numbers."""
    dim = wrap_dim(dim, len(self.spec.shape))
    if index.spec.dtype is not int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.dim() > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if isinstance(value, Tensor) and value.spec.shape:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension(s)."
        )
    is_complex = value.spec.dtype.is_complex if isinstance(value, Tensor) else isinstance(value, complex)
    if is_complex and not self.spec.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    check_inplace(self, "index_fill")
    value = value if isinstance(value, Tensor) else _scalar(value, self)
    INDEX_FILL(as_vector(self), (as_vector(index),), value, (dim,))
    return self


@public("function method")
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """A copy of `input` with `value` in the slices along `dim` that `index` numbers."""
    return index_fill_(input.clone(), dim, index, value)


def index_reduce_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Reduce the slices of `source` that go to one slice of `self` ("prod", "mean", "amax", "amin"), in place."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}."
        )
    dim = _check_source(self, dim, index, source, "index_reduce")
    check_inplace(self, "index_reduce")
    index, source = apart(as_vector(index), self), apart(as_vector(source), self)

    def put(target: Tensor, source: Tensor, combine: Callable | None) -> None:
        INDEX_ADD(as_vector(target), (index,), source, (dim,), combine)

    return _reduce(put, self, source, reduce, include_self)


@public("function method", out="exact")
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy of `input` with the slices of `source` that go to one slice reduced ("prod", "mean", "amax", "amin")."""
    return index_reduce_(contiguous_copy(input), dim, index, source, reduce, include_self=include_self)


def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write the elements of `source` to the positions `index` of this tensor read as a vector, or add them."""
    check_index(index, "put_", "Expected a long tensor for index, but got {}", (int64,))
    if self.spec.dtype is not source.spec.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{LEGACY_NAMES[self.dtype]} and source.dtype = {LEGACY_NAMES[source.dtype]}"
        )
    if index.spec.numel != source.spec.numel:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.spec.numel}, index.numel() = {index.spec.numel}"
        )
    if index.spec.numel and not self.spec.numel:
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    check_inplace(self, "put")
    own = self.spec
    plain = own.is_contiguous and not own.conj and not own.neg
    target = self if plain else contiguous_copy(self)
    PUT_FLAT(
        flat(target), (index.reshape(-1),), source.reshape(-1), (0,), add_elements if accumulate else None
    )
    return self if plain else self.copy_(target)


@public("function method")
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of `input` with the elements of `source` at the positions `index` of its elements, or added to them."""
    return put_(input.clone(), index, source, accumulate)


for _function in (
    scatter_,
    scatter_add_,
    scatter_reduce_,
    index_add_,
    index_copy_,
    index_fill_,
    index_reduce_,
    put_,
):
    add_inplace(_function.__name__.removesuffix("_"), _function)


# ---- Writing into views ----------------------------------------------------------------------------------------------


def _embedded(input: Tensor, view: Callable[[Tensor], Tensor], src: Tensor) -> Tensor:
    """A copy of `input` with `src` in a view of it."""
    result = _same_strides(input)
    place = view(result)
    if place.spec.shape != src.spec.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
            f"slice size = {list(place.shape)}"
        )
    place.copy_(src)
    return result


def _same_strides(input: Tensor) -> Tensor:
    """A copy that keeps the strides, with whatever lies between the elements."""
    own = input.spec
    if own.repeats or not own.numel:
        return input.clone()
    copied = make(input._storage, input._start, contiguous_spec((own.span,), own.dtype, own.device)).clone()
    return make(copied._storage, 0, own)


@public("function method")
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of `input` with `src` as its slice number `index` along `dim`.

    >>> import weft as torch
    >>> torch.zeros(2, 2).select_scatter(torch.ones(2), 0, 0)
    tensor([[1., 1.],
            [0., 0.]])
    """
    return _embedded(input, lambda copy: copy.select(dim, index), src)


@public("function method")
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of `input` with `src` in its slice start:end:step along `dim`."""
    dim = wrap_dim(dim, input.dim())
    return _embedded(input, lambda copy: copy[(*[slice(None)] * dim, slice(start, end, step))], src)


@public("function method")
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of `input` with `src` on a diagonal."""
    return _embedded(input, lambda copy: copy.diagonal(offset, dim1, dim2), src)


@public("function method")
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of `input` with `src` in the view that `as_strided` gives."""
    return _embedded(input, lambda copy: copy.as_strided(size, stride, storage_offset), src)


# ---- one_hot ---------------------------------------------------------------------------------------------------------


@public("function", name="nn.functional.one_hot")
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Rows of zeros with a one at the position that `input` gives.

    Shapes: [...] -> [..., num_classes]; as many classes as the largest number needs, unless given.
    """
    if input.spec.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not input.spec.numel:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return fill_(new((*input.spec.shape, num_classes), int64, input.spec.device), 0)
    if int(input.min()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    largest = int(input.max())
    if num_classes == -1:
        num_classes = largest + 1
    elif num_classes < 1 or largest >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    result = fill_(new((*input.spec.shape, num_classes), int64, input.spec.device), 0)
    return scatter_(result, -1, input.unsqueeze(-1), 1)
