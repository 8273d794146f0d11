"""Layers that turn channels into pixels, and pixels into channels."""

from __future__ import annotations

from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from .utils import shown

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Spreads groups of r * r channels over squares of pixels. Shapes: [..., C * r * r, H, W] -> [..., C, H * r, W * r].

    Source: Shi et al. 2016, "Real-time single image and video super-resolution".

    >>> import weft as torch
    >>> torch.nn.PixelShuffle(3)(torch.rand(1, 9, 4, 4)).shape
    torch.Size([1, 1, 12, 12])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return shown(self, "upscale_factor")


class PixelUnshuffle(Module):
    """Takes squares of r * r pixels apart into channels. Shapes: [..., C, H * r, W * r] -> [..., C * r * r, H, W].

    >>> import weft as torch
    >>> torch.nn.PixelUnshuffle(3)(torch.rand(1, 1, 12, 12)).shape
    torch.Size([1, 9, 4, 4])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return shown(self, "downscale_factor")
