"""Attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.dtype import bool_
from .._builder import Builder
from .base import translates


@translates("scaled_dot_product_attention")
def attention(
    b: Builder, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: Any = None, enable_gqa: bool = False,
) -> str:  # fmt: skip
    dtype = b.result().dtype
    heads_q, heads_k = b.meta(query).shape[-3:-2], b.meta(key).shape[-3:-2]
    keys, values = b.tensor(key), b.tensor(value)
    if enable_gqa and heads_q != heads_k:
        keys, values = (
            _repeated_heads(b, name, of, heads_q[0]) for name, of in ((keys, key), (values, value))
        )
    rank = b.meta(key).dim()
    order = [*range(rank - 2), rank - 1, rank - 2]
    factor = 1 / math.sqrt(b.meta(query).shape[-1]) if scale is None else scale
    scores = b.op(
        "Mul", b.op("MatMul", b.tensor(query), b.op("Transpose", keys, perm=order)), b.constant(factor, dtype)
    )
    if is_causal:
        whole = b.op("Expand", b.constant(1, np.int64), b.ints([b.size_of(query, -2), b.size_of(key, -2)]))
        allowed = b.cast(b.op("Trilu", whole, b.constant(0, np.int64), upper=0), bool_)
        scores = b.op("Where", allowed, scores, b.constant(-math.inf, dtype))
    if attn_mask is not None:
        if b.meta(attn_mask).dtype == bool_:
            scores = b.op("Where", b.tensor(attn_mask), scores, b.constant(-math.inf, dtype))
        else:
            scores = b.op("Add", scores, b.tensor(attn_mask, dtype))
    return b.op("MatMul", b.op("Softmax", scores, axis=-1), values)


def _repeated_heads(b: Builder, name: str, of: Any, heads: int) -> str:
    sizes = b.sizes_of(of)
    times = heads // b.meta(of).shape[-3]
    wide = b.op("Unsqueeze", name, b.axes(-3))
    wide = b.op("Expand", wide, b.ints([*sizes[:-2], times, *sizes[-2:]]))
    return b.reshape(wide, [*sizes[:-3], heads, *sizes[-2:]])


@translates("multi_head_attention_forward")
def multi_head_attention(
    b: Builder, query: Any, key: Any, value: Any, embed_dim: int, num_heads: int, in_proj_weight: Any, in_proj_bias: Any,
    bias_k: Any, bias_v: Any, add_zero_attn: bool, dropout_p: float, out_proj_weight: Any, out_proj_bias: Any,
    training: bool = True, key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None, v_proj_weight: Any = None,
    static_k: Any = None, static_v: Any = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple:  # fmt: skip
    if (
        bias_k is not None
        or add_zero_attn
        or use_separate_proj_weight
        or static_k is not None
        or b.meta(query).dim() != 3
    ):
        raise NotImplementedError(
            "multi_head_attention_forward with bias_kv, zero attention, separate weights or without a batch"
        )
    dtype, head = b.result()[0].dtype, embed_dim // num_heads
    length, batch, source = b.size_of(query, 0), b.size_of(query, 1), b.size_of(key, 0)
    weights = b.op("Split", b.tensor(in_proj_weight), axis=0, num_outputs=3, outputs=3)
    biases = (
        ("", "", "")
        if in_proj_bias is None
        else b.op("Split", b.tensor(in_proj_bias), axis=0, num_outputs=3, outputs=3)
    )

    def projected(of: Any, weight: str, bias: str, size: Any) -> str:  # [L, N, E] -> [N, heads, L, head]
        product = b.op("MatMul", b.tensor(of), b.op("Transpose", weight, perm=[1, 0]))
        product = b.op("Add", product, bias) if bias else product
        return b.op("Transpose", b.reshape(product, [size, batch, num_heads, head]), perm=[1, 2, 0, 3])

    q, k, v = (
        projected(of, weight, bias, size)
        for of, weight, bias, size in zip((query, key, value), weights, biases, (length, source, source))
    )
    scores = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.op("Mul", scores, b.constant(1 / math.sqrt(head), dtype))
    if attn_mask is not None:
        mask = b.tensor(attn_mask)
        if b.meta(attn_mask).dim() == 3:
            mask = b.reshape(mask, [batch, num_heads, length, source])
        scores = _masked(b, scores, mask, b.meta(attn_mask).dtype, dtype)
    if key_padding_mask is not None:
        mask = b.reshape(b.tensor(key_padding_mask), [batch, 1, 1, source])
        scores = _masked(b, scores, mask, b.meta(key_padding_mask).dtype, dtype)
    attention_weights = b.op("Softmax", scores, axis=-1)
    joined = b.op("Transpose", b.op("MatMul", attention_weights, v), perm=[2, 0, 1, 3])
    joined = b.reshape(joined, [length, batch, embed_dim])
    out = b.op("MatMul", joined, b.op("Transpose", b.tensor(out_proj_weight), perm=[1, 0]))
    out = out if out_proj_bias is None else b.op("Add", out, b.tensor(out_proj_bias))
    if not need_weights:
        return out, None
    if average_attn_weights:
        attention_weights = b.op("ReduceMean", attention_weights, b.axes(1), keepdims=0)
    return out, attention_weights


def _masked(b: Builder, scores: str, mask: str, kind: Any, dtype: Any) -> str:
    """Scores without those where the mask is True, or with a mask of numbers added."""
    if kind == bool_:
        return b.op("Where", mask, b.constant(-math.inf, dtype), scores)
    return b.op("Add", scores, mask)
