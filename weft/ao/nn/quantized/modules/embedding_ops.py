"""Embeddings whose table is quantized."""

from __future__ import annotations

from typing import Any

from ..... import nn
from .....core.dtype import float32, quint4x2, quint8
from .....core.registry import FUNCTIONS
from .....core.tensor import Tensor
from .....library.namespaces import ops
from .....nn import Module
from .....ops.creation.creation import ones, zeros
from .utils import StateEntries, observed_weight

__all__ = ["Embedding", "EmbeddingBag", "EmbeddingPackedParams"]
_MODES = {"sum": 0, "mean": 1, "max": 2}


class EmbeddingPackedParams(StateEntries):
    """The prepared table of an embedding. A state_dict holds the quantized table."""

    _version = 1

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: Any = quint8):
        super().__init__()
        if dtype not in (quint8, quint4x2):
            raise NotImplementedError(
                f"Unsupported dtype on quantized embedding! Supports quint8 and quint4x2. Got dtype: {dtype}"
            )
        self.dtype = dtype
        parameters = ones(num_embeddings), zeros(num_embeddings), 0
        self.set_weight(
            FUNCTIONS["quantize_per_channel"](zeros(num_embeddings, embedding_dim), *parameters, dtype)
        )

    def set_weight(self, weight: Tensor) -> None:
        """Prepare a table."""
        self._packed_weight = ops.quantized.embedding_bag_prepack(weight)

    def _weight(self) -> Tensor:
        return ops.quantized.embedding_bag_unpack(self._packed_weight)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def _entries(self) -> dict[str, Any]:
        return {"dtype": self.dtype, "_packed_weight": self._weight()}

    def _set_entries(self, entries: dict[str, Any]) -> None:
        self.dtype = entries["dtype"]
        self.set_weight(entries["_packed_weight"])

    def __repr__(self) -> str:
        return repr(self._weight())


class Embedding(Module):
    """Rows of a quint8 or quint4x2 table with float parameters for each row; the results are floats."""

    _version = 1
    _float_module: Any = nn.Embedding

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: Any = None, max_norm: Any = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None, dtype: Any = quint8,
    ):  # fmt: skip
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        if _weight is not None and list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError(
                f"Shape of weight does not match num_embeddings and embedding_dim: expected {[num_embeddings, embedding_dim]}, "
                f"got {list(_weight.shape)}"
            )
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            self._packed_params.set_weight(_weight)

    def set_weight(self, w: Tensor) -> None:
        """Exchange the table."""
        self._packed_params.set_weight(w)

    def weight(self) -> Tensor:
        """The quantized table."""
        return self._packed_params._weight()

    def forward(self, indices: Tensor) -> Tensor:
        name = "embedding_byte" if self.dtype is quint8 else "embedding_4bit"
        return getattr(ops.quantized, name)(self._packed_params._packed_weight, indices)

    def _get_name(self) -> str:
        return "QuantizedEmbedding"

    def extra_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, dtype={self.dtype}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    @classmethod
    def from_reference(cls, ref_embedding: Any) -> Any:
        """The layer of a reference layer."""
        ref = ref_embedding
        kept = ref.padding_idx, ref.max_norm, ref.norm_type, ref.scale_grad_by_freq, ref.sparse
        return cls(ref.num_embeddings, ref.embedding_dim, *kept, ref.get_quantized_weight(), ref.weight_dtype)

    @classmethod
    def _observed(cls, mod: Any) -> tuple[Tensor, Any]:
        """The quantized table of a layer of floats, and its dtype.

        Raises: AssertionError for other modules, and for a QConfig whose weights have no float parameters.
        """
        if not isinstance(mod, cls._float_module):
            raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {cls._float_module.__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError(f"{cls.__name__} input float module must have qconfig defined")
        observer = getattr(mod, "weight_fake_quant", None) or mod.qconfig.weight()
        if str(observer.qscheme) != "torch.per_channel_affine_float_qparams":
            raise AssertionError(
                f"{cls.__name__} quantization is only supported with float_qparams_weight_only_qconfig."
            )
        return observed_weight(mod.weight.detach().to(float32), observer), observer.dtype

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantized layer of a layer with a QConfig whose weight has float parameters for each row."""
        weight, dtype = cls._observed(mod)
        return cls(mod.num_embeddings, mod.embedding_dim, _weight=weight, dtype=dtype)


class EmbeddingBag(Embedding):
    """Sums, means or maxima of the rows of a quint8 or quint4x2 table; the results are floats.

    >>> import weft as torch
    >>> words = torch.nn.Sequential(torch.nn.EmbeddingBag(10, 4, mode="sum"))
    >>> torch.ao.quantization.quantize_dynamic(words, dtype=torch.quint8)[0]
    QuantizedEmbeddingBag(num_embeddings=10, embedding_dim=4, dtype=torch.quint8, qscheme=torch.per_channel_affine_float_qparams)
    """

    _version = 1
    _float_module = nn.EmbeddingBag

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: Any = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        mode: str = "sum", sparse: bool = False, _weight: Any = None, include_last_offset: bool = False, dtype: Any = quint8,
    ):  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode, self.pruned_weights, self.include_last_offset = mode, False, include_last_offset

    def forward(
        self, indices: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None,
        compressed_indices_mapping: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        name = "embedding_bag_byte" if self.dtype is quint8 else "embedding_bag_4bit"
        return getattr(ops.quantized, name)(
            self._packed_params._packed_weight, indices, offsets, False, _MODES[self.mode], self.pruned_weights,
            per_sample_weights, compressed_indices_mapping, self.include_last_offset,
        )  # fmt: skip

    def _get_name(self) -> str:
        return "QuantizedEmbeddingBag"

    @classmethod
    def _like(cls, mod: Any, weight: Tensor, dtype: Any) -> Any:
        options = mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.mode, mod.sparse
        return cls(mod.num_embeddings, mod.embedding_dim, *options, weight, mod.include_last_offset, dtype)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantized layer of a layer with a QConfig whose weight has float parameters for each row."""
        return cls._like(mod, *cls._observed(mod))

    @classmethod
    def from_reference(cls, ref_embedding_bag: Any) -> Any:  # type: ignore[override]  # PyTorch's name
        """The layer of a reference layer."""
        return cls._like(
            ref_embedding_bag, ref_embedding_bag.get_quantized_weight(), ref_embedding_bag.weight_dtype
        )
