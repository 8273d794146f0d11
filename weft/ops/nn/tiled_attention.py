"""Attention by kernels of a device (`Backend.extras`) that keep scores and weights out of memory, forward and backward.

The kernels take bfloat16 and float16 as they lie in memory, and several heads of queries for each head of keys. The forward pass saves the logarithm of
the sum of the exponentials of each row of scores, from which the backward pass computes the weights again.

Shapes: query [N, H, L, E], key [N, G, S, E], value [N, G, S, Ev], where G divides H; mask [N, H, L, S].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.dtype import float32
from ...core.recording import needs_recording
from ...core.spec import Spec, contiguous_spec, make_spec, strides_in_order
from ...core.tensor import Tensor, is_whole
from ...families.custom_vjp import custom_vjp
from ...families.kernel_graph import GraphBuilder, KernelGraph, Value
from .flash_attention import recorded_rule
from .window_views import wide


def tiled_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scale: float, shared: bool
) -> Tensor | None:
    """softmax(query @ key^T * scale + mask) @ value, or None where the device has no kernel for it.

    Shapes: [..., L, E], [..., S, E], [..., S, Ev] -> [..., L, Ev]. shared: several heads (dim -3) of queries may share one of keys.
    """
    if not _has_kernel(query, key, value, mask, shared):
        return None
    scores = (*query.shape[:-1], key.shape[-2])
    operands = [_with_heads(_in_rows(each)) for each in (query, key, value)]
    if mask is not None:
        mask = _with_heads(mask.resolve_neg().expand(scores))
    found, _ = attend_by_tiles(*operands, mask, causal, float(scale))
    return found.view(*query.shape[:-1], value.shape[-1]) if query.dim() != 4 else found


def _has_kernel(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, shared: bool) -> bool:
    has_attention = query.spec.device.backend.extras.get("has_attention")
    if has_attention is None or not has_attention(query.spec, value.spec):
        return False
    given = [each for each in (query, key, value, mask) if each is not None]
    if not all(map(is_whole, given)) or needs_recording((mask,)):
        return False
    if 0 in (query.numel(), key.numel(), value.numel()):
        return False
    batch, of_keys = query.shape[:-2], key.shape[:-2]
    if of_keys != value.shape[:-2] or len(batch) != len(of_keys):
        return False
    if shared and batch:
        return batch[:-1] == of_keys[:-1] and batch[-1] % of_keys[-1] == 0
    return batch == of_keys


def _in_rows(x: Tensor) -> Tensor:
    """The tensor with the elements of a row as neighbours."""
    return (x if x.spec.stride[-1] == 1 else x.contiguous()).resolve_neg()


def _with_heads(x: Tensor) -> Tensor:
    """The tensor with four dims."""
    while x.dim() < 4:
        x = x.unsqueeze(0)
    return x if x.dim() == 4 else x.reshape(-1, *x.shape[-3:])


# ---- Kernels ---------------------------------------------------------------------------------------------------------------


_ROWS_OUTERMOST = (0, 2, 1, 3)  # of the dims: the heads of a row are neighbours in memory


def _like(spec: Spec, features: int) -> Spec:
    """The spec of a result with so many features, contiguous or, as `spec` is, with rows outside of heads."""
    sizes = (*spec.shape[:-1], features)
    if spec.stride == strides_in_order(spec.shape, _ROWS_OUTERMOST):
        return make_spec(sizes, strides_in_order(sizes, _ROWS_OUTERMOST), spec.dtype, spec.device)
    return contiguous_spec(sizes, spec.dtype, spec.device)


def _of_rows(query: Spec) -> Spec:
    """The spec of one float32 for each query and head."""
    return contiguous_spec(query.shape[:-1], float32, query.device)


def _launch(
    graph: GraphBuilder, name: str, operands: Sequence[Value], mask: Value | None, causal: bool, scale: float
) -> None:
    prepare = operands[0].spec.device.backend.extras[name]
    launch = prepare([each.spec for each in operands], None if mask is None else mask.spec, causal, scale)
    graph.launch(launch, *operands, *() if mask is None else (mask,))


def _build(graph: GraphBuilder, causal: bool, scale: float) -> list[Value]:
    query, key, value, mask = graph.inputs
    out = graph.new(_like(query.spec, value.spec.shape[-1]))
    logsumexp = graph.new(_of_rows(query.spec))
    _launch(graph, "attention", (out, logsumexp, query, key, value), mask, causal, scale)
    return [out, logsumexp]


def _build_backward(
    graph: GraphBuilder, causal: bool, scale: float, of_query: bool, of_keys: bool
) -> list[Value]:
    """The cotangents of (query, key, value), as far as they are wanted."""
    ct, out, logsumexp, query, key, value, mask = graph.inputs
    query_ct, key_ct, value_ct = (
        graph.new(_like(each.spec, each.spec.shape[-1])) for each in (query, key, value)
    )
    shared = graph.new(_of_rows(query.spec))
    operands = query_ct, shared, query, key, value, out, ct, logsumexp
    _launch(graph, "attention_by_queries", operands, mask, causal, scale)
    if of_keys:
        operands = key_ct, value_ct, query, key, value, ct, logsumexp, shared
        _launch(graph, "attention_by_keys", operands, mask, causal, scale)
    return [*[query_ct] * of_query, *[key_ct, value_ct] * of_keys]


_ATTENTION = KernelGraph("attention", 4, _build)
_ATTENTION_BACKWARD = KernelGraph("attention_backward", 7, _build_backward)


def _rule(ct, out, query, key, value, mask, causal, scale, *, wanted):
    ct, (result, logsumexp) = ct[0], out
    if needs_recording((ct, query, key, value)):
        return _recorded_rule(ct, query, key, value, mask, causal, scale)
    of_query, of_keys = wanted[0], wanted[1] or wanted[2]
    given = _in_rows(ct), result, logsumexp, query, key, value, mask
    found = _ATTENTION_BACKWARD(given, (causal, scale, of_query, of_keys))
    each = iter(found if type(found) is tuple else (found,))
    return [next(each) if own else None for own in (of_query, of_keys, of_keys)]


def _recorded_rule(ct, query, key, value, mask, causal, scale):
    """The same in steps that can be differentiated."""
    ratio = query.shape[1] // key.shape[1]
    keys, values = (each.repeat_interleave(ratio, 1) if ratio > 1 else each for each in (key, value))
    of_query, *of_keys = recorded_rule(*wide(query.dtype, ct, query, keys, values), mask, causal, scale)
    of_keys = [each.unflatten(1, (-1, ratio)).sum(2) if ratio > 1 else each for each in of_keys]
    return (of_query, *of_keys)


@custom_vjp(joint=_rule, results=(0, 1), node_name="ScaledDotProductFlashAttentionBackward0")
def attend_by_tiles(
    query: Tensor, key: Tensor, value: Tensor, mask: Any, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    """The attention, and the logarithm of the sum of the exponentials of each row of scores, [N, H, L]."""
    return _ATTENTION((query, key, value, mask), (causal, scale))
