"""Shuffles channels, and exchanges them for pixels."""

from __future__ import annotations

from ...core.layout import contiguous_format, suggested_format
from ...core.public import public
from ...core.tensor import Tensor
from ...families.custom_vjp import CustomVjp
from ..views.reshaping import reshape
from ..views.views import PERMUTE
from .copying import clone, contiguous


def _rearranged_back(ct, out, a, apart, order, sizes, *, specs):
    mixed = tuple([apart[dim] for dim in order])
    back = tuple([order.index(dim) for dim in range(len(order))])
    return reshape(PERMUTE(reshape(ct, mixed), back), specs[0].shape)


def _rearranged(
    input: Tensor, apart: tuple[int, ...], order: tuple[int, ...], sizes: tuple[int, ...]
) -> Tensor:
    """Split dims into the sizes `apart`, permute them by `order`, merge them to `sizes`; in the memory format of the input."""
    result = reshape(PERMUTE(reshape(input, apart), order), sizes)
    if result._storage is input._storage:
        result = clone(result, memory_format=contiguous_format)
    return contiguous(result, suggested_format(input.spec))


CHANNEL_SHUFFLE, PIXEL_SHUFFLE, PIXEL_UNSHUFFLE = (
    CustomVjp(_rearranged, _rearranged_back, inputs=1, name=name)
    for name in ("channel_shuffle", "pixel_shuffle", "pixel_unshuffle")
)


@public("function", "nn.functional.channel_shuffle")
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Transpose the channels (dimension 1), seen as `groups` rows.

    Shapes: [N, C, ...] -> the same. Raises: RuntimeError unless `groups` divides C.

    >>> import weft as torch
    >>> torch.channel_shuffle(torch.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
    sizes = input.spec.shape
    if len(sizes) <= 2:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(sizes)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    if sizes[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {sizes[1]} channels and {groups} groups."
        )
    apart = (sizes[0], groups, sizes[1] // groups, *sizes[2:])
    return CHANNEL_SHUFFLE(input, apart, (0, 2, 1, *range(3, len(apart))), tuple(sizes))


@public("function", "nn.functional.pixel_shuffle")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Map (..., C * r**2, H, W) -> (..., C, H * r, W * r), with r = `upscale_factor`.

    Source: Shi et al. 2016, "Real-Time Single Image and Video Super-Resolution".

    >>> import weft as torch
    >>> torch.pixel_shuffle(torch.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
    *batch, channels, height, width = _image(input, "pixel_shuffle")
    r = upscale_factor
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    if r * r >= 2**63:
        raise ValueError(f"upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor={r}")
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    kept, n = channels // (r * r), len(batch)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return PIXEL_SHUFFLE(
        input, (*batch, kept, r, r, height, width), order, (*batch, kept, height * r, width * r)
    )


@public("function", "nn.functional.pixel_unshuffle")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Map (..., C, H * r, W * r) -> (..., C * r**2, H, W), with r = `downscale_factor`: reverse `pixel_shuffle`.

    >>> import weft as torch
    >>> torch.pixel_unshuffle(torch.arange(4).reshape(1, 2, 2), 2).flatten()
    tensor([0, 1, 2, 3])
    """
    *batch, channels, height, width = _image(input, "pixel_unshuffle")
    r = downscale_factor
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    for name, size, dim in (("height", height, -2), ("width", width, -1)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({dim})={size} is "
                f"not divisible by {r}"
            )
    n = len(batch)
    apart = (*batch, channels, height // r, r, width // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return PIXEL_UNSHUFFLE(input, apart, order, (*batch, channels * r * r, height // r, width // r))


def _image(input: Tensor, name: str) -> tuple[int, ...]:
    if input.spec.ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {input.spec.ndim} dimension(s)"
        )
    return input.spec.shape
