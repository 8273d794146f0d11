"""`torch._dynamo.testing`: tensors for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import weft
from weft.core.tensor import Tensor


def rand_strided(
    size: Sequence[int],
    stride: Sequence[int],
    dtype: Any = weft.float32,
    device: Any = "cpu",
    extra_size: int = 0,
) -> Tensor:
    """A tensor of these sizes and strides with random numbers. extra_size: further elements of its memory."""
    count = sum((length - 1) * step for length, step in zip(size, stride, strict=True)) + 1 + extra_size
    if dtype.is_floating_point or dtype.is_complex:
        memory = weft.randn(count, dtype=dtype, device=device)
    else:
        memory = weft.zeros(count, dtype=dtype, device=device)
    return memory.as_strided(size, stride)
