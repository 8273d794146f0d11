"""Gradients in COO: those of tables of which a function read some rows or elements."""

from __future__ import annotations

from ...core.dtype import int64
from ...core.spec import Spec
from ...core.tensor import Tensor
from ...ops.assembly.joining import stack
from ...ops.creation.creation import empty
from ...ops.creation.ranges import arange
from .coo import coo


def of_rows(ct: Tensor, numbers: Tensor, padding_idx: int | None, table: Spec) -> Tensor:
    """The gradient of a table [rows, features] whose rows with these numbers were read.

    Shapes: numbers [...], ct [..., features]. There is an entry for each number, in their order, but for those equal to `padding_idx`.
    """
    # PyTorch stores no entries of a table without features.
    numbers = numbers.reshape(-1) if table.shape[1] else numbers.new_empty(0)
    values = ct.reshape(numbers.shape[0], table.shape[1])
    if padding_idx is not None:
        counted = (numbers != padding_idx % table.shape[0]).nonzero().view(-1)
        numbers, values = numbers.index_select(0, counted), values.index_select(0, counted)
    return _entries(numbers.to(int64).view(1, -1), values, table)


def of_elements(ct: Tensor, index: Tensor, dim: int, input: Spec) -> Tensor:
    """The gradient of the input of `gather`: an entry for each element of `index`, whose shape is that of `ct`."""
    if not input.shape:
        return _entries(empty((0, ct.numel()), dtype=int64, device=ct.device), ct.reshape(-1), input)
    index = index.to(int64).reshape(index.shape or (1,))
    places = [index if other == dim % index.dim() else _along(index, other) for other in range(index.dim())]
    return _entries(stack([place.reshape(-1) for place in places]), ct.reshape(-1), input)


def _along(index: Tensor, dim: int) -> Tensor:
    """Return, for each element of `index`, its place along `dim`."""
    sizes = [1] * index.dim()
    sizes[dim] = index.shape[dim]
    return arange(index.shape[dim], device=index.device).view(sizes).expand(index.shape)


def _entries(indices: Tensor, values: Tensor, spec: Spec) -> Tensor:
    return coo(indices.contiguous(), values, spec.shape, indices.shape[1] < 2)
