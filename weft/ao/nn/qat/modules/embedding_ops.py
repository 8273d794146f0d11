"""Embeddings for quantization-aware training."""

from __future__ import annotations

from typing import Any

from .....core.qscheme import SCHEMES
from .....core.tensor import Tensor
from .....nn import Embedding as FloatEmbedding
from .....nn import EmbeddingBag as FloatEmbeddingBag
from .....nn.functional import embedding, embedding_bag
from .fake_quantized_weight import FakeQuantizedWeight


class _RoundedTable(FakeQuantizedWeight):
    bias = None

    def _set_qconfig(self, qconfig: Any, **keywords: Any) -> None:
        super()._set_qconfig(qconfig, **keywords)
        scheme = self.weight_fake_quant.qscheme
        if scheme is not SCHEMES["per_channel_affine_float_qparams"]:
            name = "Embedding Bag" if isinstance(self, FloatEmbeddingBag) else "Embedding"
            raise AssertionError(
                f"{name} weights requires a qscheme of torch.per_channel_affine_float_qparams Got {scheme}"
            )


class Embedding(_RoundedTable, FloatEmbedding):
    """Rows of a table that is rounded."""

    _FLOAT_MODULE = FloatEmbedding

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        device: Any = None, dtype: Any = None, qconfig: Any = None,
    ):  # fmt: skip
        keywords = {"device": device, "dtype": dtype}
        settings = padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
        super().__init__(num_embeddings, embedding_dim, *settings, _weight, **keywords)
        self._set_qconfig(qconfig, factory_kwargs=keywords)

    def forward(self, input: Tensor) -> Tensor:
        return embedding(
            input,
            self._rounded_weight(),
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Embedding:
        """The layer of an embedding with a QConfig, whose table it shares."""
        qconfig = cls._qconfig_of(mod)
        return cls(**_settings(mod, _EMBEDDING), _weight=mod.weight, qconfig=qconfig)

    def to_float(self) -> FloatEmbedding:
        """The embedding with the same table."""
        return self._copy_to(FloatEmbedding(**_settings(self, _EMBEDDING)))


class EmbeddingBag(_RoundedTable, FloatEmbeddingBag):
    """Sums, means or maxima of rows of a table that is rounded."""

    _FLOAT_MODULE = FloatEmbeddingBag

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, qconfig: Any = None, device: Any = None,
        dtype: Any = None,
    ):  # fmt: skip
        keywords = {"device": device, "dtype": dtype}
        settings = max_norm, norm_type, scale_grad_by_freq, mode, sparse
        super().__init__(
            num_embeddings, embedding_dim, *settings, _weight, include_last_offset, padding_idx, **keywords
        )
        self._set_qconfig(qconfig, factory_kwargs=keywords)

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        settings = self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse
        rest = per_sample_weights, self.include_last_offset, self.padding_idx
        return embedding_bag(input, self._rounded_weight(), offsets, *settings, *rest)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> EmbeddingBag:
        """The layer of an embedding bag with a QConfig, whose table it shares."""
        qconfig = cls._qconfig_of(mod)
        return cls(**_settings(mod, _BAG), _weight=mod.weight, qconfig=qconfig)

    def to_float(self) -> FloatEmbeddingBag:
        """The embedding bag with the same table."""
        return self._copy_to(FloatEmbeddingBag(**_settings(self, _BAG)))


_EMBEDDING = (
    "num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse",
)  # fmt: skip
_BAG = (*_EMBEDDING, "mode", "include_last_offset")


def _settings(table: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of the constructor but the table."""
    return {name: getattr(table, name) for name in names}
