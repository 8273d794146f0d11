"""scatter, scatter_add and scatter_reduce: writes along a dimension, to the positions in an index tensor.

If an index names an element twice, the last value is stored, or all values are combined in order. Nothing is written if
an index is out of range.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...core.derivative import differentiate
from ...core.limits import check_number
from ...core.public import add_inplace, public
from ...core.recording import check_recorded_write
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor
from ...core.warn import user_level
from ...families.calls import is_operand
from ...families.indexed import IndexMap, Scatter, add_elements, distinct
from .gather import along, bounds_error, check_dtype, check_index
from .masking import contiguous_copy
from .scatter_derivatives import padded
from .scatter_reduction import COMBINE, Reduction, multiply, scalar_like


def _scattered(spec: Spec, dim: int, index: Spec) -> IndexMap:
    if index.numel:
        check_dtype(index, "scatter(): Expected dtype int32/int64 for index")
        if max(len(spec.shape), 1) != max(len(index.shape), 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    return along(spec, dim, index)


def _fit_source(value: Spec, spec: Spec, static: int, access: IndexMap) -> tuple[int, ...]:
    """The strides of the source of scatter, which reaches at least as far as the index."""
    if value.dtype is not spec.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if not access.shape.numel():
        return access.stride
    # As in PyTorch, a 0-dim tensor counts as a vector of one element.
    index_sizes, source_sizes, dim = access.shape or (1,), value.shape or (1,), access.dims[0]
    # PyTorch compares the sizes of the first dim before it reads those of the second.
    if len(value.shape) == 1 < len(index_sizes) and index_sizes[0] <= source_sizes[0]:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if len(source_sizes) != len(index_sizes):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    beyond_self = any(
        a > b for d, (a, b) in enumerate(zip(index_sizes, spec.shape, strict=False)) if d != dim
    )
    if beyond_self or any(a > b for a, b in zip(index_sizes, source_sizes, strict=True)):
        raise RuntimeError(
            f"Expected index {list(access.shape)} to be no larger than self {list(spec.shape)} apart from dimension "
            f"{dim} and to be no larger size than src {list(value.shape)}"
        )
    return (value.stride or (0,))[: len(access.shape)]


def _fit_number(value: Spec, spec: Spec, static: int, access: IndexMap) -> tuple[int, ...]:
    """Strides of 0, so that the single element of a 0-dim source is read for every position."""
    _fit_source(contiguous_spec(access.shape, value.dtype, value.device), spec, static, access)
    return (0,) * len(access.shape)


class _Scatter(Scatter):
    def __init__(self, name: str, node_name: str, fit: Callable = _fit_source):
        super().__init__(name, _scattered, fit=fit, error=bounds_error, node_name=node_name)
        differentiate(self, self.target_rule, self._source_rule)

    @property
    def _source_rule(self) -> Callable:
        """The cotangent of the source. Elements beyond the sizes of the index were not read, so they get zeros."""

        def rule(ct, out, target, value, *indices, static, specs):
            where, combine = static
            self._check_smooth(combine)
            return padded(self.gather(ct, indices, where), specs[1].shape)

        return rule


SCATTER = _Scatter("scatter_", "ScatterBackward0")
SCATTER_NUMBER = _Scatter("scatter_.value", "ScatterBackward1", _fit_number)
SCATTER_ADD = _Scatter("scatter_add_", "ScatterAddBackward0")


_SCATTER_REDUCE = Reduction("scatter_reduce", SCATTER, SCATTER_NUMBER)


def scatter_(
    self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """self[index[i][j]][j] = src[i][j] for dim 0, and so on, in place; `src` is a tensor or a number.

    reduce: "add" or "multiply" combines the value with the stored element instead of replacing it.

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
        src = scalar_like(src, self)
    elif reduce is not None:
        warnings.warn(
            "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch "
            "release. Use torch.scatter_reduce instead for more reduction options.",
            UserWarning,
            stacklevel=user_level(),
        )
    combine = {None: None, "add": add_elements, "multiply": multiply}[reduce]
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
    """Compute self[index[i][j]][j] += src[i][j] for dim 0, and so on, in place."""
    check_index(index, "scatter_add")
    return SCATTER_ADD(self, (index,), src, dim, add_elements)


@public("function method", out="exact")
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy of `input` with copy[index[i][j]][j] += src[i][j] for dim 0, and so on.

    >>> import weft as torch
    >>> torch.zeros(2).scatter_add(0, torch.tensor([0, 0]), torch.tensor([1.0, 2.0]))
    tensor([3., 0.])
    """
    return scatter_add_(contiguous_copy(input), dim, index, src)


def scatter_reduce_(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Reduce all `src` that go to one element ("sum", "prod", "mean", "amax", "amin"), in place.

    include_self: the stored element takes part in the reduction.
    """
    if reduce not in COMBINE:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    check_recorded_write(self, src)
    SCATTER.check(self, (index,), src, dim, COMBINE[reduce])
    index, src = [distinct(each, self, "scatter_reduce_") for each in (index, src)]
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


for _function in (scatter_, scatter_add_, scatter_reduce_):
    add_inplace(_function.__name__.removesuffix("_"), _function)
