"""Convolutions that sum over no channels: a kernel adds up shifted copies of the input.

In the padded input, lines of all dims laid end to end, a place in the window is a fixed distance from its first element. So
the sums are made for every element of the line, one contiguous loop for many windows, and the sums of windows are copied
out. The price is the sums that belong to no window, at the ends of rows and between strides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ...core.device import device
from ...core.dtype import DType, float32, float64
from ...core.iteration import loop_dims
from ...core.plans import PlanCache
from ...core.spec import Spec, contiguous_spec, contiguous_stride
from ...core.tensor import Tensor, empty
from ...engine.expr import fma, load
from ...engine.kernel import Launch
from ...engine.loops import Result
from ..assembly.joining import stack
from ..assembly.padding import constant_pad
from ..linalg.linalg import VECDOT

DTYPES = (float32, float64)
TERMS = 12  # places in the window for each pass over the line: all their weights stay in registers


def suits(like: Spec, groups: int, channels: int) -> bool:
    """Whether this file computes a convolution with `channels` input channels in each group."""
    return (
        channels == 1
        and groups > 1
        and like.dtype in DTYPES
        and like.device.backend.has_memory
        and like.numel > 0
    )


def shifts(padded: Sequence[int], kernel: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """How far each place in the window is from the first, in elements of the line."""
    steps = [gap * step for gap, step in zip(dilation, contiguous_stride(padded), strict=True)]
    places = itertools.product(*map(range, kernel))
    return [sum(k * step for k, step in zip(place, steps, strict=True)) for place in places]


def _plan(
    dtype: DType,
    images: int,
    groups: int,
    made: int,
    line: int,
    length: int,
    terms: int,
    places: int,
    more: bool,
    where: device,
) -> Launch:
    """sums[n, g, m, i] (+)= the sum over k of line[k][n, g, i] * weight[k][g, m]."""
    sizes = (images, groups, made, length)
    size = dtype.itemsize
    sums = (groups * made * length * size, made * length * size, length * size, size)
    inputs = [(groups * line * size, line * size, 0, size)] * terms
    weights = [(0, made * places * size, places * size, 0)] * terms
    value = load(2 * terms, dtype) if more else load(0, dtype) * load(terms, dtype)
    for k in range(0 if more else 1, terms):
        value = fma(load(k, dtype), load(terms + k, dtype), value)
    operands = [*inputs, *weights, sums] if more else [*inputs, *weights]
    return where.backend.prepare(
        [Result((value,))], [dtype] * len(operands), [], *loop_dims(sizes, (sums, *operands))
    )


_plans = PlanCache(_plan)


def convolve(
    input: Tensor, weight: Tensor, stride: Sequence[int], dilation: Sequence[int], positions: Sequence[int]
) -> Tensor:
    """[N, C, *padded] with [C * m, 1, *kernel] -> [N, C * m, *positions]. Both are contiguous."""
    images, groups, *padded = input.shape
    kernel = weight.shape[2:]
    made = weight.shape[0] // groups
    dtype, size, line, places = (
        input.spec.dtype,
        input.spec.dtype.itemsize,
        math.prod(padded),
        math.prod(kernel),
    )
    where = input.spec.device
    distances = shifts(padded, kernel, dilation)
    length = line - distances[-1]
    sums = empty(contiguous_spec((images, groups * made, length), dtype, where))
    input, weight = input.resolve_neg(), weight.resolve_neg()  # the kernel reads their memory as it is
    start, first, target = (t._storage.ptr + t._byte_offset for t in (input, weight, sums))
    for begin in range(0, places, TERMS):
        chosen = range(begin, min(begin + TERMS, places))
        launch = _plans[dtype, images, groups, made, line, length, len(chosen), places, begin > 0, where]
        sources = [start + distances[k] * size for k in chosen]
        factors = [first + k * size for k in chosen]
        launch.entry(target, *sources, *factors, *([target] if begin else []), launch.meta, launch.count)
    steps = [step * each for step, each in zip(stride, contiguous_stride(padded), strict=True)]
    return sums.as_strided(
        (images, groups * made, *positions), (groups * made * length, length, *steps)
    ).contiguous()


def spread(
    result: Tensor,
    weight: Tensor,
    sizes: Sequence[int],
    before: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """The adjoint: [N, C, *positions] with [C, 1, *kernel] -> [N, C, *sizes].

    `before`: the padding at the begin of each dim. It is a convolution too, of the positions moved apart by the stride, with the
    kernel turned around.
    """
    border: list[int] = []
    apart = []
    for size, count, k, pad, step, gap in zip(
        sizes, result.shape[2:], weight.shape[2:], before, stride, dilation, strict=True
    ):
        reach, filled = gap * (k - 1), (count - 1) * step + 1
        apart.append(filled)
        border = [reach - pad, size - filled + pad, *border]
    if any(step > 1 for step in stride):
        moved = result.new_zeros((*result.shape[:2], *apart))
        moved[(..., *[slice(None, None, step) for step in stride])] = result
        result = moved
    turned = weight.flip(tuple(range(2, weight.dim())))
    return convolve(constant_pad(result, border, 0).contiguous(), turned, (1,) * len(sizes), dilation, sizes)


def correlate(
    input: Tensor, result: Tensor, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> Tensor:
    """[N, C, *padded] with [N, C, *positions] -> [C, 1, *kernel]: for each place the sum of products of both."""
    images, groups, *padded = input.shape
    distances = shifts(padded, kernel, dilation)
    line = math.prod(padded)
    length = line - distances[-1]
    steps = [step * each for step, each in zip(stride, contiguous_stride(padded), strict=True)]
    spread_out = result.new_zeros((images, groups, length))
    spread_out.as_strided(result.shape, (groups * length, length, *steps)).copy_(result)
    strides, start = (groups * line, line, 1), input.storage_offset()
    sums = [
        VECDOT(input.as_strided((images, groups, length), strides, start + each), spread_out, dims=(0, 2))
        for each in distances
    ]
    return stack(sums, 1).view(groups, 1, *kernel)
