"""Pooling to a given output size."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...core.arguments import integer, wrong_type
from ...core.checking import check_tensor
from ...core.dtype import LEGACY_NAMES, DType, int64
from ...core.public import public
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor
from ...families.array_op import on_device
from ..creation.creation import zeros
from .pooling import check_filled, maxima_at, pooled, window_sum
from .resampling import Table, resample
from .window_views import like_format, wide


def adaptive_sizes(name: str, input: Tensor, n: int, output_size: Any) -> tuple[int, ...]:
    """The sizes of the output; None keeps the size of the input."""
    check_tensor(input, name)
    sizes = input.spec.shape
    if n > 1 and isinstance(output_size, (tuple, list)) and len(sizes) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    if len(sizes) not in (n + 1, n + 2):
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got {list(sizes)}")
    # None keeps the size of the dim, if there are several dims.
    if output_size is None or n == 1 and output_size in ((None,), [None]):
        raise wrong_type(output_size, name, "output_size", "tuple of ints", 2)
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * n
    if len(given) != n:
        raise RuntimeError(f"{name}: output_size must be {n} (got {list(given)})")
    wanted = tuple(
        size if each is None else integer(each, name, "output_size")
        for each, size in zip(given, sizes[-n:], strict=True)
    )
    if min(wanted) < 0:
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {list(wanted)}"
        )
    contiguous_spec((*sizes[:-n], *wanted), input.spec.dtype)  # raises if the number of elements overflows
    if max(wanted, default=0) >= 2**31:
        raise RuntimeError(f"{name}: can't allocate memory for output_size {list(wanted)}")
    return wanted


def _check_floats(name: str, input: Tensor) -> None:
    if input.spec.dtype.kind != "f":
        raise NotImplementedError(f"\"{name}\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'")


def _adaptive_positions(size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """For each of `count` windows the elements it looks at, [count, most], the last one repeated, and how many."""
    starts = np.arange(count) * size // max(count, 1)
    ends = -(-(np.arange(1, count + 1) * size) // max(count, 1))
    lengths = ends - starts
    places = np.arange(lengths.max(initial=1))
    return np.minimum(starts[:, None] + places, ends[:, None] - 1), lengths


def _adaptive_average(name: str, n: int, input: Tensor, output_size: Any) -> Tensor:
    wanted = adaptive_sizes(name, input, n, output_size)
    _check_floats(name, input)
    check_filled(name, input, n)
    dtype = input.spec.dtype
    (found,) = wide(dtype, input)
    sizes, whole = input.spec.shape[-n:], set(wanted) == {1}
    if whole:
        found = found.mean(tuple(range(-n, 0)), keepdim=True)
    elif all(count and size % count == 0 for size, count in zip(sizes, wanted, strict=True)):
        kernel = tuple([size // count for size, count in zip(sizes, wanted, strict=True)])
        found = window_sum(found, kernel, kernel, (1,) * n, wanted) / math.prod(kernel)
    else:
        sums, lengths = window_sums(found, n, wanted)
        found = sums / on_device(lengths, input.spec.device, sums.spec.dtype)
    found = like_format(found.to(dtype), input)
    # PyTorch takes the mean in the first case, so the node has the name of that.
    return found if whole and n > 1 else pooled("AdaptiveAvgPool", n, found)


def window_sums(input: Tensor, n: int, wanted: tuple[int, ...]) -> tuple[Tensor, np.ndarray]:
    """The sums of windows of the last n dims, along one dim after the other, and how many elements each has, in a shape that broadcasts."""
    found, lengths = input, np.ones((1,) * n, np.int64)
    for k, (size, count) in enumerate(zip(input.spec.shape[-n:], wanted, strict=True)):
        if count != size:
            table = _windows(size, count, input.spec.dtype)
            found = resample(found, input.spec.ndim - n + k, table)
            lengths = lengths * table.bounds[:, 1].reshape(-1, *(1,) * (n - 1 - k))
    return found, lengths


@functools.lru_cache(maxsize=64)
def _windows(size: int, count: int, dtype: DType) -> Table:
    """Return the sums of `count` windows of a dim."""
    positions, lengths = _adaptive_positions(size, count)
    return Table(size, positions[:, 0], lengths, np.ones(positions.shape, dtype.numpy))


@public("function", "nn.functional.adaptive_avg_pool1d")
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Averages over as many windows of the last dim as wanted. Shapes: [N, C, L] -> [N, C, output_size].

    >>> import weft as torch
    >>> torch.nn.functional.adaptive_avg_pool1d(torch.tensor([[1.0, 3.0, 5.0, 7.0]]), 2)
    tensor([[2., 6.]])
    """
    return _adaptive_average("adaptive_avg_pool1d", 1, input, output_size)


@public(name="nn.functional.adaptive_avg_pool2d")
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Averages over `output_size` windows of the last two dims; None keeps the size of the dim.

    >>> import weft as torch
    >>> torch.nn.functional.adaptive_avg_pool2d(torch.ones(1, 4, 4), 2).shape
    torch.Size([1, 2, 2])
    """
    return _adaptive_average("adaptive_avg_pool2d", 2, input, output_size)


@public(name="nn.functional.adaptive_avg_pool3d", autocast="raise")
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Averages over `output_size` windows of the last three dims; None keeps the size of the dim.

    >>> import weft as torch
    >>> torch.nn.functional.adaptive_avg_pool3d(torch.ones(1, 4, 4, 4), 2).shape
    torch.Size([1, 2, 2, 2])
    """
    return _adaptive_average("adaptive_avg_pool3d", 3, input, output_size)


def _adaptive_maxima(name: str, n: int, input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    wanted = adaptive_sizes(name, input, n, output_size)
    _check_floats(name, input)
    check_filled(name, input, n + 1 if n > 1 or input.spec.ndim == 3 else n)
    if math.prod(wanted) == 0 or input.spec.numel == 0:
        sizes = (*input.spec.shape[:-n], *wanted)
        indices = zeros(sizes, dtype=int64, device=input.spec.device)
        # The sum is one of no elements; it gives the input a gradient.
        values = zeros(sizes, dtype=input.spec.dtype, device=input.spec.device) + input.sum()
        return pooled("AdaptiveMaxPool", n, values), indices
    positions = [_adaptive_positions(*pair)[0] for pair in zip(input.spec.shape[-n:], wanted, strict=True)]
    values, indices = maxima_at(input, positions, wanted)
    return pooled("AdaptiveMaxPool", n, like_format(values, input)), like_format(indices, input)


def _define_adaptive_max(n: int, with_indices: bool) -> None:
    name, suffix = f"adaptive_max_pool{n}d", "_with_indices" if with_indices else ""

    @public(name=f"nn.functional.{name}{suffix}", autocast="raise on cpu" if n == 3 else None, words={"n": n})
    def function(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        """The largest elements of as many windows of the last {n} dims as wanted; None keeps a size.

        return_indices: also give where in the flattened {n} dims they lie; `adaptive_max_pool{n}d_with_indices` always does.
        """
        values, indices = _adaptive_maxima(name, n, input, output_size)
        return (values, indices) if with_indices or return_indices else values


for _n in (1, 2, 3):
    _define_adaptive_max(_n, False)
    _define_adaptive_max(_n, True)


@public("function")
def adaptive_max_pool1d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """Return the values and the indices of `nn.functional.adaptive_max_pool1d`."""
    return _adaptive_maxima("adaptive_max_pool1d", 1, input, output_size)
