"""Computes attention: weighted sums of values, weighted by how well keys match queries."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ...core.dtype import bool_, compute_type
from ...core.iteration import broadcast_shapes, broadcasts
from ...core.plans import PlanCache
from ...core.public import public
from ...core.recording import needs_recording
from ...core.spec import Spec
from ...core.tensor import Tensor
from ...core.warn import user_level
from ..assembly.joining import cat
from ..assembly.padding import constant_pad
from ..creation.creation import zeros, zeros_like
from ..reductions.softmax import softmax
from .dropout import dropout, dropped
from .flash_attention import all_weights, attend
from .linear import linear
from .tiled_attention import tiled_attention
from .window_views import wide


@public(name="nn.functional.scaled_dot_product_attention", autocast="lower")
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key^T * scale + mask) @ value; scale is 1 / sqrt(E) unless given.

    Shapes: query [..., L, E], key [..., S, E], value [..., S, Ev] -> [..., L, Ev]. attn_mask broadcasts to [..., L, S]: True
    where a key counts, or added to the scores. is_causal: a query sees no later keys. enable_gqa: several heads (dim -3)
    of queries share one of keys. Source: Vaswani et al. 2017, "Attention is all you need".
    """
    mask_spec = None if attn_mask is None else attn_mask.spec
    _checked[query.spec, key.spec, value.spec, mask_spec, is_causal, enable_gqa]
    dtype = query.spec.dtype
    if scale is None:
        features = query.size(-1)
        scale = 1 / math.sqrt(features) if features else math.inf
    tiled = None if dropout_p else tiled_attention(query, key, value, attn_mask, is_causal, scale, enable_gqa)
    if tiled is not None:
        return tiled
    if enable_gqa:
        key, value = (_repeated_heads(each, query) for each in (key, value))
    q, k, v = (query, key, value) if dtype is compute_type(dtype) else wide(dtype, query, key, value)
    if not dropout_p and not needs_recording((attn_mask,)) and q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        found = _in_blocks(q, k, v, attn_mask, is_causal, scale).to(dtype)
    else:
        found = _at_once(q, k, v, attn_mask, is_causal, scale, dropout_p).to(dtype)
    if query.spec.ndim == 4 and dropout_p == 0 and _has_positions_outermost(query):
        return found.transpose(1, 2).contiguous().transpose(1, 2)
    return found


def _in_blocks(q: Tensor, k: Tensor, v: Tensor, mask: Any, is_causal: bool, scale: float) -> Tensor:
    if q.dim() > 2:
        return attend(q, k, v, mask, is_causal, scale)
    return attend(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), mask, is_causal, scale).squeeze(0)


def _at_once(
    q: Tensor, k: Tensor, v: Tensor, mask: Any, is_causal: bool, scale: float, dropout_p: float
) -> Tensor:
    """With all weights in memory: for dropout, batches that broadcast, and masks that are trained."""
    weights = all_weights(q, k, mask, is_causal, scale)
    return dropped(weights, dropout_p, train=True).matmul(v)


def _has_positions_outermost(query: Tensor) -> bool:
    """Whether [N, heads, L, E] has the heads of one position side by side in memory; the result then has too."""
    return not query.is_contiguous() and query.transpose(1, 2).is_contiguous()


def _check_attention(
    query: Spec, key: Spec, value: Spec, attn_mask: Spec | None, is_causal: bool, enable_gqa: bool
) -> None:
    if query.dtype is not key.dtype or query.dtype is not value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    if query.device is not key.device or query.device is not value.device:
        raise RuntimeError(
            "Expected query, key, and value to have the same device type, but got query.device: "
            f"{query.device} key.device: {key.device} and value.device: {value.device} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    (length, features), (keys, n), (values, m) = query.shape[-2:], key.shape[-2:], value.shape[-2:]
    flat = query.ndim == key.ndim == value.ndim == 2
    for a, b in (((length, features), (n, keys)), ((length, keys), (values, m))):
        if a[1] != b[0]:
            shapes = f"query {list(query.shape)}, key {list(key.shape)}, value {list(value.shape)}"
            count = math.prod(query.shape[:-2])
            raise RuntimeError(
                f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]})\n"
                f"scaled_dot_product_attention: {shapes}"
                if flat
                else f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {a[1]}] but got: "
                f"[{count}, {b[0]}].\nscaled_dot_product_attention: {shapes}"
            )
    if attn_mask is None:
        return
    if is_causal:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
        )
    if attn_mask.dtype not in (bool_, query.dtype) and attn_mask.dtype.name != "float32":
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{attn_mask.dtype} and  query.dtype: {query.dtype} instead."
        )
    batch = query.shape[:-2]
    if not enable_gqa:
        batch = broadcast_shapes("scaled_dot_product_attention", batch, key.shape[:-2])
    scores = (*batch, query.shape[-2], key.shape[-2])
    if not broadcasts(attn_mask.shape, scores):
        raise RuntimeError(
            f"The expanded size of attn_mask, {list(attn_mask.shape)}, must match the scores, {list(scores)}: queries "
            f"are {list(query.shape)}, keys {list(key.shape)}"
        )


