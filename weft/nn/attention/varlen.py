"""`torch.nn.attention.varlen`: attention of sequences of different lengths that lie one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...compat.missing import module_getattr
from ...core.dtype import bool_
from ...core.tensor import Tensor
from ...ops.assembly.joining import cat
from ...ops.creation.creation import ones
from ._flexible import attend

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What `varlen_attn` returns beside its result."""

    lse: bool = False


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Any:
    """Attention within each sequence; sequence i is rows cu_seq_q[i] to cu_seq_q[i + 1], and its keys those of cu_seq_k.

    window_size: how many keys before and after its own position a query sees, counted from the ends of both; -1 for all. So
    (-1, 0) is causal. seqused_k: how many of its keys each sequence uses. num_splits has no effect.

    Shapes: query [T, heads, D], key and value [S, heads, D] -> [T, heads, D], and with return_aux the logarithms of the
    sums of exponentials [T, heads].

    Raises: NotImplementedError for `block_table`.

    >>> import weft as torch
    >>> from weft.nn.attention.varlen import varlen_attn
    >>> x = torch.randn(10, 2, 8)  # two sequences, of 4 and 6
    >>> ends = torch.tensor([0, 4, 10], dtype=torch.int32)
    >>> varlen_attn(x, x, x, ends, ends, 6, 6, window_size=(-1, 0)).shape
    torch.Size([10, 2, 8])
    """
    if block_table is not None:
        raise NotImplementedError(
            "varlen_attn(block_table=...): keys in pages are for a CUDA kernel of PyTorch's"
        )
    own, shared = query.size(1), key.size(1)
    if own != shared and not (enable_gqa and own % shared == 0):
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={own} and Hkv={shared}. Try setting "
            "enable_gqa=True for GQA."
        )
    scale = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    results, logarithms = [], []
    for rows, keys in _sequences(cu_seq_q, cu_seq_k, seqused_k):
        q, k, v = (
            x[part].transpose(0, 1).unsqueeze(0) for x, part in ((query, rows), (key, keys), (value, keys))
        )
        if q.size(2) == 0:
            continue
        if k.size(2) == 0:  # nothing to see
            results.append(query.new_zeros(q.size(2), own, value.size(-1)))
            logarithms.append(query.new_full((q.size(2), own), -math.inf))
            continue
        mask = _window(q.size(2), k.size(2), *window_size, query.device)
        mask_mod = None if mask is None else (lambda b, h, i, j, mask=mask: mask[i, j])
        result, lse, _ = attend(q, k, v, None, mask_mod, scale, own // shared)
        results.append(result.squeeze(0).transpose(0, 1))
        logarithms.append(lse.squeeze(0).transpose(0, 1))
    result = cat(results)
    return (result, cat(logarithms)) if return_aux is not None and return_aux.lse else result


def varlen_attn_out(
    out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Any:
    """Compute the same as `varlen_attn`, with the result in `out`."""
    found = varlen_attn(
        query, key, value, cu_seq_q, cu_seq_k, max_q, max_k,
        return_aux=return_aux, scale=scale, window_size=window_size, enable_gqa=enable_gqa,
        seqused_k=seqused_k, block_table=block_table, num_splits=num_splits,
    )  # fmt: skip
    result, *lse = found if isinstance(found, tuple) else (found,)
    out.copy_(result)
    return (out, *lse) if lse else out


def _sequences(
    cu_seq_q: Tensor, cu_seq_k: Tensor | None, used: Tensor | None
) -> Iterator[tuple[slice, slice]]:
    ends = cu_seq_q.tolist()
    key_ends = ends if cu_seq_k is None else cu_seq_k.tolist()
    lengths = [b - a for a, b in zip(key_ends, key_ends[1:], strict=False)] if used is None else used.tolist()
    for start, stop, first, length in zip(ends, ends[1:], key_ends, lengths, strict=False):
        yield slice(start, stop), slice(first, first + length)


def _window(queries: int, keys: int, left: int, right: int, device: Any) -> Tensor | None:
    """The mask [queries, keys] of a window, where the last query stands at the last key; None if all keys are seen."""
    if left < 0 and right < 0:
        return None
    seen = ones(queries, keys, dtype=bool_, device=device)
    offset = keys - queries
    seen = seen if right < 0 else seen.tril(offset + right)
    return seen if left < 0 else seen.triu(offset - left)


__getattr__ = module_getattr(__name__)
