"""Computes `torch.gradient`: derivatives of sampled functions by finite differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.dtype import uint8
from ...core.public import public
from ...core.tensor import Tensor, wrap_dim
from ...families.map import NUMBERS, common_device
from ..assembly.joining import cat


@public("function")
def gradient(
    input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """The derivative of `input` along each of `dim` (default: all), of second order inside, `edge_order` at the ends.

    `spacing` is the distance of samples: a number (default: 1), one for each dim, or for each dim a 1-dim tensor of coordinates.
    Raises: RuntimeError if a dimension has fewer than edge_order + 1 samples.

    >>> import weft as torch
    >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    """
    if input.spec.dtype is uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = _dims(input, dim)
    if any(input.spec.shape[each] < edge_order + 1 for each in dims):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    pairs = zip(dims, _spacings(input, spacing, dims), strict=True)
    return tuple(_derivative(input, each, distance, edge_order) for each, distance in pairs)


def _dims(input: Tensor, dim: Any) -> list[int]:
    ndim = input.spec.ndim
    if dim is None:
        return list(range(ndim))
    dims = [wrap_dim(each, ndim) for each in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    for each in dims:
        if dims.count(each) > 1:
            raise RuntimeError(f"dim {each} appears multiple times in the list of dims")
    return dims


def _spacings(input: Tensor, spacing: Any, dims: list[int]) -> Sequence[Any]:
    if spacing is None:
        return [1] * len(dims)
    if isinstance(spacing, NUMBERS) or isinstance(spacing, Tensor) and not spacing.spec.shape:
        return [spacing] * len(dims)
    if not isinstance(spacing, (tuple, list)):
        raise TypeError(
            f"gradient(): argument 'spacing' must be a number or a sequence, not {type(spacing).__name__}"
        )
    if len(spacing) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the "
            f"same length, but got a spacing argument of length {len(spacing)} and a dim argument of length {len(dims)}."
        )
    common_device("gradient", [input.spec, *(each.spec for each in spacing if isinstance(each, Tensor))])
    for place, each in enumerate(spacing):
        if not isinstance(each, (Tensor, *NUMBERS)):
            raise TypeError(
                f"expected Tensor as element {place} in argument 1, but got {type(each).__name__}"
            )
        if isinstance(each, Tensor) and each.spec.ndim != 1:
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have one dimension, but got an element with "
                f"{each.spec.ndim} dimensions!"
            )
    return spacing


def _derivative(f: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    """The ends and the middle. The second-order weights are the slopes of the parabola through three samples."""
    size = f.spec.shape[dim]
    before, here, after = (f.narrow(dim, start, size - 2) for start in (0, 1, 2))
    if isinstance(spacing, Tensor) and spacing.spec.shape:
        steps = (spacing[1:] - spacing[:-1]).reshape([-1] + [1] * (f.spec.ndim - 1 - dim))
        if steps.spec.shape[0] != size - 1:
            raise RuntimeError(
                f"The size of tensor a ({steps.spec.shape[0]}) must match the size of tensor b ({size - 1}): "
                f"gradient: {spacing.spec.shape[0]} coordinates for {size} samples in dim {dim}"
            )
        left, right = steps[:-1], steps[1:]
        weights = (
            -right / (left * (left + right)),
            (right - left) / (left * right),
            left / (right * (left + right)),
        )
        middle = weights[0] * before + weights[1] * here + weights[2] * after
    else:
        middle = (after - before) / spacing / 2
        start, stop = (_even_end(f, dim, inwards, edge_order) / spacing for inwards in (1, -1))
        return cat([start, middle, stop], dim)
    second, second_last = (steps[1], steps[-2]) if edge_order == 2 else (None, None)
    start = _end(f, dim, 1, steps[0], second, edge_order)
    stop = -_end(f, dim, -1, steps[-1], second_last, edge_order)
    return cat([start, middle, stop], dim)


def _samples_at_end(f: Tensor, dim: int, inwards: int, count: int) -> list[Tensor]:
    """The first samples (`inwards` is 1) or the last ones (-1), from the end inwards."""
    position = 0 if inwards == 1 else f.spec.shape[dim] - 1
    return [f.narrow(dim, position + k * inwards, 1) for k in range(count)]


def _even_end(f: Tensor, dim: int, inwards: int, edge_order: int) -> Tensor:
    """The difference at an end that, divided by the distance of all samples, is the derivative."""
    at = _samples_at_end(f, dim, inwards, edge_order + 1)
    if edge_order == 1:
        return (at[1] - at[0]) * inwards
    return (-1.5 * at[0] + 2 * at[1] - 0.5 * at[2]) * inwards


def _end(f: Tensor, dim: int, inwards: int, step: Tensor, next_step: Any, edge_order: int) -> Tensor:
    """The derivative at an end, looking inwards, where the distances of samples differ."""
    at = _samples_at_end(f, dim, inwards, edge_order + 1)
    if edge_order == 1:
        return (at[1] - at[0]) / step
    both = step + next_step
    weights = -(step + both) / (step * both), both / (step * next_step), -step / (next_step * both)
    return weights[0] * at[0] + weights[1] * at[1] + weights[2] * at[2]
