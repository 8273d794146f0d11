"""Norms of layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._builder import Builder
from .base import translates


@translates("batch_norm")
def batch_norm(
    b: Builder, input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5, *_: Any,
) -> str:  # fmt: skip
    if training:
        raise NotImplementedError("batch_norm in training mode: call model.eval() before exporting")
    channels, dtype = b.meta(running_mean).shape[0], b.meta(running_mean).dtype
    scale = b.tensor(weight) or b.constant([1.0] * channels, dtype)
    shift = b.tensor(bias) or b.constant([0.0] * channels, dtype)
    return b.op(
        "BatchNormalization",
        b.tensor(input),
        scale,
        shift,
        b.tensor(running_mean),
        b.tensor(running_var),
        epsilon=eps,
    )


@translates("layer_norm")
def layer_norm(
    b: Builder, input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> str:
    shape = list(normalized_shape)
    scale = b.tensor(weight) or b.constant(np.ones(shape), b.result().dtype)
    return b.op("LayerNormalization", b.tensor(input), scale, b.tensor(bias), axis=-len(shape), epsilon=eps)


@translates("rms_norm")
def rms_norm(b: Builder, input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> str:
    from ... import finfo

    value, dtype = b.tensor(input), b.result().dtype
    axes = b.axes(*range(-len(list(normalized_shape)), 0))
    mean = b.op("ReduceMean", b.op("Mul", value, value), axes, keepdims=1)
    eps = finfo(dtype).eps if eps is None else eps
    found = b.op("Div", value, b.op("Sqrt", b.op("Add", mean, b.constant(eps, dtype))))
    return found if weight is None else b.op("Mul", found, b.tensor(weight))


@translates("group_norm")
def group_norm(
    b: Builder, input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> str:
    known, dtype = b.meta(input), b.result().dtype
    sizes = b.sizes_of(input)
    grouped = b.reshape(b.tensor(input), [sizes[0], num_groups, -1])
    ones = b.constant([1.0] * num_groups, dtype)
    zeros = b.constant([0.0] * num_groups, dtype)
    found = b.reshape(b.op("InstanceNormalization", grouped, ones, zeros, epsilon=eps), sizes)
    return _affine(b, found, weight, bias, known.dim())


def _affine(b: Builder, value: str, weight: Any, bias: Any, rank: int) -> str:
    """Scale and shift each channel, which is dimension 1."""
    shape = [-1] + [1] * (rank - 2)
    value = value if weight is None else b.op("Mul", value, b.reshape(b.tensor(weight), shape))
    return value if bias is None else b.op("Add", value, b.reshape(b.tensor(bias), shape))


@translates("instance_norm")
def instance_norm(
    b: Builder, input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> str:  # fmt: skip
    if not use_input_stats:
        return batch_norm(b, input, running_mean, running_var, weight, bias, False, momentum, eps)
    channels, dtype = b.meta(input).shape[1], b.result().dtype
    scale = b.tensor(weight) or b.constant([1.0] * channels, dtype)
    shift = b.tensor(bias) or b.constant([0.0] * channels, dtype)
    return b.op("InstanceNormalization", b.tensor(input), scale, shift, epsilon=eps)


@translates("local_response_norm")
def local_response_norm(
    b: Builder, input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> str:
    return b.op("LRN", b.tensor(input), size=size, alpha=float(alpha), beta=float(beta), bias=float(k))
