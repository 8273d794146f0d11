"""Converts between nested tensors and padded ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ..parts import values_of
from .rules import NESTED
from .tensors import components, fills_values, is_jagged, is_nested, ragged_dim_of, spans_of

arange, cat, stack = FUNCTIONS["arange"], FUNCTIONS["cat"], FUNCTIONS["stack"]
pad = FUNCTIONS["nn.functional.pad"]


@NESTED.rule("to_padded_tensor")
def to_padded(input: Tensor, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
    """The components in a tensor of the least size that has room for them, or of `output_size`; the rest is padding."""
    if is_jagged(input):
        return _from_jagged(input, padding, output_size)
    parts = components(input)
    if not parts:
        return FUNCTIONS["empty"](0, dtype=input.dtype, device=input.device)
    least = [max(sizes) for sizes in zip(*(each.shape for each in parts), strict=True)]
    wanted = least
    if output_size is not None:
        if len(output_size) != input.dim():
            raise RuntimeError(
                f"output_size has {len(output_size)} sizes, and the nested tensor {input.dim()} dims"
            )
        wanted = list(output_size[1:])
        if any(w < size for w, size in zip(wanted, least, strict=True)) or output_size[0] != len(parts):
            raise RuntimeError(
                f"Value in output_size is less than NestedTensor padded size. Truncation is not supported: {list(output_size)} "
                f"has no room for {[len(parts), *least]}"
            )
    padded = []
    for each in parts:
        missing = [w - size for w, size in zip(wanted, each.shape, strict=True)]
        padded.append(pad(each, [item for size in reversed(missing) for item in (0, size)], value=padding))
    return stack(padded)


def _from_jagged(x: Tensor, padding: float, output_size: Sequence[int] | None) -> Tensor:
    """As PyTorch does, this takes of `output_size` only the size of the ragged dim, to which longer components are cut."""
    dim, spans = ragged_dim_of(x), spans_of(x)
    length = max((span.length for span in spans), default=0)
    wanted = length if output_size is None else output_size[dim]
    rows = values_of(x).movedim(dim - 1, 0)
    taken = [min(span.length, wanted) for span in spans]
    if wanted < length or not fills_values(x):
        ranges = [arange(span.start, span.start + size) for span, size in zip(spans, taken, strict=True)]
        rows = rows.index_select(0, cat(ranges))
    places = [arange(k * wanted, k * wanted + size) for k, size in enumerate(taken)]
    result = rows.new_full((len(spans) * wanted, *rows.shape[1:]), padding)
    if places:
        result.index_copy_(0, cat(places), rows)
    return result.view(len(spans), wanted, *rows.shape[1:]).movedim(1, dim)


def to_padded_tensor(
    input: Tensor, padding: float, output_size: Sequence[int] | None = None, out: Any = None
) -> Tensor:
    """The components of a nested tensor in a tensor of the least size that has room for them; the rest is `padding`.

    output_size: the size of the result, for more room.

    >>> import weft as torch
    >>> x = torch.nested.nested_tensor([torch.tensor([1.0, 2.0]), torch.tensor([3.0])])
    >>> torch.nested.to_padded_tensor(x, 0.0)
    tensor([[1., 2.],
            [3., 0.]])
    """
    if not isinstance(input, Tensor):
        raise TypeError(
            f"to_padded_tensor(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}"
        )
    if not is_nested(input):
        raise NotImplementedError(
            "Could not run 'aten::to_padded_tensor' with arguments from the 'CPU' backend: the tensor is not nested"
        )
    result = to_padded(input, padding, output_size)
    if out is None:
        return result
    return out.resize_(result.shape).copy_(result)
