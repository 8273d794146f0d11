"""Random choices on devices that prefer kernels to arrays, as PyTorch's CUDA devices make them (ATen/native/cuda/Randperm.cu and Distributions.cpp)."""

from __future__ import annotations

import math

from ...core.device import device
from ...core.dtype import float64, int32, int64, uint8
from ...core.generator import Generator
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor, address, empty
from ..order.kernels import bare, ordered, places
from .creation import empty_like
from .random_filling import exponential_, random_, uniform_
from .ranges import arange


def permutation(generator: Generator, n: int, where: device) -> Tensor:
    """The integers below n in random order: PyTorch's for the generator's state.

    Random keys are sorted by so many of their bits that with a probability of 0.9 all differ. Integers with equal keys are shuffled.
    """
    order = empty(contiguous_spec((n,), int64, where))
    if not n:
        return order
    bits = min(64, math.ceil(math.log2(n - (6 * n * n + 1) / (12 * math.log(0.9)))))
    dtype = int32 if bits <= 32 else int64
    limit = 1 << (8 * dtype.itemsize - 1)
    keys = empty(contiguous_spec((n,), dtype, where))
    random_(keys, -limit, limit - 1, generator=generator)
    if bits < 8 * dtype.itemsize:
        keys = keys & ((1 << bits) - 1)
    keys, order = ordered(keys, 0, False, n)
    where.backend.extras["shuffle_runs"](address(order), address(keys), n, dtype, generator)
    return order


def multinomial(generator: Generator, input: Tensor, count: int, replacement: bool) -> Tensor:
    """`count` indices from each row, weighted by it. Shapes: [..., categories] -> [..., count].

    A single index, and indices without replacement, are PyTorch's for the generator's state, up to the last bits of exponentials.
    """
    weights = bare(input)
    if replacement and count > 1:
        return _searched(generator, weights, count)
    waits = exponential_(empty_like(weights), generator=generator)
    scores = weights / waits
    return scores.argmax(-1, keepdim=True) if count == 1 else scores.topk(count).indices


def _searched(generator: Generator, weights: Tensor, count: int) -> Tensor:
    sums = weights.double().cumsum(-1)
    sizes = (*weights.spec.shape[:-1], count)
    u = uniform_(empty(contiguous_spec(sizes, float64, weights.spec.device)), generator=generator)
    categories = weights.spec.shape[-1]
    found = places(sums, u * sums[..., -1:], True, int64).clamp(max=categories - 1)
    # Sums are rounded, so a search may end at a weight of 0. The nearest category before it that has a weight is taken, else the first one.
    has_weight = weights > 0
    nearest = arange(categories, device=weights.device).where(has_weight, -1).cummax(-1).values
    found = nearest.gather(-1, found)
    return found.where(found >= 0, has_weight.to(uint8).argmax(-1, keepdim=True))
