"""Derivatives of writes by index tensors that reduce: scatter_reduce and index_reduce."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.derivative import Derivative
from ...core.tensor import Tensor
from ...families.indexed import Put, add_elements
from ..assembly.padding import constant_pad
from ..views.views import SLICE


def corner(tensor: Tensor, sizes: Sequence[int]) -> Tensor:
    """The first elements of each dim."""
    for dim, size in enumerate(sizes if tensor.spec.shape else ()):
        if tensor.spec.shape[dim] != size:
            tensor = SLICE(tensor, dim, 0, size, 1)
    return tensor


def padded(tensor: Tensor, sizes: Sequence[int]) -> Tensor:
    """Zeros of the given sizes, with the tensor in the corner."""
    own = tensor.spec.shape
    if own == sizes or len(own) != len(sizes):
        return tensor
    spare = [size - used for size, used in zip(sizes, own, strict=True)]
    return constant_pad(tensor, [n for size in reversed(spare) for n in (0, size)])


def reduction_derivative(put: Put, product: Callable) -> Derivative:
    """The derivative of a reduction into the elements of a tensor that `put` writes.

    Its inputs are (target, source, index), fixed are (dim, reduce, include_self); `product(target, source, index, dim,
    include_self)` is the reduction "prod".
    """

    def rule(ct, out, target, source, index, dim, reduce, include_self, *, specs):
        def read(tensor: Tensor) -> Tensor:
            return put.take(tensor, (index,), dim)

        def added(whole: Tensor, values: Tensor) -> Tensor:
            return put.take.put(whole, (index,), values, dim, add_elements)

        taken = read(ct)
        source = corner(source, taken.spec.shape)
        if reduce == "sum":
            to_target, to_source = ct, taken
        elif reduce == "mean":
            counts = added(ct.new_full(ct.shape, int(include_self)), ct.new_ones(())).real.clamp(min=1)
            to_target = ct / counts
            to_source = read(to_target)
        elif reduce == "prod":
            a, b = target.masked_fill(target == 0, 1), source.masked_fill(source == 0, 1)
            others = product(a, b, index, dim, include_self)
            zeros = added((target == 0).to(ct.dtype) * include_self, (source == 0).to(ct.dtype))
            to_target = _passed_on(ct, others, a, zeros, target == 0)
            to_source = _passed_on(taken, read(others), b, read(zeros), source == 0)
        else:
            mine, theirs = (target == out).to(ct.dtype), (source == read(out)).to(ct.dtype)
            share = ct / added(mine.clone(), theirs)
            to_target, to_source = mine * share, theirs * read(share)
        if not include_self:
            to_target = put.take.put(ct.clone(), (index,), ct.new_zeros(()), dim)
        return to_target, padded(to_source, specs[1].shape), None

    return Derivative(joint=rule)


def _passed_on(ct: Tensor, product: Tensor, factor: Tensor, zeros: Tensor, is_zero: Tensor) -> Tensor:
    """ct times the other factors: `product` without the zeros among the factors, of which there are `zeros`.

    `factor` is 1 in place of a zero, which only `is_zero` tells.
    """
    others = (product / factor).masked_fill(zeros != is_zero.to(zeros.dtype), 0)
    return ct * others.conj()
