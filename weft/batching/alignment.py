"""Batches of tensors with different numbers of dims, side by side: the batch dim stays first when they broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.batched import Level, batched_at, physical
from ..core.spec import Spec, make_spec
from ..core.tensor import Tensor
from ..families.view import View


def _insert(spec: Spec, place: int, count: int) -> tuple[Spec, int]:
    step = spec.stride[place] * spec.shape[place] if place < len(spec.shape) else 1
    sizes = (*spec.shape[:place], *[1] * count, *spec.shape[place:])
    strides = (*spec.stride[:place], *[step] * count, *spec.stride[place:])
    return make_spec(sizes, strides, spec.dtype, spec.device, spec.conj, spec.neg), 0


# Dims of size 1 are inserted in front of dim `place`.
INSERT = View(
    _insert, lambda ct, out, a, place, count, *, specs: ct.reshape(specs[0].shape), name="unsqueeze"
)


def aligned(tensors: Sequence[Any], level: Level) -> list[Any]:
    """The batches of samples, all with as many dims as the sample with the most; anything else as it is."""
    ndim = max([len(x.spec.shape) for x in tensors if isinstance(x, Tensor)], default=0)
    return [align(x, ndim, level) if isinstance(x, Tensor) else x for x in tensors]


def align(tensor: Tensor, ndim: int, level: Level) -> Tensor:
    """Return the batch of a sample, with `ndim` dims after the batch dim."""
    value = physical(tensor, level)
    missing = ndim - len(tensor.spec.shape)
    if missing > 0 and batched_at(tensor, level):
        return INSERT(value, 1, missing)
    return value
