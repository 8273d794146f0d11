"""Dropout layers: in training, some elements or channels become zero; in evaluation the input passes unchanged."""

from __future__ import annotations

from collections.abc import Callable

from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from .utils import shown

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    _function: Callable[..., Tensor]
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return shown(self, "p", "inplace")


class Dropout(_DropoutNd):
    """Sets elements to zero with probability `p` and scales the others by 1 / (1 - p).

    Source: Hinton et al. 2012, "Improving neural networks by preventing co-adaptation of feature detectors".

    >>> import weft as torch
    >>> torch.nn.Dropout(0.2).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    _function = staticmethod(F.dropout)


class Dropout1d(_DropoutNd):
    """Sets whole channels to zero with probability `p`. Shapes: [N, C, L] or [C, L].

    >>> import weft as torch
    >>> kept = torch.nn.Dropout1d()(torch.ones(2, 3, 8))
    >>> bool((kept.amax((2,)) == kept.amin((2,))).all())
    True
    """

    _function = staticmethod(F.dropout1d)


class Dropout2d(_DropoutNd):
    """Sets whole channels to zero with probability `p`. Shapes: [N, C, H, W] or [N, C, L].

    >>> import weft as torch
    >>> kept = torch.nn.Dropout2d()(torch.ones(2, 3, 8, 6))
    >>> bool((kept.amax((2, 3)) == kept.amin((2, 3))).all())
    True
    """

    _function = staticmethod(F.dropout2d)


class Dropout3d(_DropoutNd):
    """Sets whole channels to zero with probability `p`. Shapes: [N, C, D, H, W] or [C, D, H, W].

    >>> import weft as torch
    >>> kept = torch.nn.Dropout3d()(torch.ones(2, 3, 8, 6, 4))
    >>> bool((kept.amax((2, 3, 4)) == kept.amin((2, 3, 4))).all())
    True
    """

    _function = staticmethod(F.dropout3d)


class AlphaDropout(_DropoutNd):
    """Is dropout for `SELU`, which keeps mean 0 and variance 1. Source: Klambauer et al. 2017, "Self-normalizing networks".

    Shapes: any -> the same.

    >>> import weft as torch
    >>> torch.nn.AlphaDropout(0.2).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """Applies `AlphaDropout` to whole channels.

    Shapes: [N, C, ...] -> the same.

    >>> import weft as torch
    >>> torch.nn.FeatureAlphaDropout(0.2).eval()(torch.ones(3, 2))
    tensor([[1., 1.],
            [1., 1.],
            [1., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
