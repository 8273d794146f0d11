"""Embeddings whose table is quantized."""

from __future__ import annotations

from typing import Any

from ....._ops import ops
from .....compat.missing import module_getattr
from .....core.dtype import float32, quint8
from .....core.registry import FUNCTIONS
from .....core.tensor import Tensor
from .....nn import Module
from .....ops.creation.creation import ones, zeros
from .utils import observed_weight


class Embedding(Module):
    """Rows of a quint8 or quint4x2 table with float parameters for each row; the results are floats."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: Any = None, max_norm: Any = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None, dtype: Any = quint8,
    ):  # fmt: skip
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        if _weight is None:
            parameters = ones(num_embeddings), zeros(num_embeddings), 0
            _weight = FUNCTIONS["quantize_per_channel"](
                zeros(num_embeddings, embedding_dim), *parameters, dtype
            )
        self.set_weight(_weight)

    def set_weight(self, w: Tensor) -> None:
        """Exchange the table."""
        self._packed_weight = ops.quantized.embedding_bag_prepack(w)

    def weight(self) -> Tensor:
        """The quantized table."""
        return self._packed_weight.weight

    def forward(self, indices: Tensor) -> Tensor:
        name = "embedding_byte" if self.dtype is quint8 else "embedding_4bit"
        return getattr(ops.quantized, name)(self._packed_weight, indices)

    def _get_name(self) -> str:
        return "QuantizedEmbedding"

    def extra_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, dtype={self.dtype}, "
            f"qscheme={self.weight().qscheme()}"
        )

    @classmethod
    def from_reference(cls, ref_embedding: Any) -> Embedding:
        """The layer of a reference layer."""
        ref = ref_embedding
        kept = ref.padding_idx, ref.max_norm, ref.norm_type, ref.scale_grad_by_freq, ref.sparse
        return cls(ref.num_embeddings, ref.embedding_dim, *kept, ref.get_quantized_weight(), ref.weight_dtype)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Embedding:
        """The quantized layer of a layer with a QConfig whose weight has float parameters for each row."""
        observer = mod.qconfig.weight()
        weight = observed_weight(mod.weight.detach().to(float32), observer)
        return cls(mod.num_embeddings, mod.embedding_dim, _weight=weight, dtype=observer.dtype)


__getattr__ = module_getattr(__name__)
