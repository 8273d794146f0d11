"""Fourier transforms by kernels of a device that has them ("fourier" among its extras).

It transforms complex numbers along one dim, for lengths with small prime factors. Transforms of other lengths are convolutions with a chirp, of a
length that is a power of 2 (Bluestein 1970, "A linear filtering approach to the computation of discrete Fourier transform").
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.device import device
from ...core.dtype import DType, complex64, complex128
from ...core.iteration import merge_dims
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, empty
from ...engine.roots import roots_of_unity
from ...families.array_op import on_device
from ...families.indexed import bare
from ...families.map import COPY, FILL
from ..elementwise.arithmetic import MUL

BATCH_DIMS = 2  # besides those that the transform of a long signal adds


def kernels_for(spec: Spec) -> Any:
    """The kernels of the device for tensors of this spec; None if it has none."""
    dtype = spec.dtype if spec.dtype.is_complex else spec.dtype.to_complex()
    return spec.device.backend.extras.get("fourier") if dtype in (complex64, complex128) else None


def scale_of(norm: str, forward: bool, count: int) -> float:
    """What a transform of so many elements is multiplied by."""
    if norm == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if (norm == "forward") == forward else 1.0


def complex_transform(
    kernels: Any, input: Tensor, dims: Sequence[int], result: Spec, scale: float, forward: bool
) -> Tensor:
    """Return the transform over some dims, of complex or real numbers."""
    source, target = bare(input), empty(result)
    *others, last = dims
    for dim in others:
        _along(kernels, target, source, dim, 1.0, forward)
        source = target
    _along(kernels, target, source, last, scale, forward)
    return target


def half_transform(kernels: Any, input: Tensor, dims: Sequence[int], result: Spec, scale: float) -> Tensor:
    """Return the first half, and one more, along the last of the dims of the transform of real numbers."""
    *others, last = dims
    own = 1.0 if others else scale
    if kernels.stores_parts(input.spec.shape[last], result.dtype.to_real()):
        half = empty(result)
        _along(kernels, half, bare(input), last, own, True)
    else:
        whole = contiguous_spec(input.spec.shape, result.dtype, result.device)
        full = complex_transform(kernels, input, (last,), whole, own, True)
        half = COPY.write(empty(result), full.narrow(last, 0, result.shape[last]))
    return complex_transform(kernels, half, others, result, scale, True) if others else half


def real_transform(kernels: Any, input: Tensor, dim: int, result: Spec, scale: float) -> Tensor:
    """Return the inverse transform of the numbers whose first half, and one more, is `input`, and which make it real."""
    source, n = bare(input), result.shape[dim]
    whole = empty(contiguous_spec(result.shape, input.spec.dtype, result.device))
    mirrored = (n - 1) // 2  # elements behind the half: the conjugates of those from 1 on, in reverse
    COPY.write(whole.narrow(dim, 0, n // 2 + 1), source)
    if mirrored:
        behind = whole.narrow(dim, n // 2 + 1, mirrored)
        COPY.write(behind, source.narrow(dim, 1, mirrored).flip(dim).conj())
    for place in {0} if n % 2 else {0, n // 2}:  # these are their own conjugates
        FILL.write(whole.select(dim, place).imag, 0)
    transformed = complex_transform(kernels, whole, (dim,), whole.spec, scale, forward=False)
    return COPY.write(empty(result), transformed.real)


def _along(kernels: Any, target: Tensor, source: Tensor, dim: int, scale: float, forward: bool) -> None:
    """Write the transform along one dim, or its first part if the target is smaller; the source may be the target."""
    n = source.spec.shape[dim]
    steps = [tensor.spec.byte_stride for tensor in (target, source)]
    sizes, batch = merge_dims(
        [size for each, size in enumerate(source.spec.shape) if each != dim],
        [[step for each, step in enumerate(row) if each != dim] for row in steps],
    )
    if len(sizes) > BATCH_DIMS or not kernels.takes(n):
        _in_lines(kernels, target, source, dim, scale, forward)
        return
    signals = [
        (tensor._storage.ptr + tensor._byte_offset, own, row[dim])
        for tensor, own, row in zip((target, source), batch, steps, strict=True)
    ]
    real, stored = not source.spec.dtype.is_complex, target.spec.shape[dim]
    part = target.spec.dtype.to_real()
    kernels.transform(*signals, sizes, n, part, real=real, forward=forward, scale=scale, stored=stored)


def _in_lines(kernels: Any, target: Tensor, source: Tensor, dim: int, scale: float, forward: bool) -> None:
    """The same by a contiguous copy with the dim as the last one."""
    dims = [*(each for each in range(len(source.spec.shape)) if each != dim), dim]
    moved = source.permute(dims)
    lines = COPY.write(empty(contiguous_spec(moved.spec.shape, target.spec.dtype, target.spec.device)), moved)
    if kernels.takes(lines.spec.shape[-1]):
        _along(kernels, lines, lines, len(dims) - 1, scale, forward)
    else:
        _by_chirp(kernels, lines, scale, forward)
    found = lines.permute([dims.index(each) for each in range(len(dims))])
    COPY.write(target, found.narrow(dim, 0, target.spec.shape[dim]))


def _by_chirp(kernels: Any, lines: Tensor, scale: float, forward: bool) -> None:
    """Transform the last dim in place, for any length.

    With 2 j k = j^2 + k^2 - (k - j)^2 a transform is a product with a chirp, a convolution with its conjugate, and a product again.
    """
    spec, last = lines.spec, len(lines.spec.shape) - 1
    n = spec.shape[-1]
    size = 1 << (2 * n - 2).bit_length()
    chirp, transformed = _chirps(n, size, spec.dtype, spec.device)
    if not forward:
        COPY.write(lines, lines.conj().resolve_conj())
    whole = empty(contiguous_spec((*spec.shape[:-1], size), spec.dtype, spec.device))
    FILL.write(whole, 0)
    first = whole.narrow(last, 0, n)
    MUL.write(first, lines, chirp)
    _along(kernels, whole, whole, last, 1.0, True)
    MUL.write(whole, whole, transformed)
    _along(kernels, whole, whole, last, scale / size, False)
    MUL.write(lines, first, chirp)
    if not forward:
        COPY.write(lines, lines.conj().resolve_conj())


@functools.lru_cache(maxsize=32)
def _chirps(n: int, size: int, dtype: DType, where: device) -> tuple[Tensor, Tensor]:
    """The chirp of a length, and the transform of its conjugate at both ends of `size` elements."""
    k = np.arange(n)
    chirp = roots_of_unity(2 * n)[k * k % (2 * n)]
    both = np.zeros(size, np.complex128)
    both[:n] = chirp.conj()
    both[size - n + 1 :] = both[1:n][::-1]
    return on_device(chirp, where, dtype), on_device(np.fft.fft(both), where, dtype)