_checked = PlanCache(_check_attention)


def _repeated_heads(shared: Tensor, query: Tensor) -> Tensor:
    heads, own = query.size(-3), shared.size(-3)
    if own == 0 or heads % own:
        raise RuntimeError(
            f"Number of heads in key and value must divide the number of heads in query: {own} do not divide {heads}"
        )
    return shared.repeat_interleave(heads // own, -3)


# ---- Many heads ----------------------------------------------------------------------------------------------------------------


@public(name="nn.functional.multi_head_attention_forward")
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
    """Project queries, keys and values, attend in `num_heads` parts, project the result.

    Shapes: query [L, N, E], key and value [S, N, ...], without N as well -> [L, N, E] and, if need_weights, the weights
    [N, L, S] (of each head, [N, heads, L, S], unless averaged). key_padding_mask [N, S], attn_mask [L, S] or
    [N * heads, L, S]: True where a key does not count, or added to the scores.
    """
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (each.unsqueeze(1) for each in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, features = query.spec.shape
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if features != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {features}")
    if features % num_heads:
        raise AssertionError(f"embed_dim {features} not divisible by num_heads {num_heads}")
    compared = slice(2) if use_separate_proj_weight else slice(None)
    if key.shape[compared] != value.shape[compared]:
        raise AssertionError(f"key shape {list(key.shape)} does not match value shape {list(value.shape)}")
    if in_proj_weight is None and not use_separate_proj_weight:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    per_head = features // num_heads
    if (
        attn_mask is not None
        and key_padding_mask is not None
        and attn_mask.dtype is not key_padding_mask.dtype
    ):
        warnings.warn(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead.",
            stacklevel=user_level(),
        )
    # If no other mask hides keys, is_causal replaces attn_mask.
    is_causal = is_causal and key_padding_mask is None and not need_weights
    attn_mask = None if is_causal else _additive(attn_mask, query, "attn_mask")
    key_padding_mask = _additive(key_padding_mask, query, "key_padding_mask")
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight
    q, k, v = _projected(query, key, value, weights, in_proj_bias)
    attn_mask = _mask_of_heads(attn_mask, length, key.size(0), batch * num_heads)
    if bias_k is not None and bias_v is not None:
        k, v = cat([k, bias_k.repeat(1, batch, 1)]), cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _one_more_key(attn_mask), _one_more_key(key_padding_mask)
    q = q.view(length, batch * num_heads, per_head).transpose(0, 1)
    k = _heads(k, static_k, "static_k", batch, num_heads, per_head)
    v = _heads(v, static_v, "static_v", batch, num_heads, per_head)
    if add_zero_attn:
        k, v = (
            cat([each, zeros(batch * num_heads, 1, per_head, dtype=each.dtype, device=each.device)], 1)
            for each in (k, v)
        )
        attn_mask, key_padding_mask = _one_more_key(attn_mask), _one_more_key(key_padding_mask)
    keys = k.size(1)
    mask = _merged(attn_mask, key_padding_mask, batch, num_heads, keys)
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        scores = (q * math.sqrt(1.0 / per_head)).bmm(k.transpose(-2, -1))
        shares = softmax(scores if mask is None else scores + mask, -1)
        if dropout_p > 0:
            shares = dropout(shares, dropout_p)
        found = shares.bmm(v).transpose(0, 1).contiguous().view(length * batch, features)
        result = linear(found, out_proj_weight, out_proj_bias).view(length, batch, out_proj_weight.size(0))
        shares = shares.view(batch, num_heads, length, keys)
        shares = shares.mean(1) if average_attn_weights else shares
        return (result, shares) if batched else (result.squeeze(1), shares.squeeze(0))
    if mask is not None:
        mask = mask.unsqueeze(0) if mask.size(0) == 1 else mask.view(batch, num_heads, -1, keys)
    q = q.view(batch, num_heads, length, per_head)
    k, v = (each.view(batch, num_heads, keys, per_head) for each in (k, v))
    found = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    found = found.permute(2, 0, 1, 3).contiguous().view(length * batch, features)
    result = linear(found, out_proj_weight, out_proj_bias).view(length, batch, out_proj_weight.size(0))
    return (result if batched else result.squeeze(1)), None


def _is_batched(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask, attn_mask, num_heads: int
) -> bool:
    ndim = query.spec.ndim
    if ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {ndim}-D query tensor"
        )
    kind = "batched (3-D)" if ndim == 3 else "unbatched (2-D)"
    if key.spec.ndim != ndim or value.spec.ndim != ndim:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {ndim}-D but found {key.spec.ndim}-D and {value.spec.ndim}-D "
            "tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.spec.ndim != ndim - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {ndim - 1}-D but found "
            f"{key_padding_mask.spec.ndim}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.spec.ndim not in (2, 3):
        raise AssertionError(
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.spec.ndim}-D tensor instead"
        )
    expected = (num_heads, query.size(0), key.size(0))
    if ndim == 2 and attn_mask is not None and attn_mask.spec.ndim == 3 and attn_mask.spec.shape != expected:
        raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.spec.shape}")
    return ndim == 3


