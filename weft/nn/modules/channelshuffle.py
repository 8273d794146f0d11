"""Defines a layer that changes the order of channels."""

from __future__ import annotations

from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from .utils import shown

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Deals the channels out to `groups` groups in turn. Shapes: [N, C, ...] -> the same.

    >>> import weft as torch
    >>> torch.nn.ChannelShuffle(2)(torch.arange(4.0).reshape(1, 4, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return shown(self, "groups")
