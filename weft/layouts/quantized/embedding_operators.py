"""Operators of `torch.ops.quantized` for embeddings whose rows are quantized, each with a scale and a bias of its own."""

from __future__ import annotations

from typing import Any

from ...core.dtype import float16, float32, float64, int64, uint8
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...ops.assembly.joining import cat
from .operators import operator
from .packed import EmbeddingPackedParams
from .tensors import BITS, plain, quantizer_of

# ---- Tables of bytes: behind the bytes of each row, its scale and its bias as float32 --------------------------------------


@operator("embedding_bag_byte_prepack(Tensor weight) -> Tensor")
def embedding_bag_byte_prepack(weight: Tensor) -> Tensor:
    least, most = weight.amin(-1, keepdim=True), weight.amax(-1, keepdim=True)
    width = most - least
    inverse = 255.0 / (width + 1e-8)
    integers = ((weight - least) * inverse).round().to(uint8)
    parameters = cat([width / 255.0, least], -1).contiguous().view(uint8)
    return cat([integers, parameters], -1)


@operator("embedding_bag_byte_unpack(Tensor weight) -> Tensor")
def embedding_bag_byte_unpack(weight: Tensor) -> Tensor:
    integers, parameters = weight[..., :-8], weight[..., -8:].contiguous().view(float32)
    return _numbers(integers, parameters[..., :1], parameters[..., 1:])


def _numbers(integers: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """`integer * scale + bias`, rounded once to float32."""
    return (integers.to(float64) * scale + bias).to(float32)


# ---- Quantized tensors as tables ---------------------------------------------------------------------------------------------


@operator("embedding_bag_prepack(Tensor weight) -> Embedding W_prepack")
def embedding_bag_prepack(weight: Tensor) -> EmbeddingPackedParams:
    return EmbeddingPackedParams(weight)


@operator("embedding_bag_unpack(Embedding W_prepack) -> Tensor W_origin")
def embedding_bag_unpack(W_prepack: Any) -> Tensor:
    return W_prepack.weight


def _rows(packed: Any, indices: Tensor) -> Tensor:
    """The rows of the table at these indices, as float32."""
    weight = packed.weight
    quantizer: Any = quantizer_of(weight)
    size = weight.shape[1]
    integers = plain(weight)
    flat = indices.reshape(-1).to(int64)
    if weight.dtype in BITS:
        pairs = integers.view(weight.shape[0], -1).index_select(0, flat)
        chosen = (pairs.unsqueeze(-1) >> pairs.new_tensor([0, 4]) & 15).flatten(1)[:, :size]
    else:
        chosen = integers.index_select(0, flat)
    scales = quantizer.scales_on(weight.device).index_select(0, flat).unsqueeze(1)
    points = quantizer.zero_points_on(weight.device).index_select(0, flat).unsqueeze(1)
    biases = -1.0 * (points * scales)
    if weight.dtype in BITS:  # PyTorch stores the parameters of such rows as float16
        scales, biases = scales.to(float16), biases.to(float16)
    return _numbers(chosen, scales, biases)


@operator(
    "embedding_byte(Embedding weight, Tensor indices, bool pruned_weights=False) -> Tensor",
    "embedding_4bit(Embedding weight, Tensor indices, bool pruned_weights=False) -> Tensor",
)
def embedding(weight: Any, indices: Tensor, pruned_weights: bool = False) -> Tensor:
    return _rows(weight, indices).reshape(*indices.shape, -1)


_BAG = (
    "(Embedding weight, Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, "
    "Tensor? per_sample_weights=None, Tensor? compressed_indices_mapping=None, bool include_last_offset=False) -> Tensor"
)


@operator(f"embedding_bag_byte{_BAG}", f"embedding_bag_4bit{_BAG}")
def embedding_bag(
    weight: Any,
    indices: Tensor,
    offsets: Tensor | None = None,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    pruned_weights: bool = False,
    per_sample_weights: Tensor | None = None,
    compressed_indices_mapping: Tensor | None = None,
    include_last_offset: bool = False,
) -> Tensor:
    """The sum, the mean or the maximum of the rows of each bag (mode 0, 1 or 2). PyTorch always computes the sum."""
    if pruned_weights or compressed_indices_mapping is not None:
        raise NotImplementedError(
            "quantized embedding_bag has no tables with pruned rows: leave compressed_indices_mapping out"
        )
    if mode not in (0, 1, 2):
        raise RuntimeError(f"quantized embedding_bag has the modes 0 (sum), 1 (mean) and 2 (max), not {mode}")
    if indices.dim() == 1 and offsets is None:
        raise RuntimeError("quantized embedding_bag expects offsets to be set for 1D indices")
    rows = _rows(weight, indices)
    places = rows.new_tensor(range(len(rows)), dtype=int64)
    if indices.dim() == 2:
        places, offsets = places.view(indices.shape), None
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.view(indices.shape)
    return FUNCTIONS["nn.functional.embedding_bag"](
        places,
        rows,
        None if offsets is None else offsets.to(int64),
        mode=("sum", "mean", "max")[mode],
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
    )
