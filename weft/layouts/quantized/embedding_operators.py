"""Operators of `torch.ops.quantized` for embeddings whose rows are quantized, each with a scale and a bias of its own."""

from __future__ import annotations

from typing import Any

from ...core.dtype import LEGACY_NAMES, float32, float64, int32, int64, uint8
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor, address
from ...engine import scalar as s
from ...families.array_op import host_array
from ...families.map import Map, same_dtype
from ...ops.assembly.joining import cat
from ...ops.creation.ranges import arange
from .numbers import unpack_bits
from .operators import operator
from .packed import EmbeddingPackedParams
from .products import readable
from .tensors import BITS, plain

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
    """Compute `integer * scale + bias`, rounded once to float32."""
    return (integers.to(float64) * scale + bias).to(float32)


# ---- Quantized tensors as tables ---------------------------------------------------------------------------------------------


@operator("embedding_bag_prepack(Tensor weight) -> Embedding W_prepack")
def embedding_bag_prepack(weight: Tensor) -> EmbeddingPackedParams:
    return EmbeddingPackedParams(weight)


@operator("embedding_bag_unpack(Embedding W_prepack) -> Tensor W_origin")
def embedding_bag_unpack(W_prepack: Any) -> Tensor:
    return W_prepack.weight


# total + number * scale, rounded once
_ADDED = Map("embedding_bag", same_dtype, lambda total, number, scale: s.fma(number, scale, total))


def _sums(table: Any, indices: Tensor, offsets: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the sums of the rows at these indices, float32 [bags, columns].

    indices: int64 [places]. offsets: int64 [bags + 1], where the places of each bag begin and end. weights: float32 [places].
    """
    scales, biases = table.parameters
    integers, (rows, columns), bags = plain(table.weight), table.weight.shape, len(offsets) - 1
    bits = BITS.get(table.weight.dtype, 8)
    given = host_array(indices)
    wrong = (given < 0) | (given >= rows)
    if wrong.any():
        place = int(wrong.argmax())
        raise RuntimeError(f"Index {place} is out of bounds: {given[place]}, range 0 to {rows}")
    if weights is not None and len(weights) != len(indices):
        raise RuntimeError(f"per_sample_weights has {len(weights)} elements, and indices has {len(indices)}")
    run = integers.device.backend.extras.get("byte_bags")
    if run is None or columns * bits % 8:  # a byte of the table may hold integers of two rows
        return _sums_of_steps(table, indices, offsets, weights)
    found = scales.new_empty(bags, columns)
    if found.numel():
        own = (integers, scales, biases, indices, offsets, scales if weights is None else weights)
        operands = found, *map(readable, own)
        sizes = bags, len(indices), columns, columns * bits // 8, bits, weights is not None
        run(sizes, *map(address, operands))
    return found


def _sums_of_steps(table: Any, indices: Tensor, offsets: Tensor, weights: Tensor | None) -> Tensor:
    """As `_sums`, by ops that every device has: the first row of each bag, then the second ones, and so on."""
    numbers, (scales, biases) = _integers(table.weight).to(float32), table.parameters
    first, counts = offsets[:-1], offsets.diff()
    total = scales.new_zeros(len(first), numbers.shape[1])
    for k in range(int(counts.max()) if len(counts) and len(indices) else 0):
        places = (first + k).clamp(max=len(indices) - 1)
        chosen = indices[places]
        scale, bias = scales[chosen], biases[chosen]
        if weights is not None:
            scale, bias = weights[places] * scale, weights[places] * bias
        added = _ADDED(total + bias.unsqueeze(1), numbers[chosen], scale.unsqueeze(1))
        total = added.where((k < counts).unsqueeze(1), total)
    return total


def _integers(weight: Tensor) -> Tensor:
    """The integers of a table, each in a byte of its own."""
    bits = BITS.get(weight.dtype)
    return plain(weight) if bits is None else unpack_bits(plain(weight), bits, weight.shape)


def _int64(name: str, given: Tensor) -> Tensor:
    if given.dtype not in (int32, int64):
        raise RuntimeError(f"Expect 32 or 64 bit {name}, but found {LEGACY_NAMES[given.dtype]} instead.")
    return given.to(int64)


def _rows(table: Any, indices: Tensor) -> Tensor:
    """Return the rows of the table at these indices, float32 [number of indices, columns]."""
    flat = _int64("indices", indices).reshape(-1)
    return _sums(table, flat, arange(len(flat) + 1))


@operator(
    "embedding_byte(Embedding weight, Tensor indices, bool pruned_weights=False) -> Tensor",
    "embedding_4bit(Embedding weight, Tensor indices, bool pruned_weights=False) -> Tensor",
)
def embedding(weight: Any, indices: Tensor, pruned_weights: bool = False) -> Tensor:
    return _rows(weight, indices).reshape(*indices.shape, weight.weight.shape[1])


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
    if offsets is None and indices.dim() == 1:
        raise RuntimeError("quantized embedding_bag expects offsets to be set for 1D indices")
    if indices.dim() not in (1, 2):
        raise RuntimeError(
            f"qembedding/qembedding_bag operator supports 1 or 2d indices, got {indices.dim()}"
        )
    if indices.dim() == 2 and offsets is not None:
        raise RuntimeError(
            "quantized embedding_bag: input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences"
        )
    if per_sample_weights is not None:
        if per_sample_weights.dtype is not float32:
            raise RuntimeError(
                f"expected scalar type Float but found {LEGACY_NAMES[per_sample_weights.dtype]}: per_sample_weights are float32"
            )
        per_sample_weights = per_sample_weights.detach().reshape(-1)
    flat = _int64("indices", indices).reshape(-1)
    bounds = _bounds(indices, offsets, include_last_offset)
    if mode == 0:
        return _sums(weight, flat, bounds, per_sample_weights)
    return FUNCTIONS["nn.functional.embedding_bag"](
        arange(len(flat)),
        _rows(weight, flat),
        bounds,
        mode=("sum", "mean", "max")[mode],
        per_sample_weights=per_sample_weights,
        include_last_offset=True,
    )


def _bounds(indices: Tensor, offsets: Tensor | None, include_last_offset: bool) -> Tensor:
    """Where the places of each bag begin and end, int64 [bags + 1]."""
    if offsets is None:
        return arange(indices.size(0) + 1) * indices.size(1)
    bounds = _int64("offsets", offsets)
    if not include_last_offset:
        bounds = cat([bounds, bounds.new_tensor([len(indices)])])
    given = host_array(bounds)
    if (given[1:] < given[:-1]).any() or len(given) and not 0 <= given[0] <= given[-1] <= len(indices):
        raise RuntimeError(
            f"quantized embedding_bag: offsets must not fall, and lie between 0 and {len(indices)}, but are {offsets.tolist()}"
        )
    return bounds
