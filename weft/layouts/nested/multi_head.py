"""Multi-head attention of nested tensors: each component attends within itself, without padding and masks."""

from __future__ import annotations

from typing import Any

from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...ops.nn.flash_attention import all_weights
from ..parts import values_of
from .padding import pad
from .products import scaled_dot_product_attention
from .rules import NESTED
from .tensors import (
    components,
    contiguous,
    contiguous_pieces,
    is_jagged,
    is_nested,
    jagged,
    like,
    offsets_for,
    pieces_of,
    ragged_dim_of,
    strided,
)

linear, stack = FUNCTIONS["nn.functional.linear"], FUNCTIONS["stack"]


@NESTED.rule("nn.functional.multi_head_attention_forward")
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attend within each component.

    Shapes: query [N, j1, E], key and value [N, j2, ...] -> [N, j1, E] and, if need_weights, the weights in a plain tensor [N, L, S]
    of the largest components (of each head, [N, heads, L, S], unless averaged), 0 where there is no query or key.
    """
    if not (is_nested(query) and is_nested(key) and is_nested(value)):
        raise RuntimeError(
            "MultiheadAttention: query, key and value must all be nested tensors, or none of them"
        )
    extras = (bias_k, bias_v, static_k, static_v, key_padding_mask, attn_mask)
    if add_zero_attn or any(each is not None for each in extras):
        raise RuntimeError(
            "MultiheadAttention: nested tensors need no masks: pass is_causal=True without attn_mask to hide later keys"
        )
    if query.shape[-1] != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {query.shape[-1]}"
        )
    weights: Any
    if use_separate_proj_weight:
        weights = q_proj_weight, k_proj_weight, v_proj_weight
    else:
        assert in_proj_weight is not None
        weights = in_proj_weight.chunk(3)
    biases: Any = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    inputs = _as_jagged(query), _as_jagged(key), _as_jagged(value)
    if query is key is value and in_proj_weight is not None:
        projected = [
            like(inputs[0], each)
            for each in linear(values_of(inputs[0]), in_proj_weight, in_proj_bias).chunk(3, -1)
        ]
    else:
        projected = [
            like(x, linear(values_of(x), weight, bias))
            for x, weight, bias in zip(inputs, weights, biases, strict=True)
        ]
    heads = [like(x, values_of(x).unflatten(-1, (num_heads, -1)).transpose(0, 1), 2) for x in projected]
    found = scaled_dot_product_attention(*heads, None, dropout_p if training else 0.0, is_causal=is_causal)
    shares = _weights(heads[0], heads[1], is_causal) if need_weights else None
    if shares is not None and average_attn_weights:
        shares = shares.mean(1)
    values = linear(values_of(found).transpose(0, 1).flatten(1), out_proj_weight, out_proj_bias)
    if is_jagged(query):
        return like(query, values), shares
    sizes = [(*piece.size[:-1], values.shape[-1]) for piece in pieces_of(query)]
    return strided(values.reshape(-1), contiguous_pieces(sizes)), shares


def _weights(query: Tensor, key: Tensor, is_causal: bool) -> Tensor:
    """Return the weights of all components, [N, heads, L, S], padded with zeros."""
    found = [
        all_weights(q, k, None, is_causal, q.shape[-1] ** -0.5)
        for q, k in zip(components(query), components(key), strict=True)
    ]
    rows, columns = (max(each.shape[dim] for each in found) for dim in (-2, -1))
    return stack([pad(each, (0, columns - each.shape[-1], 0, rows - each.shape[-2])) for each in found])


def _as_jagged(x: Tensor) -> Tensor:
    """Return a nested tensor of sequences as a jagged one.

    Raises: RuntimeError for components that are no sequences of vectors.
    """
    if x.dim() != 3 or not isinstance(x.shape[-1], int):
        raise RuntimeError(
            f"MultiheadAttention: the components of a nested tensor must be sequences of vectors, but it has the size {tuple(x.shape)}"
        )
    x = contiguous(x)
    if is_jagged(x):
        if ragged_dim_of(x) != 1:
            raise RuntimeError("MultiheadAttention: dim 1 of a jagged tensor must be the ragged one")
        return x
    rows = values_of(x).view(-1, x.shape[-1])
    return jagged(rows, offsets_for([piece.size[0] for piece in pieces_of(x)], rows.device))
