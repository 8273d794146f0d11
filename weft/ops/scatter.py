"""Writing by index tensors: scatter, index_add, index_copy, index_fill, index_reduce, put; and writing into views.

Where an index names an element twice, the last value stays, or all are combined in order. Nothing is written if an
index is out of range.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..core.derivative import Derivative, Recorded, differentiate
from ..core.dtype import FLOAT8, LEGACY_NAMES, UNSIGNED_WIDE, DType, bool_, float32, int64
from ..core.iteration import broadcast_stride
from ..core.op import add_inplace, check_inplace, needs_recording, public, record, recorded_write, unrecorded
from ..core.spec import Spec, contiguous_spec
from ..core.tensor import Tensor, empty, make
from ..engine import scalar as s
from ..families.faces import is_operand
from ..families.indexed import Access, Put, add_elements, unshared
from ..families.view import View
from .creation import new
from .filling import check_number, fill_
from .gather import (
    along,
    bounds_error,
    check_dtype,
    check_index,
    flat,
    flat_error,
    out_of_range_in_self,
    slices,
)
from .indexing import at
from .masking import contiguous_copy
from .scatter_derivatives import padded, reduction_derivative
from .views import AS_STRIDED, DIAGONAL, SELECT, SLICE, check_bounds

# ---- What goes where: rules on metadata --------------------------------------------------------------------------------


def _scattered(own: Spec, dim: int, index: Spec) -> Access:
    if index.numel:
        check_dtype(index, "scatter(): Expected dtype int32/int64 for index")
        if max(len(own.shape), 1) != max(len(index.shape), 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    return along(own, dim, index)


def _fit_source(value: Spec, own: Spec, static: int, access: Access) -> tuple[int, ...]:
    """The strides of the source of scatter; a 0-dim one serves every position."""
    if value.dtype is not own.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    wanted, given, dim = access.shape, value.shape, access.dims[0]
    if not wanted.numel():
        return access.stride
    if given and len(given) != max(len(wanted), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    beyond_self = any(a > b for d, (a, b) in enumerate(zip(wanted, own.shape, strict=False)) if d != dim)
    if beyond_self or any(a > b for a, b in zip(wanted, given, strict=False)):
        raise RuntimeError(
            f"Expected index {list(wanted)} to be no larger than self {list(own.shape)} apart from dimension {dim}"
            + (f" and to be no larger size than src {list(given)}" if given else "")
        )
    return value.stride[: len(wanted)] if given else (0,) * len(wanted)


def _numbered(name: str) -> Callable[[Spec, int, Spec], Access]:
    """The rule of an op that takes slices by number: an index of int32 or int64 in one dimension."""

    def rule(own: Spec, dim: int, index: Spec) -> Access:
        if len(index.shape) > 1:
            raise IndexError(
                f"{name}(): Index is supposed to be a vector, but got dim: {len(index.shape)} with type: "
                f"{LEGACY_NAMES[index.dtype]}"
            )
        check_dtype(index, f"{name}(): Expected dtype int32/int64 for index but got: {{}}")
        if not own.shape and index.numel != 1:
            raise RuntimeError(
                f"{name}(): Number of indices ({index.numel}) should be equal to source.size(dim): (1)"
            )
        return slices(own, dim, index)

    return rule


def _fit_slices(name: str) -> Callable[[Spec, Spec, int, Access], tuple[int, ...]]:
    """The source has the shape of the target, but for the dim of the index."""

    def fit(value: Spec, own: Spec, static: int, access: Access) -> tuple[int, ...]:
        dim = access.dims[0]
        if own.dtype is not value.dtype:
            raise RuntimeError(
                f"{name}(): self ({LEGACY_NAMES[own.dtype]}) and source ({LEGACY_NAMES[value.dtype]}) must have the same "
                "scalar type"
            )
        if value.shape and dim >= len(value.shape):
            raise RuntimeError(
                f"{name}(): Indexing dim {dim} is out of bounds of the source tensor with dim {len(value.shape)}"
            )
        count, given = (
            list(shape or (1,))[min(dim, len(shape or (1,)) - 1)] for shape in (access.shape, value.shape)
        )
        if count != given:
            raise RuntimeError(
                f"{name}(): Number of indices ({count}) should be equal to source.size(dim): ({given}), for dim: {dim}"
            )
        if value.shape != access.shape:
            raise RuntimeError(
                "source tensor shape must match self tensor shape, excluding the specified dimension. "
                f"Got self.shape = {list(own.shape)} source.shape = {list(value.shape)}"
            )
        return value.stride

    return fit


def _copied(own: Spec, dim: int, index: Spec) -> Access:
    if len(index.shape) > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {len(index.shape)})")
    check_dtype(index, "index_copy_(): Expected a long tensor for index, but got {}", (int64,))
    if not own.shape and index.numel != 1:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.numel}) should be equal to source.size(dim) (1)"
        )
    return slices(own, dim, index)


def _fit_copied(value: Spec, own: Spec, static: int, access: Access) -> tuple[int, ...]:
    if own.dtype is not value.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{LEGACY_NAMES[own.dtype]} and (source) {LEGACY_NAMES[value.dtype]}"
        )
    dim = access.dims[0]
    given, wanted = list(value.shape or (1,)), list(access.shape or (1,))
    if not value.shape and wanted[dim] != 1:
        raise IndexError(
            f"index_copy_(): When source is scalar, index should have one element (got {wanted[dim]})"
        )
    if len(given) != len(wanted) and value.shape and own.shape:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. "
            f"Source dimensionality ({len(given)}), destination dimensionality ({len(wanted)})"
        )
    count = given.pop(min(dim, len(given) - 1))
    numbers = wanted.pop(dim)
    if given != wanted:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, wanted))} at dimension {dim} and source slice shape: {' '.join(map(str, given))} at "
            f"dimension {dim}."
        )
    if count != numbers:
        raise IndexError(
            f"index_copy_(): Number of indices ({numbers}) should be equal to source.size(dim) ({count})"
        )
    return broadcast_stride(value, access.shape) if access.shape else ()


def _filled(own: Spec, dim: int, index: Spec) -> Access:
    if index.dtype is not int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if len(index.shape) > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    return slices(own, dim, index)


def _copy_error(index: int, dim: int, size: int) -> Exception:
    return IndexError(f"index_copy_(): index {index} is out of bounds for dimension {dim} with size {size}")


class _Scatter(Put):
    def __init__(self, name: str, node_name: str):
        super().__init__(name, _scattered, fit=_fit_source, error=bounds_error)
        self.node_name = node_name
        differentiate(self, self.target_rule, self._source_rule)

    @property
    def _source_rule(self) -> Callable:
        """What lies behind the sizes of the index was not used."""

        def rule(ct, out, target, value, *indices, static, specs):
            where, combine = static
            self._check_smooth(combine)
            return padded(self.take(ct, indices, where), specs[1].shape)

        return rule


SCATTER = _Scatter("scatter_", "ScatterBackward0")
SCATTER_NUMBER = _Scatter("scatter_.value", "ScatterBackward1")
SCATTER_ADD = _Scatter("scatter_add_", "ScatterAddBackward0")
INDEX_ADD = Put(
    "index_add_", _numbered("index_add_"), fit=_fit_slices("index_add_"), error=out_of_range_in_self
)
INDEX_REDUCE = Put("index_reduce_", _numbered("index_reduce"), fit=_fit_slices("index_reduce"))
INDEX_WRITE = Put("index_reduce_", slices, error=out_of_range_in_self)
INDEX_COPY = Put("index_copy_", _copied, fit=_fit_copied, error=_copy_error)
INDEX_FILL = Put("index_fill_", _filled, wrap=True)
INDEX_FILL_TENSOR = Put("index_fill_.tensor", _filled, wrap=True)
INDEX_FILL_TENSOR.node_name = "IndexFillBackward1"  # type: ignore[attr-defined]


def _filled_with_back(ct, out, target, value, index, where, combine):
    """Where an index comes twice, the value is written once."""
    size = ct.spec.shape[where] if ct.spec.shape else 1
    return INDEX_FILL.take(ct, ((index % size).unique(),), where).sum()


differentiate(INDEX_FILL_TENSOR, INDEX_FILL_TENSOR.target_rule, _filled_with_back)
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


class _Reduction:
    """A write that reduces `source` into the elements of `self` that `put` finds by the index, in place."""

    def __init__(self, name: str, put: Put):
        self.name = name
        self.put = put

        def product(target: Tensor, source: Tensor, index: Tensor, dim: int, include_self: bool) -> Tensor:
            return self(target.clone(), source, index, dim, "prod", include_self)

        self.derivative = reduction_derivative(put, product)

    def __call__(
        self, target: Tensor, source: Tensor, index: Tensor, dim: int, reduce: str, include_self: bool
    ) -> Tensor:
        def put(target: Tensor, source: Tensor, combine: Callable | None) -> None:
            self.put(target, (index,), source, dim, combine)

        write = (put, target, source, reduce, include_self)
        if needs_recording((target, source)):
            inputs = (target, source, index, dim, reduce, include_self)
            return recorded_write(self, target, inputs, (), _reduce, *write)
        return _reduce(*write)


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
        own, rounding = self.spec.dtype, None if self.spec.dtype.category > 1 else "floor"
        if own in FLOAT8 | UNSIGNED_WIDE:  # they have no common dtype with the counts
            wide = float32 if own in FLOAT8 else own
            self.copy_(self.to(wide).div(counts.to(wide), rounding_mode=rounding))
        else:
            self.div_(counts, rounding_mode=rounding)
    return self


_SCATTER_REDUCE = _Reduction("scatter_reduce", SCATTER)
_INDEX_REDUCE = _Reduction("index_reduce", INDEX_WRITE)


# ---- scatter -------------------------------------------------------------------------------------------------------


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
    check_index(index, "scatter")
    op = SCATTER
    if not isinstance(src, Tensor):
        op = SCATTER_NUMBER
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
    return op(self, (index,), src, dim, combine)


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
    check_index(index, "scatter_add")
    return SCATTER_ADD(self, (index,), src, dim, add_elements)


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
    SCATTER.check(self, (index,), src, dim, _COMBINE[reduce])
    index, src = unshared(index, self), unshared(src, self)

    return _SCATTER_REDUCE(self, src, index, dim, reduce, include_self)


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


def index_add_(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """self[index[i]] += alpha * source[i] for dim 0, self[:, index[i]] += alpha * source[:, i] for dim 1, and so on."""
    if alpha != 1:
        check_number(alpha, self.spec.dtype)
        INDEX_ADD.check(self, (index,), source, dim, add_elements)
        whole = {0: bool, 1: int}.get(self.spec.dtype.category)
        source = source * (whole(alpha) if whole else alpha)
    return INDEX_ADD(self, (index,), source, dim, add_elements)


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
    return INDEX_COPY(self, (index,), source, dim)


@public("function method", out="exact")
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy of `input` whose slices along `dim`, numbered by `index`, are those of `source`."""
    return index_copy_(contiguous_copy(input), dim, index, source)


