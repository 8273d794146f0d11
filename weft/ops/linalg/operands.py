"""Defines the memory of tensors in the order that LAPACK and the kernels of `engine/lanes.py` read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.device import CPU
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, address, make
from ...families.array_op import memory_array
from ...families.map import COPY
from .lapack import columns_like


class New:
    """Allocates tensors of one spec."""

    __slots__ = ("allocate", "spec")

    def __init__(self, spec: Spec):
        self.allocate, self.spec = CPU.backend.allocator(spec.nbytes), spec

    def __call__(self) -> Tensor:
        return make(self.allocate(), 0, self.spec)


class Copied:
    """Copies tensors of one spec into new ones of another, with other strides, another dtype, or broadcast."""

    __slots__ = ("launch", "new")

    def __init__(self, source: Spec, target: Spec):
        plan = COPY.write_plans[target, source]
        self.new, self.launch = New(target), plan

    def __call__(self, source: Tensor) -> Tensor:
        result, launch = self.new(), self.launch
        launch.entry(result._storage.ptr, address(source), launch.meta, launch.count)
        return result


def read_as(source: Spec, target: Spec) -> Callable[[Tensor], Tensor]:
    """Copies tensors, unless both specs are the same. Keep the result until LAPACK has read it, because it may be the only reference."""
    return _itself if source is target else Copied(source, target)


def _itself(tensor: Tensor) -> Tensor:
    return tensor


def readable_spec(a: Spec) -> tuple[Spec, bool]:
    """The spec in which LAPACK reads dense matrices, and whether it sees their transposes."""
    if not a.conj and not a.neg:
        by_columns = columns_like(a.shape, a)
        if a is by_columns:
            return a, False
        by_rows = contiguous_spec(a.shape, a.dtype)
        if a is by_rows:
            return a, True
    return columns_like(a.shape, a), False


def is_any(values: np.ndarray) -> bool:
    """Whether an element is not 0. A single one is asked without a reduction, which takes 0.8 us."""
    return bool(values.any()) if values.ndim else bool(values)


def any_failed(infos: Tensor) -> bool:
    return is_any(memory_array(infos))
