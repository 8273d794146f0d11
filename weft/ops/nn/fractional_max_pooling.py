"""Pools maxima of pseudo-randomly placed windows. Source: Graham 2014, "Fractional max-pooling"."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.public import public
from ...core.tensor import Tensor
from ...families.array_op import host_array
from ..creation.random import rand
from .pooling import maxima_at, per_dim, pooled


def _fractional_starts(samples: np.ndarray, size: int, count: int, kernel: int) -> np.ndarray:
    """Where `count` windows begin, pseudo-randomly spaced. Source: Graham 2014, "Fractional max-pooling"."""
    samples = samples[..., None]
    last = np.full(samples.shape, size - kernel, np.int64)
    if count <= 1:
        return last[..., :count]
    ratio = samples.dtype.type(size - kernel) / samples.dtype.type(count - 1)
    steps = np.arange(count - 1).astype(samples.dtype)
    return np.concatenate(
        [((steps + samples) * ratio).astype(np.int64) - (samples * ratio).astype(np.int64), last], axis=-1
    )


def _fractional_maxima(
    name: str, n: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any
) -> tuple[Tensor, Tensor]:
    """The largest elements of the windows, and where they lie in the flattened last n dims."""
    sizes = input.spec.shape
    wanted = _one_or_each(_output_size(name, n, input, output_size, output_ratio), n, name, "output_size")
    if samples is None:
        batch = 1 if len(sizes) == n + 1 else input.size(0)
        samples = rand(batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device)
    kernel = _one_or_each(kernel_size, n, name, "kernel_size")
    _check_windows(name, n, sizes, wanted, kernel)
    _check_samples(name, n, input, samples)
    # On a device without memory the positions of the windows do not change the shapes.
    has_values = samples.spec.device.backend.has_memory
    given = host_array(samples) if has_values else np.zeros(samples.spec.shape, samples.spec.dtype.numpy)
    given = given[: sizes[0]] if len(sizes) == n + 2 else given[0]
    # In two dims the first random number is for the last dim, in three for the first.
    order = range(n) if n == 3 else reversed(range(n))
    positions = [
        _fractional_starts(given[..., which], size, count, k)[..., None] + np.arange(k)
        for which, size, count, k in zip(order, sizes[-n:], wanted, kernel, strict=True)
    ]
    values, indices = maxima_at(input, positions, wanted)
    return pooled("FractionalMaxPool", n, values), indices


def _one_or_each(value: Any, n: int, name: str, argument: str) -> tuple[int, ...]:
    """`per_dim` without the sequences of one int, which PyTorch takes in other poolings only."""
    if isinstance(value, (tuple, list)) and len(value) != n:
        raise RuntimeError(
            f"{name}: {argument} must either be a single int, or a tuple of {n} ints (got {value})"
        )
    return per_dim(value, n, name, argument)


def _output_size(name: str, n: int, input: Tensor, output_size: Any, output_ratio: Any) -> Any:
    if output_size is not None:
        return output_size
    if output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if len(output_ratio) != n:
        raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
    return [int(input.size(d - n) * ratio) for d, ratio in enumerate(output_ratio)]


def _check_windows(
    name: str, n: int, sizes: tuple[int, ...], wanted: tuple[int, ...], kernel: tuple[int, ...]
) -> None:
    if len(sizes) not in (n + 1, n + 2) or 0 in sizes[-n - 1 :]:
        raise RuntimeError(
            f"{name}: Expected {n + 1}D or {n + 2}D (batch mode) tensor with non-zero sizes behind the batch, but got:"
            f"{list(sizes)}"
        )
    words = ("time", "height", "width")[-n:]
    for word, size, count, k in zip(words, sizes[-n:], wanted, kernel, strict=True):
        # In three dims PyTorch asks for one element more than the windows need.
        if count + k - 1 + (n == 3) > size or count < 0 or k < 1:
            raise RuntimeError(
                f"{name}(): pool {word} {k} too large relative to input {word} {size} (output {count})"
            )


def _check_samples(name: str, n: int, input: Tensor, samples: Tensor) -> None:
    batch = input.spec.shape[0] if input.spec.ndim == n + 2 else 1
    channels, shape = input.spec.shape[-n - 1], samples.spec.shape
    if samples.spec.dtype is not input.spec.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if len(shape) != 3 or shape[0] < batch or shape[1] != channels or shape[2] != n:
        raise RuntimeError(
            f"Expect _random_samples of size [{batch}, {channels}, {n}] (batch, channels, dims), but got {list(shape)} ({name})"
        )


def _define_fractional(n: int, with_indices: bool) -> None:
    name, suffix = f"fractional_max_pool{n}d", "_with_indices" if with_indices else ""

    @public(name=f"nn.functional.{name}{suffix}", autocast="raise on cpu", words={"n": n})
    def function(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        """The largest elements of windows that begin at pseudo-random places of the last {n} dims.

        One of output_size and output_ratio says how many windows. return_indices: also give where the elements lie; the
        function `fractional_max_pool{n}d_with_indices` always does.
        Source: Graham 2014, "Fractional max-pooling".
        """
        found = _fractional_maxima(name, n, input, kernel_size, output_size, output_ratio, _random_samples)
        return found if with_indices or return_indices else found[0]


for _n in (2, 3):
    _define_fractional(_n, False)
    _define_fractional(_n, True)
