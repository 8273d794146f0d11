"""`torch.nn.attention.bias`: causal masks as arguments of scaled_dot_product_attention, which are made only if need be."""

from __future__ import annotations

import enum
import warnings
from typing import Any

from ...compat.missing import module_getattr
from ...core.dtype import bool_
from ...core.overrides import DisableTorchFunctionSubclass
from ...core.tensor import Tensor
from ...core.warn import user_level
from ...ops.creation.creation import empty, ones
from ...ops.nn.attention import scaled_dot_product_attention

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """At which corner of the mask its diagonal begins.

    UPPER_LEFT: query 0 sees key 0. LOWER_RIGHT: the last query sees the last key.
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask [seq_len_q, seq_len_kv] for `scaled_dot_product_attention`; it holds no elements.

    Operations on it see the mask as bools; as in PyTorch its own `shape` says nothing.

    >>> import weft as torch
    >>> from weft.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        own = empty(0, seq_len_q, seq_len_kv)
        return own.expand(0, seq_len_q, seq_len_kv).as_subclass(cls)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn(
                f"Lower right causal bias: the first {seq_len_q - seq_len_kv} of {seq_len_q} queries see none of {seq_len_kv} "
                "keys",
                stacklevel=user_level(),
            )

    def _upper_left(self, device: Any) -> Tensor:
        return ones(self.seq_len_q, self.seq_len_kv, dtype=bool_, device=device).tril()

    def _lower_right(self, device: Any) -> Tensor:
        full = ones(self.seq_len_q, self.seq_len_kv, dtype=bool_, device=device)
        return full.tril(self.seq_len_kv - self.seq_len_q)

    def _materialize(self, device: Any = None) -> Tensor:
        """Return the mask as bools."""
        is_upper = self.variant is CausalVariant.UPPER_LEFT
        return self._upper_left(device) if is_upper else self._lower_right(device)

    @staticmethod
    def _dispatch(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: CausalBias,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """Compute `scaled_dot_product_attention` under this mask."""
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        is_square = attn_mask.seq_len_q == attn_mask.seq_len_kv
        is_plain = attn_mask.variant is CausalVariant.UPPER_LEFT or is_square
        fits = (attn_mask.seq_len_q, attn_mask.seq_len_kv) == (query.size(-2), key.size(-2))
        mask = None if is_plain and fits else attn_mask._materialize(query.device)
        return scaled_dot_product_attention(
            query, key, value, mask, dropout_p, mask is None, scale=scale, enable_gqa=enable_gqa
        )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func is scaled_dot_product_attention:
            return cls._dispatch(*args, **kwargs)
        with DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    def __repr__(self) -> str:  # type: ignore[override]
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """Return the mask of [queries, keys] under which query i sees keys 0 to i."""
    if len(size) != 2:
        raise AssertionError(f"causal_upper_left only supports 2D tensors, not the size {size}")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask of [queries, keys] under which the last query sees all keys, the one before all but the last, ..."""
    if len(size) != 2:
        raise AssertionError(f"causal_lower_right only supports 2D tensors, not the size {size}")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)


__getattr__ = module_getattr(__name__)
