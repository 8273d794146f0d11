"""Writes to slices by number: index_add, index_copy, index_fill, index_reduce.

If a number comes twice, the last slice is stored, or all slices are combined in order. Nothing is written if a number is
out of range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.derivative import differentiate
from ...core.dtype import LEGACY_NAMES, int64
from ...core.iteration import broadcast_stride
from ...core.limits import check_number
from ...core.public import add_inplace, public
from ...core.recording import check_recorded_write
from ...core.spec import Spec
from ...core.tensor import Tensor
from ...families.indexed import IndexMap, Scatter, add_elements, distinct, unshared
from .gather import check_dtype, out_of_range_in_self, slices
from .masking import check_read, contiguous_copy
from .scatter_reduction import COMBINE, Reduction, scalar_like


def _numbered(name: str) -> Callable[[Spec, int, Spec], IndexMap]:
    """The rule of an op that takes slices by number: an index of int32 or int64 in one dimension."""

    def rule(spec: Spec, dim: int, index: Spec) -> IndexMap:
        if len(index.shape) > 1:
            raise IndexError(
                f"{name}(): Index is supposed to be a vector, but got dim: {len(index.shape)} with type: "
                f"{LEGACY_NAMES[index.dtype]}"
            )
        check_dtype(index, f"{name}(): Expected dtype int32/int64 for index but got: {{}}")
        return slices(spec, dim, index)

    return rule


def _fit_slices(name: str) -> Callable[[Spec, Spec, int, IndexMap], tuple[int, ...]]:
    """The strides of the source, which must have the shape of the target in all dims but that of the index."""

    def fit(value: Spec, spec: Spec, static: int, access: IndexMap) -> tuple[int, ...]:
        dim = access.dims[0]
        if spec.dtype is not value.dtype:
            raise RuntimeError(
                f"{name}(): self ({LEGACY_NAMES[spec.dtype]}) and source ({LEGACY_NAMES[value.dtype]}) must have the same "
                "scalar type"
            )
        if value.shape and dim >= len(value.shape):
            raise RuntimeError(
                f"{name}(): Indexing dim {dim} is out of bounds of the source tensor with dim {len(value.shape)}"
            )
        count, given = (
            list(shape or (1,))[min(dim, len(shape or (1,)) - 1)] for shape in (access.shape, value.shape)
        )
        if count != given or not spec.shape and count != 1:
            kind = RuntimeError if value.shape else IndexError  # PyTorch reads a size that does not exist
            raise kind(
                f"{name}(): Number of indices ({count}) should be equal to source.size(dim): ({given}), for dim: {dim}"
            )
        if value.shape != access.shape:
            raise RuntimeError(
                "source tensor shape must match self tensor shape, excluding the specified dimension. "
                f"Got self.shape = {list(spec.shape)} source.shape = {list(value.shape)}"
            )
        return value.stride

    return fit


def _copied(spec: Spec, dim: int, index: Spec) -> IndexMap:
    if len(index.shape) > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {len(index.shape)})")
    access = slices(spec, dim, index)
    check_dtype(index, "index_copy_(): Expected a long tensor for index, but got {}", (int64,))
    return access


def _fit_copied(value: Spec, spec: Spec, static: int, access: IndexMap) -> tuple[int, ...]:
    dim = access.dims[0]
    source_sizes, slice_sizes = list(value.shape or (1,)), list(access.shape or (1,))
    if not value.shape and slice_sizes[dim] != 1:
        raise IndexError(
            f"index_copy_(): When source is scalar, index should have one element (got {slice_sizes[dim]})"
        )
    if len(source_sizes) != len(slice_sizes) and value.shape and spec.shape:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. "
            f"Source dimensionality ({len(source_sizes)}), destination dimensionality ({len(slice_sizes)})"
        )
    if spec.dtype is not value.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{LEGACY_NAMES[spec.dtype]} and (source) {LEGACY_NAMES[value.dtype]}"
        )
    count = source_sizes.pop(min(dim, len(source_sizes) - 1))
    numbers = slice_sizes.pop(dim)
    if source_sizes != slice_sizes:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, slice_sizes))} at dimension {dim} and source slice shape: {' '.join(map(str, source_sizes))} at "
            f"dimension {dim}."
        )
    if count != numbers:
        raise IndexError(
            f"index_copy_(): Number of indices ({numbers}) should be equal to source.size(dim) ({count})"
        )
    return broadcast_stride(value, access.shape) if access.shape else ()


def _filled(spec: Spec, dim: int, index: Spec) -> IndexMap:
    if len(index.shape) > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    return slices(spec, dim, index)


def _copy_error(index: int, dim: int, size: int) -> Exception:
    return IndexError(f"index_copy_(): index {index} is out of bounds for dimension {dim} with size {size}")


class _IndexAdd(Scatter):
    """Like PyTorch, it ignores indices that are out of range if the target has no elements and several dims."""

    def _check_empty(self, access: IndexMap, indices: Sequence[Tensor]) -> None:
        if len(access.shape) == 1:
            super()._check_empty(access, indices)


INDEX_ADD = _IndexAdd(
    "index_add_", _numbered("index_add_"), fit=_fit_slices("index_add_"), error=out_of_range_in_self
)
INDEX_REDUCE = Scatter("index_reduce_", _numbered("index_reduce"), fit=_fit_slices("index_reduce"))
INDEX_WRITE = Scatter("index_reduce_", slices, error=out_of_range_in_self, always_checked=True)
INDEX_COPY = Scatter("index_copy_", _copied, fit=_fit_copied, error=_copy_error)
_EXPANDED: dict[str, Any] = {"once": False, "deprecated": "tensor[mask] = scalar"}
INDEX_FILL = Scatter("index_fill_", _filled, wrap=True, **_EXPANDED)
INDEX_FILL_TENSOR = Scatter(
    "index_fill_.tensor", _filled, wrap=True, node_name="IndexFillBackward1", **_EXPANDED
)


def _copied_back(ct, out, target, value, index, where, combine, *, specs):
    """The cotangent of the source. The reshape is for a 0-dim source of a vector, and for a vector as source of a 0-dim tensor."""
    return INDEX_COPY.gather(ct, (index,), where).reshape(specs[1].shape)


def _filled_with_back(ct, out, target, value, index, where, combine):
    """If an index comes twice, the value is written once."""
    # Equal indices are not known without values, but the sum is one number.
    if not ct.spec.device.backend.has_memory:
        return ct.sum()
    size = ct.spec.shape[where] if ct.spec.shape else 1
    return INDEX_FILL.gather(ct, ((index % size).unique(),), where).sum()


differentiate(INDEX_COPY, INDEX_COPY.target_rule, _copied_back)
differentiate(INDEX_FILL_TENSOR, INDEX_FILL_TENSOR.target_rule, _filled_with_back)


_INDEX_REDUCE = Reduction("index_reduce", INDEX_WRITE, INDEX_WRITE)


def index_add_(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """Add: self[index[i]] += alpha * source[i] for dim 0, self[:, index[i]] += ... for dim 1, and so on."""
    if alpha != 1:
        check_number(alpha, self.spec.dtype)
        INDEX_ADD.check(self, (index,), source, dim, add_elements)
        whole = {0: bool, 1: int}.get(self.spec.dtype.category)
        source = distinct(source, self, "index_add_") * (whole(alpha) if whole else alpha)
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
    """Compute self[index[i]] = source[i] for dim 0, self[:, index[i]] = source[:, i] for dim 1, and so on."""
    return INDEX_COPY(self, (index,), source, dim)


@public("function method", out="exact", autocast="widen")
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy of `input` whose slices along `dim`, numbered by `index`, are those of `source`.

    >>> import weft as torch
    >>> torch.zeros(3).index_copy(0, torch.tensor([2, 0]), torch.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    return index_copy_(contiguous_copy(input), dim, index, source)


def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Write `value`, a number or a 0-dim tensor, to the slices along `dim` that `index` numbers."""
    check_recorded_write(self, value)
    if index.spec.dtype is not int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if isinstance(value, Tensor) and value.spec.shape:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension(s)."
        )
    is_complex = value.spec.dtype.is_complex if isinstance(value, Tensor) else isinstance(value, complex)
    if is_complex and not self.spec.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    if isinstance(value, Tensor):
        check_read(value, self.spec.dtype)
        return INDEX_FILL_TENSOR(self, (index,), unshared(value, self), dim)
    if self.spec.numel:
        check_number(value, self.spec.dtype)
    return INDEX_FILL(self, (index,), scalar_like(value, self), dim)


