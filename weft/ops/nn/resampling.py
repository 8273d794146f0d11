"""Weighted sums of neighbouring elements along a dim: what images are resized with, and what adaptive pooling averages with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.dtype import float32, float64, int32, uint8
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor, address, empty
from ...families.array_op import on_device
from ...families.custom_vjp import custom_vjp


class Table:
    """Each position of a resized dim is a sum: of the elements from `first` on, times `weights`.

    Shapes: first and count [size], weights [size, taps]. `bits`: of integer weights, how many are behind the point.
    """

    __slots__ = ("own", "size", "weights", "bounds", "bits", "_transposed")

    def __init__(self, own: int, first: np.ndarray, count: np.ndarray, weights: np.ndarray):
        assert (first >= 0).all() and (first + count <= own).all() and (count <= weights.shape[1]).all()
        self.own, self.size, self.bits = own, len(first), 0
        self.weights = np.ascontiguousarray(weights)
        self.bounds = np.stack([first, count], 1).astype(np.int64)
        self._transposed: Table | None = None

    @property
    def transposed(self) -> Table:
        """Which positions of the result each element goes into: the derivative."""
        if self._transposed is None:
            first, count = self.bounds.T
            i, j = np.nonzero(np.arange(self.weights.shape[1]) < count[:, None])
            element = first[i] + j
            least = np.full(self.own, self.size)
            most = np.full(self.own, -1)
            np.minimum.at(least, element, i)
            np.maximum.at(most, element, i)
            counts = np.maximum(most - least + 1, 0)
            least[counts == 0] = 0
            weights = np.zeros((self.own, counts.max()), self.weights.dtype)
            weights[element, i - least[element]] = self.weights[i, j]
            self._transposed = Table(self.size, least, counts, weights)
        return self._transposed


def _resample_rule(ct: Tensor, out: Any, input: Tensor, dim: int, table: Table) -> Tensor:
    return resample(ct, dim, table.transposed)


@custom_vjp(_resample_rule)
def resample(input: Tensor, dim: int, table: Table) -> Tensor:
    """Sum weighted elements along a dim."""
    spec = input.spec
    shape = (*spec.shape[:dim], table.size, *spec.shape[dim + 1 :])
    result = empty(contiguous_spec(shape, spec.dtype, spec.device))
    if not result.spec.numel or not spec.device.backend.has_memory:
        return result
    kernel = spec.device.backend.extras.get("resample")
    if kernel is None or spec.dtype not in (uint8, float32, float64):
        return _sums_of_taps(input, dim, table)
    input = input.contiguous().resolve_neg()
    sizes = math.prod(shape[:dim]), table.size, table.own, math.prod(shape[dim + 1 :])
    kernel(address(result), address(input), spec.dtype, sizes, table.bounds, table.weights, table.bits)
    return result


def _sums_of_taps(input: Tensor, dim: int, table: Table) -> Tensor:
    """As `resample`, by ops that every device and dtype has: tap k of all positions at once."""
    where, is_bytes = input.spec.device, input.spec.dtype is uint8
    behind = (1,) * (input.spec.ndim - dim - 1)
    first, count = table.bounds.T
    total: Any = None
    for k in range(table.weights.shape[1]):
        chosen = on_device(np.minimum(first + k, table.own - 1), where)
        rows = input.index_select(dim, chosen).to(int32 if is_bytes else input.spec.dtype)
        weights = on_device(table.weights[:, k].reshape(-1, *behind), where, rows.spec.dtype)
        term = (rows * weights).masked_fill(on_device((k >= count).reshape(-1, *behind), where), 0)
        total = term if total is None else total + term
    if not is_bytes:
        return total
    return ((total + (1 << table.bits >> 1)) >> table.bits).clamp(0, 255).to(uint8)
