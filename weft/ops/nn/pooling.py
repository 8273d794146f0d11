"""Code that all poolings share: the geometry of windows, and the maxima in windows."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.arguments import integer
from ...core.checking import check_tensor
from ...core.dtype import LEGACY_NAMES, bool_
from ...core.iteration import check_reach
from ...core.plans import PlanCache
from ...core.recording import needs_recording
from ...core.spec import Spec
from ...core.tensor import Tensor, make
from ...core.view_rules import moved
from ...families.array_op import on_device
from ...families.custom_vjp import custom_vjp
from ...families.map import Map, same_dtype
from ..assembly.padding import constant_pad
from ..reductions.reduction import MAX
from ..tensor.node_names import with_node_name
from .window_views import FEW, fold, ints, windows


def pooled(name: str, n: int, result: Tensor) -> Tensor:
    """Name the node of a pooling as PyTorch does, which computes 1-d poolings by 2-d ones and a squeeze."""
    return with_node_name(result, "SqueezeBackward1" if n == 1 else f"{name}{n}DBackward0")


def per_dim(value: Any, n: int, name: str, argument: str) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)):
        return (integer(value, name, argument),) * n
    if len(value) not in (1, n):
        count = "a single int" if n == 1 else f"a single int, or a tuple of {n} ints"
        raise RuntimeError(f"{name}: {argument} must either be {count} (got {value})")
    found = tuple(integer(each, name, argument) for each in value)
    return found * n if len(found) == 1 else found


def check_input(name: str, input: Tensor, n: int, refused: tuple = (bool_,)) -> None:
    check_tensor(input, name)
    sizes = input.spec.shape
    if len(sizes) not in (n + 1, n + 2) or 0 in sizes[-n - 1 :]:
        raise RuntimeError(
            f"{name}: Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{list(sizes)}"
        )
    if input.spec.dtype.is_complex or input.spec.dtype in refused:
        raise NotImplementedError(f"\"{name}\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'")


def _given_to_windows(ct, out, input, kernel, stride, dilation, counts, *, specs):
    """Every element of a window gets the cotangent of the window."""
    n, shape = len(kernel), specs[0].shape
    lead, sizes = shape[:-n], shape[-n:]
    # The windows do not overlap, so one copy makes all of them.
    if tuple(kernel) == tuple(stride) and max(dilation) == 1:
        apart = [size for pair in zip(counts, kernel, strict=True) for size in pair]
        ct = ct.reshape(*lead, *[size for count in counts for size in (count, 1)]).expand(*lead, *apart)
        ct = ct.reshape(*lead, *[count * k for count, k in zip(counts, kernel, strict=True)])
        rest = [size - have for size, have in zip(sizes, ct.shape[-n:], strict=True)]
        return (
            constant_pad(ct, [width for after in reversed(rest) for width in (0, after)]) if any(rest) else ct
        )
    batch = math.prod(lead)
    ct = ct.reshape(batch, *[1] * n, *counts).expand(batch, *kernel, *counts)
    return fold(ct, tuple(sizes), tuple(stride), tuple(dilation)).reshape(shape)


_SUM = Map("window_sum", same_dtype, lambda *values: functools.reduce(operator.add, values))


@custom_vjp(_given_to_windows)
def window_sum(input: Tensor, kernel, stride, dilation, counts) -> Tensor:
    """Return the sum of each window."""
    if math.prod(kernel) > FEW:
        n = len(kernel)
        return windows(input, kernel, stride, dilation).sum(tuple(range(-n, 0)))
    return _SUM(*elements_of_windows(input, tuple(kernel), tuple(stride), tuple(dilation), tuple(counts)))


def check_padding_of_empty(name: str, input: Any, n: int, kernel: Any, padding: Any, dilation: Any) -> None:
    """Of an input without elements, PyTorch refuses the padding before it refuses the sizes."""
    if isinstance(input, Tensor) and 0 in input.spec.shape:
        check_padding(
            per_dim(kernel, n, name, "kernel_size"),
            per_dim(padding, n, name, "padding"),
            per_dim(dilation, n, name, "dilation"),
        )


def check_padding(kernel: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...]) -> None:
    for pad, k, step in zip(padding, kernel, dilation, strict=True):
        if pad < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {pad}")
        if pad > (step * (k - 1) + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={pad}, kernel_size={k} and dilation={step}"
            )
        if pad > k // 2:
            raise RuntimeError(
                f"pad should be smaller than or equal to half of kernel size, but got pad={pad} and kernel_size={k}"
            )


class PoolGeometry:
    """Where the windows of a pooling lie: one entry per dim in each of these."""

    __slots__ = ("sizes", "kernel", "stride", "padding", "dilation", "counts", "border")

    def __init__(
        self,
        name: str,
        sizes: Sequence[int],
        kernel: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        ceil_mode: bool,
    ):
        n = len(sizes)
        self.sizes = tuple(sizes)
        self.kernel = per_dim(kernel, n, name, "kernel_size")
        no_stride = stride is None or isinstance(stride, (tuple, list)) and not stride
        self.stride = self.kernel if no_stride else per_dim(stride, n, name, "stride")
        self.padding = per_dim(padding, n, name, "padding")
        self.dilation = per_dim(dilation, n, name, "dilation")
        self._check(name)
        self.counts = tuple(self._count(dim, ceil_mode) for dim in range(n))
        if any(count < 1 for count in self.counts):
            raise RuntimeError(
                f"Given input size: {self.sizes}. Calculated output size: {self.counts}. Output size is too small "
                f"({name} with kernel_size={self.kernel})"
            )
        self.border = self._border()  # the padding that makes all windows fit, as `constant_pad` takes it

    def _check(self, name: str) -> None:
        if min(self.stride) == 0:
            raise RuntimeError("stride should not be zero")
        for what, values in (
            ("kernel size", self.kernel),
            ("stride", self.stride),
            ("dilation", self.dilation),
        ):
            if min(values) <= 0:
                raise RuntimeError(f"{what} should be greater than zero, but got {values} ({name})")
        check_padding(self.kernel, self.padding, self.dilation)

    def _count(self, dim: int, ceil_mode: bool) -> int:
        size, pad, step = self.sizes[dim], self.padding[dim], self.stride[dim]
        room = size + 2 * pad - self.dilation[dim] * (self.kernel[dim] - 1) - 1
        count = -(-room // step) + 1 if ceil_mode else room // step + 1
        # A window must begin inside the input or its left padding.
        return count - 1 if ceil_mode and (count - 1) * step >= size + pad else count

    def _border(self) -> tuple[int, ...]:
        found: list[int] = []
        for dim in reversed(range(len(self.sizes))):
            reach = (
                (self.counts[dim] - 1) * self.stride[dim] + self.dilation[dim] * (self.kernel[dim] - 1) + 1
            )
            found += [self.padding[dim], max(0, reach - self.padding[dim] - self.sizes[dim])]
        return tuple(found)

    @property
    def disjoint(self) -> bool:
        """Whether no element is in two windows."""
        spans = (gap * (k - 1) + 1 for k, gap in zip(self.kernel, self.dilation, strict=True))
        return all(span <= step for span, step in zip(spans, self.stride, strict=True))

    @property
    def looking(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        return self.kernel, self.stride, self.dilation


_GEOMETRIES = PlanCache(PoolGeometry, with_sizes=True)


def geometry_of(
    name: str, sizes: Sequence[int], kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> PoolGeometry:
    """Where the windows over dims of these sizes lie, for arguments as users give them."""
    given = (
        ints(kernel, name, "kernel_size"),
        ints(stride, name, "stride"),
        ints(padding, name, "padding"),
        ints(dilation, name, "dilation"),
    )
    return _GEOMETRIES[name, tuple(sizes), *given, bool(ceil_mode)]


def _views(
    spec: Spec,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    counts: tuple[int, ...],
) -> tuple[Spec, list[int]]:
    """The spec of the views of `elements_of_windows`, and where they begin, in bytes."""
    n = len(counts)
    sizes, last = (*spec.shape[:-n], *counts), spec.stride[-n:]
    strides = (*spec.stride[:-n], *[own * step for own, step in zip(last, stride, strict=True)])
    starts = []
    for place in itertools.product(*map(range, kernel)):
        start = sum([k * gap * own for k, gap, own in zip(place, dilation, last, strict=True)])
        check_reach("pooling", spec, sizes, strides, start)
        starts.append(start * spec.dtype.itemsize)
    return moved(spec, sizes, strides), starts


_VIEWS = PlanCache(_views, with_sizes=True)


def elements_of_windows(source: Tensor, *looking: tuple[int, ...]) -> list[Tensor]:
    """For each place in a window the view [..., *counts] of the elements that all windows have there, outside of autograd.

    looking: kernel, stride, dilation, counts.
    """
    storage, start = source._storage, source._byte_offset
    view, starts = _VIEWS[(source.spec, *looking)]
    return [make(storage, start + offset, view) for offset in starts]


def padded(input: Tensor, geometry: PoolGeometry, value: Any) -> Tensor:
    return constant_pad(input, geometry.border, value) if any(geometry.border) else input


def elements_at(input: Tensor, indices: Tensor, n: int) -> Tensor:
    """Return the elements at positions in the flattened last n dims."""
    return input.flatten(-n).gather(-1, indices.flatten(-n)).view(indices.spec.shape)


def check_filled(name: str, input: Tensor, dims: int) -> None:
    sizes = input.spec.shape
    for dim in range(len(sizes) - dims, len(sizes)):
        if sizes[dim] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(sizes)} with dimension {dim} being empty"
            )


def maxima_at(input: Tensor, positions: Sequence[np.ndarray], counts: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Values and flat indices of the largest elements.

    positions: for each of the last n dims the elements of each window, [..., count, places]; leading dims, if any,
    are those of the input.
    """
    n = len(positions)
    flat: Any = 0
    for dim, (size, each) in enumerate(zip(input.spec.shape[-n:], positions, strict=True)):
        lead = each.shape[:-2]
        shape = [1] * (2 * n)
        shape[dim], shape[n + dim] = each.shape[-2:]
        flat = flat * size + each.reshape(*lead, *shape)
    lead = tuple(input.spec.shape[:-n])
    places = math.prod(flat.shape[-n:])
    flat = np.broadcast_to(flat, (*lead, *flat.shape[-2 * n :])).reshape(*lead, *counts, places)
    where = on_device(flat, input.spec.device)
    taken = input.detach().flatten(-n).gather(-1, where.flatten(-n - 1)).view(where.spec.shape)
    values, places = MAX(taken, dims=(taken.spec.ndim - 1,))
    indices = where.gather(-1, places.unsqueeze(-1)).squeeze(-1)
    return (elements_at(input, indices, n) if needs_recording((input,)) else values), indices
