"""What is written into the values of a nested tensor: results of operations in place, and cotangents."""

from __future__ import annotations

from ...core.grad_mode import mode
from ...core.promotion import can_cast
from ...core.tensor import Tensor
from ..parts import parts_of, values_of
from .rules import NESTED
from .tensors import (
    components,
    is_contiguous,
    is_jagged,
    is_nested,
    joined,
    pieces_of,
    ragged_dim_of,
    same_places,
    spans_of,
)


def _assign(result: Tensor, target: Tensor) -> None:
    """Write a result of the same structure into the values of `target`, so that views of its components see it."""
    if not is_nested(target):
        target.resize_(result.shape).copy_(result)
        return
    if not is_nested(result):
        raise RuntimeError("the result is no nested tensor, so it cannot be written into one")
    if target.requires_grad and target.is_leaf and mode.enabled:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if not same_places(result, target) or parts_of(result)[-1].shape != parts_of(target)[-1].shape:
        raise RuntimeError(
            f"the result of an operation in place has the sizes {tuple(result.shape)}, the nested tensor {tuple(target.shape)}"
        )
    if not can_cast(result.dtype, target.dtype):
        raise RuntimeError(
            f"result type {result.dtype} can't be cast to the desired output type {target.dtype}"
        )
    parts_of(target)[-1].copy_(parts_of(result)[-1])
    if result._autograd is not None:
        target._autograd = result._autograd


def _restrict(ct: Tensor, template: Tensor) -> Tensor:
    """The cotangent of the values from the cotangent of the nested tensor, zero where no component lies."""
    values = parts_of(template)[-1]
    if same_places(ct, template) and parts_of(ct)[-1].shape == values.shape:
        return values_of(ct)
    found = components(ct)
    if is_contiguous(template):
        return values_of(joined(template, found))
    result = values.new_zeros(values.shape)
    if is_jagged(template):
        dim = ragged_dim_of(template) - 1
        for each, (start, length) in zip(found, spans_of(template), strict=True):
            result = result.slice_scatter(each, dim, start, start + length)
        return result
    for each, piece in zip(found, pieces_of(template), strict=True):
        result = result.as_strided_scatter(each, *piece)
    return result


NESTED.assign, NESTED.restrict = _assign, _restrict