def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Write `value`, a number or a 0-dim tensor, to the slices along `dim` that `index` numbers."""
    if isinstance(value, Tensor) and value.spec.shape:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension(s)."
        )
    is_complex = value.spec.dtype.is_complex if isinstance(value, Tensor) else isinstance(value, complex)
    if is_complex and not self.spec.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    if isinstance(value, Tensor):
        return INDEX_FILL_TENSOR(self, (index,), value, dim)
    return INDEX_FILL(self, (index,), _scalar(value, self), dim)


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
    INDEX_REDUCE.check(self, (index,), source, dim, _COMBINE[reduce])
    index, source = unshared(index, self), unshared(source, self)

    return _INDEX_REDUCE(self, source, index, dim, reduce, include_self)


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
    if needs_recording((self, source)):
        return recorded_write(
            _PUT, self, (self, index, source, accumulate), (), put_, self, index, source, accumulate
        )
    own = self.spec
    plain = own.is_contiguous and not own.conj and not own.neg
    target = self if plain else contiguous_copy(self)
    PUT_FLAT(
        flat(target), (index.reshape(-1),), source.reshape(-1), (0,), add_elements if accumulate else None
    )
    return self if plain else self.copy_(target)


def _put_target_back(ct, out, a, index, source, accumulate):
    return ct if accumulate else put(ct, index, ct.new_zeros(()).expand(index.shape))


_PUT = Recorded(
    "put",
    Derivative(
        _put_target_back,
        None,
        lambda ct, out, a, index, source, accumulate, *, specs: ct.take(index).reshape(specs[2].shape),
    ),
)


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


class _Embedded:
    """A copy of a tensor with another one in a view of it; the arguments are those of the view."""

    def __init__(self, view: View):
        self.name = f"{view.name}_scatter"
        self.view = view
        self.derivative = Derivative(
            lambda ct, out, input, src, *static, specs: self(ct, ct.new_zeros(specs[1].shape), *static),
            lambda ct, out, input, src, *static: view(ct, *static),
        )

    def __call__(self, input: Tensor, src: Tensor, *static: Any) -> Tensor:
        with unrecorded():
            result = _embedded(input, self.view, src, static)
        return record(self, result, (input, src), static) if needs_recording((input, src)) else result


def _embedded(input: Tensor, view: View, src: Tensor, static: tuple) -> Tensor:
    result = _same_strides(input)
    place = view(result, *static)
    if view is AS_STRIDED:
        check_bounds(place)
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


SELECT_SCATTER = _Embedded(SELECT)
SLICE_SCATTER = _Embedded(SLICE)
DIAGONAL_SCATTER = _Embedded(DIAGONAL)
AS_STRIDED_SCATTER = _Embedded(AS_STRIDED)


@public("function method")
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of `input` with `src` as its slice number `index` along `dim`.

    >>> import weft as torch
    >>> torch.zeros(2, 2).select_scatter(torch.ones(2), 0, 0)
    tensor([[1., 1.],
            [0., 0.]])
    """
    return SELECT_SCATTER(input, src, dim, index)


@public("function method")
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of `input` with `src` in its slice start:end:step along `dim`."""
    return SLICE_SCATTER(input, src, dim, start, end, step)


@public("function method")
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of `input` with `src` on a diagonal."""
    return DIAGONAL_SCATTER(input, src, offset, dim1, dim2)


@public("function method")
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of `input` with `src` in the view that `as_strided` gives."""
    return AS_STRIDED_SCATTER(input, src, tuple(size), tuple(stride), storage_offset or 0)


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
