"""Stores nested tensors in PyTorch's files: a buffer and three tables, or values and offsets of jagged ones."""

from __future__ import annotations

from typing import Any

from ..core.dtype import int32, int64
from ..core.layout import strided
from ..core.overrides import disabled
from ..core.registry import FUNCTIONS
from ..core.tensor import Tensor
from .passes import needs_numbers


class NestedTensor(Tensor):
    """What files call the class of a jagged tensor. In weft its class is Tensor."""

    __torch_function__ = disabled  # without it, each call of a function would look for such tensors


class DimRange:
    """A hint for PyTorch's compiler, an attribute of the parts of jagged tensors in files. weft needs none and forgets its state."""

    def __setstate__(self, state: Any) -> None:
        pass


def reduce_nested(tensor: Tensor) -> tuple:
    """Return the function and the arguments that rebuild a nested tensor."""
    tensor = tensor.detach().requires_grad_(tensor.requires_grad)
    if tensor.layout is strided:
        tables = (
            tensor._nested_tensor_size(),
            tensor._nested_tensor_strides(),
            tensor._nested_tensor_storage_offsets(),
        )
        return rebuild_nested_tensor, (tensor.values().detach(), *tables)
    arguments = {
        "values": tensor.values().detach(),
        "offsets": tensor.offsets(),
        "lengths": tensor.lengths(),
        "_ragged_idx": next(dim for dim, size in enumerate(tensor.shape) if not isinstance(size, int)),
        "_metadata_cache": {},
        "requires_grad": tensor.requires_grad,
    }
    return rebuild_jagged_tensor, (arguments,)


@needs_numbers
def rebuild_nested_tensor(buffer: Tensor, sizes: Tensor, strides: Tensor, offsets: Tensor) -> Tensor:
    """A strided nested tensor. Raises: TypeError or RuntimeError unless its components lie within the buffer."""
    for each in (buffer, sizes, strides, offsets):
        _check_plain(each)
    return FUNCTIONS["_nested_view_from_buffer"](buffer, sizes, strides, offsets)


@needs_numbers
def rebuild_jagged_tensor(arguments: dict) -> Tensor:
    """A jagged tensor. Raises: TypeError or ValueError unless its components lie within the values."""
    if not isinstance(arguments, dict):
        raise TypeError(f"the arguments of a jagged tensor must be a dict, not {type(arguments).__name__}")
    values, offsets, lengths = (arguments.get(name) for name in ("values", "offsets", "lengths"))
    dim, requires_grad = arguments.get("_ragged_idx", 1), arguments.get("requires_grad", False)
    for each in (values, offsets, *(() if lengths is None else (lengths,))):
        _check_plain(each)
    assert values is not None and offsets is not None
    if type(dim) is not int or not 1 <= dim <= values.dim() or not isinstance(requires_grad, bool):
        raise ValueError("a jagged tensor has a ragged dim of its values, and requires_grad is a bool")
    _check_offsets(offsets, lengths, values.shape[dim - 1])
    result = FUNCTIONS["nested.nested_tensor_from_jagged"](values, offsets, lengths, dim)
    return result.requires_grad_() if requires_grad else result


def _check_plain(value: Any) -> None:
    if type(value) is not Tensor or value.layout is not strided or value.is_nested:
        raise TypeError(f"the parts of a nested tensor must be strided tensors, not {type(value).__name__}")


def _check_offsets(offsets: Tensor, lengths: Tensor | None, limit: int) -> None:
    if any(
        each.dim() != 1 or each.dtype not in (int32, int64)
        for each in (offsets, *(() if lengths is None else (lengths,)))
    ):
        raise ValueError("offsets and lengths of a jagged tensor must be vectors of integers")
    starts = offsets.tolist()
    counts = [b - a for a, b in zip(starts, starts[1:])] if lengths is None else lengths.tolist()
    if len(counts) != len(starts) - 1:
        raise ValueError(
            f"a jagged tensor with {len(starts)} offsets has {len(starts) - 1} lengths, not {len(counts)}"
        )
    if not all(0 <= start and 0 <= count and start + count <= limit for start, count in zip(starts, counts)):
        raise ValueError("a component of a jagged tensor lies outside of its values")
