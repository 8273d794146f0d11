"""Elements repeated: repeat, tile and repeat_interleave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core import view_rules as rules
from ...core.arguments import integer, integers, wrong_type
from ...core.public import public
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, empty, wrap_dim
from ...families.array_op import host_array, needs_values, on_device
from ...families.rearrange import Piece, Rearrange
from ..creation.creation import check_room
from ..views.reshaping import reshape
from ..views.views import CONJ, EXPAND


def given(values: tuple, keyword: Any, name: str, argument: str) -> tuple:
    """What `*values` or the keyword gives."""
    if keyword is not None:
        return (keyword,)
    if not values:
        raise TypeError(f'{name}() missing 1 required positional arguments: "{argument}"')
    return values


@public("method")
def repeat(self: Tensor, *counts: Any, repeats: Any = None) -> Tensor:
    """The tensor, copied as many times along each dimension as its count says; further counts add dimensions in front.

    >>> import weft as torch
    >>> torch.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    counts = integers(given(counts, repeats, "repeat", "repeats"), "repeat", "repeats")
    return REPEAT((self,), counts)


def _repeat_result(specs: Sequence[Spec], counts: tuple[int, ...]) -> Spec:
    own = specs[0]
    if len(counts) < own.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    sizes = [count * size for count, size in zip(counts, _aligned(own, counts), strict=True)]
    if any(size < 0 for size in sizes):
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {next(s for s in sizes if s < 0)}: {sizes}"
        )
    return contiguous_spec(sizes, own.dtype, own.device)


def _aligned(spec: Spec, counts: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (len(counts) - spec.ndim) + tuple(spec.shape)


def _repeat_pieces(result: Spec, specs: Sequence[Spec], counts: tuple[int, ...]) -> Iterator[Piece]:
    sizes = _aligned(specs[0], counts)
    apart = rules.view(specs[0], tuple(n for size in sizes for n in (1, size)))[0]
    repeated = tuple(n for count, size in zip(counts, sizes, strict=True) for n in (count, size))
    yield Piece(0, rules.expand(apart, repeated)[0], 0, rules.view(result, repeated)[0], 0)


def _repeat_back(ct, out, a, counts, *, specs):
    sizes = _aligned(specs[0], counts)
    pairs = tuple(n for count, size in zip(counts, sizes, strict=True) for n in (count, size))
    copies = tuple(2 * dim for dim, count in enumerate(counts) if count != 1)
    parts = reshape(ct, pairs)
    return reshape(parts.sum(copies) if copies else parts, specs[0].shape)


REPEAT = Rearrange("repeat", _repeat_result, _repeat_pieces, _repeat_back)


@public("function method")
def tile(input: Tensor, *counts: Any, dims: Any = None) -> Tensor:
    """Like `repeat`, but fewer counts than dimensions are taken for the last ones.

    >>> import weft as torch
    >>> torch.tensor([[1, 2]]).tile(2)
    tensor([[1, 2, 1, 2]])
    """
    counts = integers(given(counts, dims, "tile", "dims"), "tile", "dims")
    return repeat(input, (1,) * (input.spec.ndim - len(counts)) + counts)


@public("function method")
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each slice along `dim`, repeated `repeats` times in a row; without `dim`, each element of the flattened tensor.

    `repeats` is an int or an integer tensor, one count for all or one for each. Alone, the tensor of counts gives
    the indices: position i appears counts[i] times.

    >>> import weft as torch
    >>> torch.tensor([3, 4]).repeat_interleave(torch.tensor([1, 2]))
    tensor([3, 4, 4])
    """
    if repeats is None:
        if dim is not None:
            raise wrong_type(repeats, "repeat_interleave", "repeats", "Tensor or int", 2)
        return _repeated_index(input, output_size)
    if dim is None:
        input, dim = reshape(input, (-1,)), 0
    dim = wrap_dim(integer(dim, "repeat_interleave", "dim"), input.spec.ndim)
    if not isinstance(repeats, Tensor):
        return REPEAT_EACH((input,), integer(repeats, "repeat_interleave", "repeats"), dim)
    if not input.spec.shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if repeats.spec.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if input.spec.conj:  # as PyTorch does, the result stays a conjugate
        return CONJ(repeat_interleave(CONJ(input), repeats, dim, output_size=output_size))
    size = input.spec.shape[dim]
    if repeats.spec.numel == 1:
        repeats = EXPAND(reshape(repeats, (1,)), (size,))
    elif repeats.spec.shape[0] != size:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats.spec.shape[0]} and input.size({dim}) = {size}"
        )
    return input.index_select(dim, _repeated_index(repeats, output_size))


def _each_result(specs: Sequence[Spec], count: int, dim: int) -> Spec:
    spec = specs[0]
    if count < 0:
        raise RuntimeError("Repeats must be non-negative")
    rules.unsqueeze(spec, dim + 1)  # a 0-dim tensor has no dimension to repeat
    sizes = (*spec.shape[:dim], spec.shape[dim] * count, *spec.shape[dim + 1 :])
    return contiguous_spec(sizes, spec.dtype, spec.device)


def _each_pieces(result: Spec, specs: Sequence[Spec], count: int, dim: int) -> Iterator[Piece]:
    apart = rules.unsqueeze(specs[0], dim + 1)[0]
    repeated = (*apart.shape[: dim + 1], count, *apart.shape[dim + 2 :])
    yield Piece(0, rules.expand(apart, repeated)[0], 0, rules.view(result, repeated)[0], 0)


def _each_back(ct, out, a, count, dim, *, specs):
    sizes = specs[0].shape
    return reshape(ct, (*sizes[: dim + 1], count, *sizes[dim + 1 :])).sum(dim + 1)


REPEAT_EACH = Rearrange(
    "repeat_interleave", _each_result, _each_pieces, _each_back, node_name="ViewBackward0"
)


def _repeated_index(repeats: Tensor, output_size: int | None) -> Tensor:
    if repeats.spec.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.spec.dtype.name not in ("int32", "int64"):
        raise NotImplementedError(
            f"\"repeat_interleave_cpu\" not implemented for '{rules.LEGACY_NAMES[repeats.spec.dtype]}'"
        )
    where = repeats.spec.device
    if not where.backend.has_memory:
        if output_size is None:
            raise needs_values("repeat_interleave without output_size", where)
        return empty(contiguous_spec((output_size,), repeats.spec.dtype, where))
    counts = host_array(repeats).copy()  # np.repeat adds them up first, and trusts that they stay the same
    if (counts < 0).any():
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and counts.sum() != output_size:
        raise RuntimeError("allocated size does not match required size")
    total = sum(counts.tolist()) if len(counts) else 0
    check_room(total, dtype=repeats.spec.dtype)
    return on_device(np.repeat(np.arange(len(counts), dtype=counts.dtype), counts), where)
