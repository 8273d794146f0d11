"""Writes by index tensors that reduce the values for one element to the sum, product, mean, maximum or minimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtype import FLOAT8, UNSIGNED_WIDE, DType, bool_, float32, int64
from ...core.op import Op
from ...core.recording import needs_recording, record_inplace
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor, empty
from ...engine import scalar as s
from ...engine.complexes import Complex
from ...families.indexed import Scatter, add_elements
from ..assembly.filling import fill_
from ..creation.creation import new
from .scatter_derivatives import reduction_derivative


def _is_bool(value: Any) -> bool:
    return getattr(value, "dtype", None) is bool_


def multiply(old: Any, new: Any) -> Any:
    return old & new if _is_bool(old) else old * new


def _check_order(value: Any) -> None:
    if isinstance(value, Complex):
        raise NotImplementedError(
            "amax and amin are not implemented for complex numbers, which have no order"
        )


def _largest(old: Any, new: Any) -> Any:
    _check_order(old)
    return old | new if _is_bool(old) else s.where((old < new) | s.isnan(new), new, old)


def _smallest(old: Any, new: Any) -> Any:
    _check_order(old)
    return old & new if _is_bool(old) else s.where((new < old) | s.isnan(new), new, old)


COMBINE: dict[str, Callable] = {
    "sum": add_elements,
    "mean": add_elements,
    "prod": multiply,
    "amax": _largest,
    "amin": _smallest,
}


def _identity(reduce: str, dtype: DType) -> Any:
    """The neutral element of a reduction: combined with any value, it gives that value."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    largest = reduce == "amin"
    if dtype is bool_:
        return largest
    if dtype.is_complex:  # only an empty index comes here, because complex numbers have no order
        return 0
    if dtype.is_floating_point:
        return float("inf") if largest else float("-inf")
    bits = 8 * dtype.itemsize - (dtype.kind == "i")
    return 2**bits - 1 if largest else (-(2**bits) if dtype.kind == "i" else 0)


def scalar_like(value: Any, like: Tensor) -> Tensor:
    """Return a number as a 0-dim tensor of the dtype of `like`."""
    return fill_(empty(contiguous_spec((), like.spec.dtype, like.spec.device)), value)


class Reduction(Op):
    """Reduce `source` into the elements of `self` that the Scatter `put` addresses by the index, in place.

    `put_number` is the Scatter for a 0-dim source, whose element goes to every position.
    """

    def __init__(self, name: str, put: Scatter, put_number: Scatter):
        self.name = name
        self.put = put
        self.put_number = put_number

        def product(target: Tensor, source: Tensor, index: Tensor, dim: int, include_self: bool) -> Tensor:
            return self(target.clone(), source, index, dim, "prod", include_self)

        self.derivative = reduction_derivative(put, product)

    def run(
        self, target: Tensor, source: Tensor, index: Tensor, dim: int, reduce: str, include_self: bool
    ) -> Tensor:
        if reduce == "mean" and target.spec.dtype is bool_:
            raise NotImplementedError(f"{self.name}: the mean is not implemented for 'Bool'")

        def put(target: Tensor, source: Tensor, combine: Callable | None) -> None:
            op = self.put if source.spec.shape else self.put_number
            op(target, (index,), source, dim, combine)

        write = (put, target, source, reduce, include_self)
        if needs_recording((target, source)):
            static = (dim, reduce, include_self)
            return record_inplace(self, target, (target, source, index), static, _reduce, *write)
        return _reduce(*write)


def _reduce(put: Callable[..., Any], self: Tensor, source: Tensor, reduce: str, include_self: bool) -> Tensor:
    """Combine `source` into `self`; `put(target, source, combine)` writes to the indexed elements."""
    if not include_self:
        put(self, scalar_like(_identity(reduce, self.spec.dtype), self), None)
    put(self, source, COMBINE[reduce])
    if reduce == "mean":
        counts = new(self.spec.shape, int64, self.spec.device)
        fill_(counts, int(include_self))
        put(counts, scalar_like(1, counts), add_elements)
        counts = counts.clamp(min=1)
        spec, rounding = self.spec.dtype, None if self.spec.dtype.category > 1 else "floor"
        if spec in FLOAT8 | UNSIGNED_WIDE:  # they have no common dtype with the counts
            wide = float32 if spec in FLOAT8 else spec
            self.copy_(self.to(wide).div(counts.to(wide), rounding_mode=rounding))
        else:
            self.div_(counts, rounding_mode=rounding)
    return self
