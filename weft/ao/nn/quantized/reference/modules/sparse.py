"""The reference layers of embeddings."""

from __future__ import annotations

from typing import Any

from ...... import nn
from ......core.tensor import Tensor
from .utils import ReferenceQuantizedModule

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(ReferenceQuantizedModule, nn.Embedding):
    """Rows of a table that is rounded to the numbers of the quantized one."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        device: Any = None, dtype: Any = None, weight_qparams: dict[str, Any] | None = None,
    ):  # fmt: skip
        options = padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight
        super().__init__(num_embeddings, embedding_dim, *options, device=device, dtype=dtype)
        self._init_weight_qparams(weight_qparams, device)

    def forward(self, input: Tensor) -> Tensor:
        return self._computed(nn.Embedding, ("weight",), input)

    def _get_name(self) -> str:
        return "QuantizedEmbedding(Reference)"

    @classmethod
    def from_float(cls, mod: Any, weight_qparams: dict[str, Any] | None) -> Embedding:
        """The reference layer of a layer of floats, with the parameters of the table."""
        options = (
            mod.padding_idx,
            mod.max_norm,
            mod.norm_type,
            mod.scale_grad_by_freq,
            mod.sparse,
            mod.weight.detach(),
        )
        return cls(mod.num_embeddings, mod.embedding_dim, *options, weight_qparams=weight_qparams)


class EmbeddingBag(ReferenceQuantizedModule, nn.EmbeddingBag):
    """Sums, means or maxima of the rows of a table that is rounded to the numbers of the quantized one."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None,
        weight_qparams: dict[str, Any] | None = None,
    ):  # fmt: skip
        options = (
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            _weight,
            include_last_offset,
            padding_idx,
        )
        super().__init__(num_embeddings, embedding_dim, *options, device=device, dtype=dtype)
        self._init_weight_qparams(weight_qparams, device)

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return self._computed(nn.EmbeddingBag, ("weight",), input, offsets, per_sample_weights)

    def _get_name(self) -> str:
        return "QuantizedEmbedding(Reference)"

    @classmethod
    def from_float(
        cls, mod: Any, weight_qparams: dict[str, Any] | None, use_precomputed_fake_quant: bool = False
    ) -> EmbeddingBag:
        """The reference layer of a layer of floats, with the parameters of the table."""
        options = (
            mod.max_norm,
            mod.norm_type,
            mod.scale_grad_by_freq,
            mod.mode,
            mod.sparse,
            mod.weight.detach(),
        )
        rest = mod.include_last_offset, mod.padding_idx
        return cls(mod.num_embeddings, mod.embedding_dim, *options, *rest, weight_qparams=weight_qparams)
