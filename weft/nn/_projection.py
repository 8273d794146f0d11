"""Defines helpers of `multi_head_attention_forward` and losses, which other libraries import from PyTorch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from ..core.dtype import DType, bool_
from ..core.tensor import Tensor
from ..core.warn import user_level
from ..ops.creation.creation import zeros_like
from ..ops.nn.linear import linear


def _verify_batch_size(size: Sequence[int]) -> None:
    """Raise ValueError if each channel has a single value, which has no variance."""
    if math.prod((size[0], *size[2:])) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def _none_or_dtype(input: Tensor | None) -> DType | None:
    if input is None:
        return None
    if isinstance(input, Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: DType | None,
    other_name: str,
    target_type: DType,
    check_other: bool = True,
) -> Tensor | None:
    """Return the mask to add to scores: -inf where a bool mask is True, or the floating mask itself."""
    if mask is None:
        return None
    is_floating = mask.dtype.is_floating_point
    if mask.dtype is not bool_ and not is_floating:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype is not other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=user_level(),
        )
    if is_floating:
        return mask
    return zeros_like(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def _mha_shape_check(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Return whether the query has a batch dimension. Raises AssertionError if the other arguments do not fit it."""
    ndim = query.dim()
    if ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {ndim}-D query tensor"
        )
    kind = "batched (3-D)" if ndim == 3 else "unbatched (2-D)"
    if not key.dim() == value.dim() == ndim:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {ndim}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != ndim - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {ndim - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor "
                "instead"
            )
        wanted = (num_heads, query.shape[0], key.shape[0])
        if ndim == 2 and attn_mask.dim() == 3 and attn_mask.shape != wanted:
            raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {attn_mask.shape}")
    return ndim == 3


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Multiply query, key and value with their weights: [..., E] and [E, E] -> [..., E]."""
    features, key_features, value_features = q.size(-1), k.size(-1), v.size(-1)
    for name, weight, size in (
        ("query", w_q, features),
        ("key", w_k, key_features),
        ("value", w_v, value_features),
    ):
        if weight.shape != (features, size):
            raise AssertionError(
                f"expecting {name} weights shape of {(features, size)}, but got {weight.shape}"
            )
    for name, bias in (("query", b_q), ("key", b_k), ("value", b_v)):
        if bias is not None and bias.shape != (features,):
            raise AssertionError(f"expecting {name} bias shape of {(features,)}, but got {bias.shape}")
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Do what `_in_projection` does, with the three weights in one tensor [3 * E, E], and the biases in [3 * E]."""
    size = q.size(-1)
    if q is k is v:
        return tuple(linear(q, w, b).chunk(3, -1))
    biases: Sequence[Tensor | None] = (None, None, None) if b is None else b.chunk(3)
    if k is not v:
        return tuple(
            linear(x, weight, bias) for x, weight, bias in zip((q, k, v), w.chunk(3), biases, strict=True)
        )
    rest = None if b is None else b[size:]
    return linear(q, w[:size], biases[0]), *linear(k, w[size:], rest).chunk(2, -1)
