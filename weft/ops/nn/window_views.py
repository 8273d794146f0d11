"""Makes views of the windows that convolutions and poolings slide over a tensor, and the adjoint of these views."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ...core.arguments import integer
from ...core.dtype import DType, compute_type
from ...core.layout import suggested_format
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor, empty
from ...families.custom_vjp import custom_vjp
from ...families.map import FILL
from ..elementwise.arithmetic import ADD
from ..views.views import SLICE, UNFOLD

# Above this many positions in a window, one reduction is faster than one operation per position.
FEW = 16


def repeated(value: Any, n: int, function: str, argument: str) -> tuple[int, ...]:
    """Return one int per dim, from an int or from a sequence.

    Raises: TypeError for no ints, RuntimeError for another number of them.
    """
    if isinstance(value, (tuple, list)):
        found = tuple(integer(each, function, argument) for each in value)
        if len(found) == 1:
            return found * n
        if len(found) == n:
            return found
        raise RuntimeError(
            f"expected {argument} to be a single integer value or a list of {n} values to match the convolution "
            f"dimensions, but got {argument}={list(found)} ({function})"
        )
    return (integer(value, function, argument),) * n


def ints(value: Any, name: str, argument: str) -> Any:
    """Convert to ints for the key of a plan, because 2.0 and True would find the plans of 2 and 1."""
    if type(value) is int or value is None:
        return value
    if isinstance(value, (tuple, list)):
        return tuple([integer(each, name, argument) for each in value])
    return integer(value, name, argument)


def wide(dtype: DType, *tensors: Tensor | None) -> list[Any]:
    """The tensors in the type that `dtype` is computed in, so that several steps round once."""
    compute = compute_type(dtype)
    return [None if t is None else t.to(compute) for t in tensors]


def like_format(result: Tensor, source: Tensor) -> Tensor:
    """Return `result` in the memory format of `source`."""
    return result.contiguous(memory_format=suggested_format(source.spec))


# ---- Looking through windows -----------------------------------------------------------------------------------------


def windows(input: Tensor, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Tensor:
    """A view [..., *positions, *kernel] of the last len(kernel) dims, which must be large enough."""
    first = input.spec.ndim - len(kernel)
    for dim, (size, step, gap) in enumerate(zip(kernel, stride, dilation, strict=True)):
        input = UNFOLD(input, first + dim, (size - 1) * gap + 1, step)
        if gap > 1:
            input = SLICE(input, input.spec.ndim - 1, None, None, gap)
    return input


def window_elements(input: Tensor, kernel, stride, dilation, counts) -> list[Tensor]:
    """For each place in the window the view [..., *counts] of the elements that all windows have there."""
    return [
        _strided(input, [k * gap for k, gap in zip(place, dilation, strict=True)], stride, counts)
        for place in itertools.product(*map(range, kernel))
    ]


def _strided(input: Tensor, starts: Sequence[int], stride: Sequence[int], counts: Sequence[int]) -> Tensor:
    first = input.spec.ndim - len(counts)
    for dim, (start, step, count) in enumerate(zip(starts, stride, counts, strict=True)):
        input = SLICE(input, first + dim, start, start + step * (count - 1) + 1 if count else start, step)
    return input


# ---- And back ----------------------------------------------------------------------------------------------------------


def _unfolded(ct, out, a, sizes, stride, dilation, *, specs):
    n = len(stride)
    patches = windows(ct, specs[0].shape[1 : n + 1], stride, dilation)
    return patches.permute(0, *range(n + 1, 2 * n + 1), *range(1, n + 1))


@custom_vjp(_unfolded, inputs=1)
def fold(input: Tensor, sizes: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]) -> Tensor:
    """The adjoint of `windows`: zeros, to which the elements of each window are added at their places in the input.

    Shapes: [batch, *kernel, *positions] -> [batch, *sizes].
    """
    spec = input.spec
    n = len(sizes)
    kernel, counts = spec.shape[1 : n + 1], spec.shape[n + 1 :]
    result = empty(contiguous_spec((spec.shape[0], *sizes), spec.dtype, spec.device))
    if result.spec.numel:
        FILL.write(result, 0)
    if spec.numel:
        places = window_elements(result, kernel, stride, dilation, counts)
        for place, target in zip(itertools.product(*map(range, kernel)), places, strict=True):
            ADD.write(target, target, input.detach()[(slice(None), *place)])
    return result


def folded(columns: Tensor, sizes, stride, padding, dilation) -> Tensor:
    """[batch, *kernel, *positions] -> [batch, *sizes]; elements that fall into the padding are dropped."""
    padded = tuple(size + 2 * pad for size, pad in zip(sizes, padding, strict=True))
    dtype = columns.spec.dtype
    (columns,) = wide(dtype, columns)
    found = fold(columns, padded, tuple(stride), tuple(dilation))
    for dim, (pad, size) in enumerate(zip(padding, sizes, strict=True), 1):
        found = found.narrow(dim, pad, size)
    return found.to(dtype).contiguous()