@public("function method")
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Return a copy of `input` with `value` in the slices along `dim` that `index` numbers.

    >>> import weft as torch
    >>> torch.zeros(3).index_fill(0, torch.tensor([2, 0]), 7.0)
    tensor([7., 0., 7.])
    """
    return index_fill_(input.clone(), dim, index, value)


def index_reduce_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Reduce the slices of `source` that go to one slice of `self` ("prod", "mean", "amax", "amin"), in place."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}."
        )
    check_recorded_write(self, source)
    INDEX_REDUCE.check(self, (index,), source, dim, COMBINE[reduce])
    index, source = [distinct(each, self, "index_reduce_") for each in (index, source)]

    return _INDEX_REDUCE(self, source, index, dim, reduce, include_self)


@public("function method", out="exact")
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy of `input` with the slices of `source` that go to one slice reduced ("prod", "mean", "amax", "amin").

    >>> import weft as torch
    >>> torch.ones(2).index_reduce(0, torch.tensor([1, 1]), torch.tensor([2.0, 3.0]), 'prod')
    tensor([1., 6.])
    """
    return index_reduce_(contiguous_copy(input), dim, index, source, reduce, include_self=include_self)


for _function in (index_add_, index_copy_, index_fill_, index_reduce_):
    add_inplace(_function.__name__.removesuffix("_"), _function)
