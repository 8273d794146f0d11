"""Functions of `torch` for quantized tensors that begin with `quantized_`, besides those of recurrent layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.names import named
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from .arithmetic_operators import _batch_norm as quantized_batch_norm

__all__ = ["quantized_batch_norm", "quantized_max_pool1d", "quantized_max_pool2d", "quantized_max_pool3d"]


def _max_pooling(dims: int, inputs: str) -> Callable:
    pooled = FUNCTIONS[f"nn.functional.max_pool{dims}d"]

    @named(f"quantized_max_pool{dims}d", inputs=inputs)
    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Tensor:
        """Return the maxima of windows of {inputs}."""
        return pooled(input, kernel_size, stride or None, padding, dilation, ceil_mode)

    return pool


quantized_max_pool1d = _max_pooling(1, "sequences")
quantized_max_pool2d = _max_pooling(2, "images")
quantized_max_pool3d = _max_pooling(3, "volumes")
