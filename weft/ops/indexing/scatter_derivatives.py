"""Derivatives of writes by index tensors that reduce: scatter_reduce and index_reduce."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.derivative import Derivative
from ...core.tensor import Tensor
from ...families.indexed import Scatter, add_elements
from ..assembly.padding import constant_pad
from ..views.views import SLICE


def corner(tensor: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return the first elements of each dim."""
    for dim, size in enumerate(sizes if tensor.spec.shape else ()):
        if tensor.spec.shape[dim] != size:
            tensor = SLICE(tensor, dim, 0, size, 1)
    return tensor


def padded(tensor: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return zeros of the given sizes, with the tensor in the corner."""
    own = tensor.spec.shape
    if own == sizes or len(own) != len(sizes):
        return tensor
    spare = [size - used for size, used in zip(sizes, own, strict=True)]
    return constant_pad(tensor, [n for size in reversed(spare) for n in (0, size)])


def reduction_derivative(put: Scatter, product: Callable) -> Derivative:
    """The derivative of a reduction into the elements of a tensor that `put` writes.

    Its inputs are (target, source, index), fixed are (dim, reduce, include_self); `product(target, source, index, dim,
    include_self)` is the reduction "prod".
    """

    def rule(ct, out, target, source, index, dim, reduce, include_self, *, specs):
        def read(tensor: Tensor) -> Tensor:
            return put.gather(tensor, (index,), dim)

        def added(whole: Tensor, values: Tensor) -> Tensor:
            return put.gather.scatter(whole, (index,), values, dim, add_elements)

        taken = read(ct)
        source = corner(source, taken.spec.shape)
        if reduce == "sum":
            to_target, to_source = ct, taken
        elif reduce == "mean":
            counts = added(ct.new_full(ct.shape, int(include_self)), ct.new_ones(())).real.clamp(min=1)
            to_target = ct / counts
            to_source = read(to_target)
        elif reduce == "prod":
            start = target.masked_fill(target == 0, 1)
            to_target = ct * (product(start, source, index, dim, include_self) / start).conj()
            is_zero = source == 0
            nonzero = source.masked_fill(is_zero, 1)
            zeros = source.masked_fill(~is_zero, 0)  # equal to 0, but they have a derivative

            def sum_of_group(values: Tensor) -> Tensor:
                return read(added(ct.new_zeros(ct.shape), values))

            # For a zero, the product of the other factors of its group is that of the nonzero factors, times the
            # second zero if the group has two zeros. With three zeros its derivative is zero as well.
            count = sum_of_group(is_zero.to(ct.dtype)).real
            second = (sum_of_group(zeros) - zeros).masked_fill(count != 2, 0).where(count != 1, 1)
            of_zero = read(product(target, nonzero, index, dim, include_self)) * second
            to_source = taken * of_zero.where(is_zero, read(out) / nonzero).conj()
        else:
            mine, theirs = (target == out).to(ct.dtype), (source == read(out)).to(ct.dtype)
            share = ct / added(mine.clone(), theirs)
            to_target, to_source = mine * share, theirs * read(share)
        if not include_self:
            to_target = put.gather.scatter(ct.clone(), (index,), ct.new_zeros(()), dim)
        return to_target, padded(to_source, specs[1].shape), None

    return Derivative(joint=rule)
