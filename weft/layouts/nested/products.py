"""Computes products and attention of nested tensors."""

from __future__ import annotations

from typing import Any

from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ..parts import values_of
from .elementwise import plain_function
from .rules import NESTED
from .tensors import components, is_jagged, is_nested, joined, like, ragged_dim_of

cat, stack = FUNCTIONS["cat"], FUNCTIONS["stack"]
rule = NESTED.rule
_matmul = plain_function("matmul")
_attention = plain_function("nn.functional.scaled_dot_product_attention")


@rule("bmm")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the products of the components with those of a nested tensor, or with the matrices of a plain one."""
    if input.dim() != 3 or mat2.dim() != 3:
        raise RuntimeError(
            f"bmm: batch1 and batch2 must be 3D tensors, but they have {input.dim()} and {mat2.dim()} dims"
        )
    if input.shape[0] != mat2.shape[0]:
        raise RuntimeError(f"bmm: {input.shape[0]} matrices do not fit {mat2.shape[0]}")
    if is_nested(input) and not is_jagged(input) and not is_nested(mat2):
        return joined(input, [_matmul(a, b) for a, b in zip(components(input), mat2.unbind(), strict=True)])
    return matmul(input, mat2)


@rule("matmul")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The products of the components; a tensor that is not nested is a matrix for all of them, or has one for each."""
    if is_nested(input) and is_nested(other):
        return _of_both(input, other)
    nested = input if is_nested(input) else other
    if not is_jagged(nested):
        raise RuntimeError(
            "matmul: Expected both to be nested, but got a nested and a non-nested one: write torch.nn.functional.linear(x, w.t()), or "
            "make the nested tensor with layout=torch.jagged"
        )
    if nested is other:
        parts = components(other)
        left = input.unbind() if input.dim() == other.dim() else [input] * len(parts)
        results = [_matmul(a, b) for a, b in zip(left, parts, strict=True)]
        return joined(other, results) if ragged_dim_of(other) == other.dim() - 1 else stack(results)
    if ragged_dim_of(input) == input.dim() - 1:
        raise RuntimeError(
            f"matmul(): the nested tensor of size {tuple(input.shape)} is ragged in the dim that is summed over"
        )
    if other.dim() <= 2:
        return like(input, _matmul(values_of(input), other))
    return joined(input, [_matmul(a, b) for a, b in zip(components(input), other.unbind(), strict=True)])


def _of_both(input: Tensor, other: Tensor) -> Tensor:
    if input.layout is not other.layout or input.shape[0] != other.shape[0]:
        raise RuntimeError(
            f"matmul(): nested tensors of sizes {tuple(input.shape)} and {tuple(other.shape)} must have one layout and equally many components"
        )
    results = [_matmul(a, b) for a, b in zip(components(input), components(other), strict=True)]
    if not is_jagged(input):
        return joined(input, results)
    rows = ragged_dim_of(input) != input.dim() - 1
    if rows and ragged_dim_of(other) == other.dim() - 1:
        raise RuntimeError(
            f"matmul(): not supported between inputs of shapes {tuple(input.shape)} and {tuple(other.shape)}: the result would be ragged in "
            "two dims, which the strided layout can store"
        )
    return joined(input, results) if rows else stack(results)


@rule("nn.functional.scaled_dot_product_attention")
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    **options: Any,
) -> Tensor:
    """Attend within each component, without padding.

    Shapes: query [B, heads, j1, E], key and value [B, heads, j2, E] -> [B, heads, j1, E].
    """
    if not (is_nested(query) and is_nested(key) and is_nested(value)):
        raise RuntimeError(
            "scaled_dot_product_attention: query, key and value must all be nested tensors, or none of them"
        )
    if attn_mask is not None:
        raise RuntimeError(
            "scaled_dot_product_attention: nested tensors take no attn_mask; is_causal=True masks later keys"
        )
    parts = zip(components(query), components(key), components(value), strict=True)
    results = [_attention(q, k, v, None, dropout_p, **options) for q, k, v in parts]
    if is_jagged(query) and query.dim() == 4 and ragged_dim_of(query) == 2:
        # The heads of a position lie side by side, as in `query` after a linear layer, so that `transpose(1, 2)` is contiguous again.
        return like(query, cat([each.transpose(0, 1) for each in results]).transpose(0, 1))
    return joined(query, results)