def _additive(mask: Tensor | None, like: Tensor, name: str) -> Tensor | None:
    """A mask as numbers to add: minus infinity where it is True."""
    if mask is None or mask.spec.dtype.is_floating_point:
        return mask
    if mask.spec.dtype is not bool_:
        raise AssertionError(f"only bool and floating types of {name} are supported, not {mask.spec.dtype}")
    return zeros_like(mask, dtype=like.spec.dtype).masked_fill(mask, -math.inf)


def _projected(query: Tensor, key: Tensor, value: Tensor, weights: Any, bias: Tensor | None) -> list[Tensor]:
    parts = weights.chunk(3) if isinstance(weights, Tensor) else weights
    offsets = (None, None, None) if bias is None else bias.chunk(3)
    return [linear(*each) for each in zip((query, key, value), parts, offsets, strict=True)]


def _mask_of_heads(mask: Tensor | None, length: int, keys: int, heads: int) -> Tensor | None:
    if mask is None:
        return None
    expected = (length, keys) if mask.spec.ndim == 2 else (heads, length, keys)
    if mask.spec.shape != expected:
        raise RuntimeError(
            f"The shape of the {mask.spec.ndim}D attn_mask is {mask.spec.shape}, but should be {expected}."
        )
    return mask.unsqueeze(0) if mask.spec.ndim == 2 else mask


def _one_more_key(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else constant_pad(mask, (0, 1), 0)


def _heads(
    projected: Tensor, static: Tensor | None, name: str, batch: int, num_heads: int, per_head: int
) -> Tensor:
    """[S, N, E] -> [N * heads, S, E / heads]; a given `static` tensor takes its place."""
    if static is None:
        return projected.view(projected.size(0), batch * num_heads, per_head).transpose(0, 1)
    if static.size(0) != batch * num_heads:
        raise AssertionError(f"expecting {name}.size(0) of {batch * num_heads}, but got {static.size(0)}")
    if static.size(2) != per_head:
        raise AssertionError(f"expecting {name}.size(2) of {per_head}, but got {static.size(2)}")
    return static


def _merged(
    mask: Tensor | None, padding: Tensor | None, batch: int, num_heads: int, keys: int
) -> Tensor | None:
    """Both masks as one that broadcasts to [N * heads, L, S]."""
    if padding is None:
        return mask
    if padding.spec.shape != (batch, keys):
        raise AssertionError(
            f"expecting key_padding_mask shape of {(batch, keys)}, but got {padding.spec.shape}"
        )
    padding = (
        padding.view(batch, 1, 1, keys).expand(-1, num_heads, -1, -1).reshape(batch * num_heads, 1, keys)
    )
    return padding if mask is None else mask + padding
