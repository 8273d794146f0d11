"""The inverse of max pooling: maxima go back to the positions that they came from."""

from __future__ import annotations

import math
from typing import Any

from ...core.batched import beneath
from ...core.dtype import LEGACY_NAMES, int64
from ...core.public import public
from ...core.tensor import Tensor
from ..creation.creation import zeros
from .pooling import check_filled, per_dim, pooled
from .window_views import like_format


def _unpooled_size(input: Tensor, geometry: tuple, output_size: Any) -> tuple[int, ...]:
    kernel, stride, padding = geometry
    n = len(kernel)
    usual = tuple(
        (size - 1) * step + k - 2 * pad
        for size, k, step, pad in zip(input.spec.shape[-n:], kernel, stride, padding, strict=True)
    )
    if output_size is None:
        if min(usual) < 0:
            raise ValueError(
                f"max_unpooling: output_size must contain non-negative spatial dimensions, but got {list(usual)}"
            )
        return usual
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    for dim, (size, middle, step) in enumerate(zip(output_size, usual, stride, strict=True)):
        if not middle - step < size < middle + step:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {dim} must be between {middle - step} and {middle + step})'
            )
    return tuple(output_size)


def _check_indices(name: str, n: int, input: Tensor, indices: Tensor, sizes: tuple[int, ...]) -> None:
    spec = input.spec
    if len(spec.shape) not in (n + 1, n + 2):
        raise RuntimeError(
            f"Input to {name} should be a {n + 1}d or {n + 2}d Tensor, but got a tensor with {len(spec.shape)} dimensions."
        )
    if indices.spec.dtype is not int64:
        raise RuntimeError(
            f"elements in indices should be type int64 but got: {LEGACY_NAMES[indices.spec.dtype]}"
        )
    if indices.spec.shape != spec.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(spec.shape)}) but got indices tensor "
            f"with shape: {list(indices.spec.shape)}"
        )
    check_filled(name, input, n + 1)
    if indices.spec.numel and math.prod(sizes) and spec.device.backend.has_memory:
        low, high = (int(each) for each in beneath(indices).aminmax())
        if low < 0 or high >= math.prod(sizes):
            raise RuntimeError(
                f"Found an invalid max index: {low if low < 0 else high} (output volumes are of size "
                f"{'x'.join(map(str, sizes))})"
            )


def _define_unpool(n: int) -> None:
    name = f"max_unpool{n}d"

    @public(name=f"nn.functional.{name}", words={"n": n})
    def function(
        input: Tensor,
        indices: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Tensor:
        """Put the elements of `input` where `indices` (of max_pool{n}d) say, zeros elsewhere."""
        kernel = per_dim(kernel_size, n, name, "kernel_size")
        step = kernel if stride is None else per_dim(stride, n, name, "stride")
        spec = input.spec
        sizes = _unpooled_size(input, (kernel, step, per_dim(padding, n, name, "padding")), output_size)
        _check_indices(name, n, input, indices, sizes)
        flat = zeros(*spec.shape[:-n], math.prod(sizes), dtype=spec.dtype, device=spec.device)
        if math.prod(sizes):
            flat = flat.scatter(-1, indices.flatten(-n), input.flatten(-n))
        filled = flat.view(*spec.shape[:-n], *sizes)
        return pooled("MaxUnpool", n, like_format(filled, input))


for _n in (1, 2, 3):
    _define_unpool(_n)
