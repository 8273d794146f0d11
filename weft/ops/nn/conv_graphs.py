"""Plans the three products of a small convolution as graphs of kernels: copies of patches, products of matrices.

The kernels of `engine/sliding.py` read tables that are made for each size in 400 us (AMD Zen 3). A graph needs no tables, and
one template serves all sizes.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import NamedTuple

from ...core.size import shape
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor
from ...core.view_rules import moved
from ...families.kernel_graph import GraphBuilder, KernelGraph, Value
from ...families.map import COPY, FILL
from ..elementwise.arithmetic import ADD
from ..linalg.matmul import MATMUL
from .window_views import FEW


class _Windows(NamedTuple):
    """How a kernel moves over an input: numbers that are no sizes, but for those of the input and of its positions."""

    sizes: tuple[int, ...]  # of the input, without padding
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]  # padding in front of each dim
    after: tuple[int, ...]
    groups: int
    positions: tuple[int, ...]

    @property
    def places(self) -> int:
        return math.prod(self.kernel)


def _static(how) -> tuple:
    """The key of a graph. Sizes are in plain tuples, where a template reads them."""
    before, after = zip(*how.border, strict=True)
    return how.sizes, how.kernel, how.stride, how.dilation, before, after, how.groups, how.positions


def _windows(
    sizes: Sequence[int], kernel, stride, dilation, before, after, groups: int, positions: Sequence[int]
) -> _Windows:
    """The key as plain numbers where they decide the graph: other kernels and strides are other graphs."""
    kernel, stride, dilation, before, after = (
        tuple(map(operator.index, each)) for each in (kernel, stride, dilation, before, after)
    )
    count = operator.index(groups)
    return _Windows(tuple(sizes), kernel, stride, dilation, before, after, count, tuple(positions))


def _view(spec: Spec, sizes: Sequence[int], strides: Sequence[int], start: int) -> tuple[Spec, int]:
    return moved(spec, shape(sizes), tuple(strides)), start


def _inside(spec: Spec, how: _Windows) -> tuple[Spec, int]:
    """The part of a padded input that is not padding."""
    steps = spec.stride[2:]
    start = sum([width * step for width, step in zip(how.before, steps, strict=True)])
    return _view(spec, (*spec.shape[:2], *how.sizes), spec.stride, start)


def _patches(spec: Spec, how: _Windows) -> tuple[Spec, int]:
    """Return a padded input as [N, C, *kernel, *positions]."""
    steps = spec.stride[2:]
    along = [step * gap for step, gap in zip(steps, how.dilation, strict=True)]
    across = [step * own for step, own in zip(steps, how.stride, strict=True)]
    sizes = (*spec.shape[:2], *how.kernel, *how.positions)
    return _view(spec, sizes, (*spec.stride[:2], *along, *across), 0)


def _positions_of(spec: Spec, how: _Windows, place: Sequence[int]) -> tuple[Spec, int]:
    """The elements of a padded input, [N, C, *positions], that are at one place of all windows."""
    steps = spec.stride[2:]
    across = [step * own for step, own in zip(steps, how.stride, strict=True)]
    start = sum([k * gap * step for k, gap, step in zip(place, how.dilation, steps, strict=True)])
    return _view(spec, (*spec.shape[:2], *how.positions), (*spec.stride[:2], *across), start)


def _new(graph: GraphBuilder, like: Spec, *sizes: int) -> Value:
    return graph.new(contiguous_spec(shape(sizes), like.dtype, like.device))


def _padding(graph: GraphBuilder, like: Spec, channels: int, how: _Windows) -> Value:
    sizes = [a + b + c for a, b, c in zip(how.before, how.sizes, how.after, strict=True)]
    whole = _new(graph, like, like.shape[0], channels, *sizes)
    graph.write(FILL, whole, 0)
    return whole


def _padded(graph: GraphBuilder, input: Value, how: _Windows) -> Value:
    if not any(how.before) and not any(how.after):
        return input
    whole = _padding(graph, input.spec, input.spec.shape[1], how)
    graph.write(COPY, graph.view(_inside, whole, how), input)
    return whole


# ---- The products ----------------------------------------------------------------------------------------------------------


def _build_convolution(graph: GraphBuilder, *static) -> list[Value]:
    input, weight, bias = graph.inputs
    how = _windows(*static)
    (images, channels), made = input.spec.shape[:2], weight.spec.shape[0]
    terms, count = channels // how.groups * how.places, math.prod(how.positions)
    patches = graph.view(_patches, _padded(graph, input, how), how)
    columns = _new(graph, input.spec, *patches.spec.shape)
    graph.write(COPY, columns, patches)
    # One product of matrices is planned in less time than a stack with one product.
    stack = [images] if images != 1 else []
    of_groups = [how.groups] if how.groups != 1 else []
    rows = graph.reshape(weight, shape((*of_groups, made // how.groups, terms)))
    columns = graph.reshape(columns, shape((*stack, *of_groups, terms, count)))
    found = graph.reshape(graph.matmul(MATMUL, rows, columns), shape((images, made, *how.positions)))
    if bias is not None:
        found = graph.map(ADD, found, graph.reshape(bias, shape((made, *[1] * len(how.kernel)))))
    return [found]


def _build_adjoint(graph: GraphBuilder, *static) -> list[Value]:
    result, weight, bias = graph.inputs
    how = _windows(*static)
    (images, made), own = result.spec.shape[:2], weight.spec.shape[1]
    channels, count = own * how.groups, math.prod(how.positions)
    stack = [images] if images != 1 else []
    of_groups = [how.groups] if how.groups != 1 else []
    rows = graph.reshape(weight, shape((*of_groups, made // how.groups, own * how.places)))
    columns = graph.reshape(result, shape((*stack, *of_groups, made // how.groups, count)))
    patches = graph.matmul(MATMUL, graph.view(_transposed, rows), columns)
    patches = graph.reshape(patches, shape((images, channels, how.places, *how.positions)))
    whole = _padding(graph, result.spec, channels, how)
    for number, place in enumerate(itertools.product(*map(range, how.kernel))):
        target = graph.view(_positions_of, whole, how, place)
        graph.write(ADD, target, target, graph.view(_at_place, patches, number))
    input = _new(graph, result.spec, images, channels, *how.sizes)
    graph.write(COPY, input, graph.view(_inside, whole, how))
    if bias is not None:
        input = graph.map(ADD, input, graph.reshape(bias, shape((channels, *[1] * len(how.kernel)))))
    return [input]


def _build_correlation(graph: GraphBuilder, *static) -> list[Value]:
    input, result = graph.inputs
    how = _windows(*static)
    (images, channels), made, groups = input.spec.shape[:2], result.spec.shape[1], how.groups
    own, count = channels // groups, math.prod(how.positions)
    patches = graph.view(_images_last, graph.view(_patches, _padded(graph, input, how), how), how)
    columns = _new(graph, input.spec, *patches.spec.shape)
    graph.write(COPY, columns, patches)
    rows = graph.view(_images_second, result)
    if images != 1:
        rows = _new(graph, result.spec, *rows.spec.shape)
        graph.write(COPY, rows, graph.view(_images_second, result))
    of_groups = [groups] if groups != 1 else []
    rows = graph.reshape(rows, shape((*of_groups, made // groups, images * count)))
    columns = graph.reshape(columns, shape((*of_groups, own * how.places, images * count)))
    found = graph.matmul(MATMUL, rows, graph.view(_transposed, columns))
    return [graph.reshape(found, shape((made, own, *how.kernel)))]


def _transposed(spec: Spec) -> tuple[Spec, int]:
    *outer, rows, columns = spec.shape
    *steps, down, across = spec.stride
    return _view(spec, (*outer, columns, rows), (*steps, across, down), 0)


def _at_place(spec: Spec, number: int) -> tuple[Spec, int]:
    """Return one place of patches [N, C, places, *positions]."""
    (images, channels, _, *rest), (a, b, step, *steps) = spec.shape, spec.stride
    return _view(spec, (images, channels, *rest), (a, b, *steps), number * step)


def _images_second(spec: Spec) -> tuple[Spec, int]:
    (images, channels, *rest), (a, b, *steps) = spec.shape, spec.stride
    return _view(spec, (channels, images, *rest), (b, a, *steps), 0)


def _images_last(spec: Spec, how: _Windows) -> tuple[Spec, int]:
    """Return patches as [C, *kernel, N, *positions]."""
    n = len(how.kernel)
    (images, channels, *rest), (a, b, *steps) = spec.shape, spec.stride
    sizes = (channels, *rest[:n], images, *rest[n:])
    return _view(spec, sizes, (b, *steps[:n], a, *steps[n:]), 0)


_CONVOLUTION = KernelGraph("convolution_of_patches", 3, _build_convolution)
_ADJOINT = KernelGraph("convolution_adjoint", 3, _build_adjoint)
_CORRELATION = KernelGraph("convolution_weight", 2, _build_correlation)


# Multiplications. With more of them the kernels of `engine/sliding.py` are faster, although their calls cost more: measured on AMD Zen 3,
# 62,000 multiplications take 58 us as a graph and 66 us with them, 250,000 take 64 and 56 us. Backward is even at 62,000.
MOST_WORK = 1 << 17


def is_small(how, images: int, channels: int, made: int) -> bool:
    work = images * made * channels // how.groups * math.prod(how.kernel) * math.prod(how.positions)
    return work <= MOST_WORK and math.prod(how.kernel) <= FEW


def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, how) -> Tensor:
    return _CONVOLUTION((input, weight, bias), _static(how))


def adjoint(result: Tensor, weight: Tensor, bias: Tensor | None, how) -> Tensor:
    """Return the adjoint of `convolution` in the input, with `bias` added."""
    return _ADJOINT((result, weight, bias), _static(how))


def correlation(input: Tensor, result: Tensor, how) -> Tensor:
    """Return the adjoint of `convolution` in the weight."""
    return _CORRELATION((input, result), _static(how))
