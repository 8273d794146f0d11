"""Defines multi-head attention."""

from __future__ import annotations

from typing import Any

from ...autograd.parameter import Parameter
from ...core.dtype import DType
from ...core.tensor import Tensor
from ...ops.creation.creation import empty
from .. import functional as F
from .. import init
from ..module import Module
from .linear import NonDynamicallyQuantizableLinear


class MultiheadAttention(Module):
    """Projects queries, keys and values, attends in `num_heads` parts of embed_dim / num_heads, projects the result.

    Shapes: query [L, N, embed_dim], key [S, N, kdim], value [S, N, vdim] -> [L, N, embed_dim] and weights [N, L, S];
    with batch_first N comes first; N may be absent. key_padding_mask [N, S], attn_mask [L, S] or
    [N * num_heads, L, S]: True where a key does not count, or numbers added to the scores.
    Source: Vaswani et al. 2017, "Attention is all you need".

    >>> import weft as torch
    >>> attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.randn(4, 5, 8)
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([4, 5, 8]), torch.Size([4, 5, 5]))
    """

    in_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    q_proj_weight: Tensor | None
    k_proj_weight: Tensor | None
    v_proj_weight: Tensor | None
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if embed_dim % num_heads:
            raise AssertionError(
                f"embed_dim must be divisible by num_heads: embed_dim={embed_dim}, num_heads={num_heads}"
            )
        self.add_zero_attn = add_zero_attn
        factory = {"device": device, "dtype": dtype}
        together = self._qkv_same_embed_dim
        sizes = {
            "q_proj_weight": None if together else (embed_dim, embed_dim),
            "k_proj_weight": None if together else (embed_dim, self.kdim),
            "v_proj_weight": None if together else (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim) if together else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
        }
        for name, size in sizes.items():
            self.register_parameter(name, None if size is None else Parameter(empty(size, **factory)))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **factory)
        for name in ("bias_k", "bias_v"):
            values = Parameter(empty((1, 1, embed_dim), **factory)) if add_bias_kv else None
            self.register_parameter(name, values)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)  # older pickles lack this attribute
        super().__setstate__(state)

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Merge two masks. Returns the mask and its kind (1: keys, 2: all pairs), or (None, None) without masks."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length = query.shape[:2]
        merged = attn_mask if attn_mask.dim() == 3 else attn_mask.expand(batch, length, length)
        merged = merged.view(batch, -1, length, length).expand(batch, self.num_heads, length, length)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length)
        return merged, 2

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        if query.is_nested and not self.batch_first:
            raise RuntimeError(
                "MultiheadAttention: the batch is the first dim of a nested tensor: pass batch_first=True"
            )
        swap = self.batch_first and query.dim() == 3 and not query.is_nested
        if swap:
            # If query, key and value are one tensor, keep them one tensor, so that it is projected once.
            swapped = {id(each): each.transpose(0, 1) for each in (query, key, value)}
            query, key, value = swapped[id(query)], swapped[id(key)], swapped[id(value)]
        found, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            not self._qkv_same_embed_dim,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (found.transpose(0, 1) if swap else found), weights
