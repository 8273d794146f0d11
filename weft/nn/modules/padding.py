"""Defines padding layers."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from .utils import _ntuple

# fmt: off
__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]
# fmt: on


class _PadNd(Module):
    """Pads both ends of the last `_n` dims; `padding` is one number, or two for each dim, the last dim first."""

    _n: int
    _mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._n)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


# ---- A constant ----------------------------------------------------------------------------------------------------


class _ConstantPadNd(_PadNd):
    _mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dim with `value`. Shapes: [N, C, L] or [C, L].

    >>> import weft as torch
    >>> torch.nn.ConstantPad1d(1, 9.0)(torch.arange(4.0).reshape(1, 4))
    tensor([[9., 0., 1., 2., 3., 9.]])
    """

    _n = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dims with `value`: (left, right, top, bottom). Shapes: [N, C, H, W] or [C, H, W].

    >>> import weft as torch
    >>> torch.nn.ConstantPad2d(1, 9.0)(torch.arange(4.0).reshape(1, 2, 2))
    tensor([[[9., 9., 9., 9.],
             [9., 0., 1., 9.],
             [9., 2., 3., 9.],
             [9., 9., 9., 9.]]])
    """

    _n = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dims with `value`: (left, right, top, bottom, front, back).

    >>> import weft as torch
    >>> torch.nn.ConstantPad3d(1, 9.0)(torch.rand(1, 4, 4, 4)).shape
    torch.Size([1, 6, 6, 6])
    """

    _n = 3


class ZeroPad1d(ConstantPad1d):
    """Pads the last dim with zeros. Shapes: [N, C, L] or [C, L].

    >>> import weft as torch
    >>> torch.nn.ZeroPad1d(1)(torch.arange(4.0).reshape(1, 4))
    tensor([[0., 0., 1., 2., 3., 0.]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr


class ZeroPad2d(ConstantPad2d):
    """Pads the last two dims with zeros: (left, right, top, bottom). Shapes: [N, C, H, W] or [C, H, W].

    >>> import weft as torch
    >>> torch.nn.ZeroPad2d((1, 0, 0, 1))(torch.ones(1, 2, 2))
    tensor([[[0., 1., 1.],
             [0., 1., 1.],
             [0., 0., 0.]]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr


class ZeroPad3d(ConstantPad3d):
    """Pads the last three dims with zeros: (left, right, top, bottom, front, back).

    >>> import weft as torch
    >>> torch.nn.ZeroPad3d(1)(torch.rand(1, 4, 4, 4)).shape
    torch.Size([1, 6, 6, 6])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr


# ---- The input itself ----------------------------------------------------------------------------------------------


class _CircularPadNd(_PadNd):
    """Pads with the values of the opposite end. It checks the number of dims, which `F.pad` cannot know."""

    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (self._n + 1, self._n + 2):
            raise ValueError(f"expected {self._n + 1}D or {self._n + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Pads the last dim with its other end. Shapes: [N, C, L] or [C, L].

    >>> import weft as torch
    >>> torch.nn.CircularPad1d(1)(torch.arange(4.0).reshape(1, 4))
    tensor([[3., 0., 1., 2., 3., 0.]])
    """

    _n = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two dims with their other ends. Shapes: [N, C, H, W] or [C, H, W].

    >>> import weft as torch
    >>> torch.nn.CircularPad2d(1)(torch.arange(4.0).reshape(1, 2, 2))
    tensor([[[3., 2., 3., 2.],
             [1., 0., 1., 0.],
             [3., 2., 3., 2.],
             [1., 0., 1., 0.]]])
    """

    _n = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dims with their other ends. Shapes: [N, C, D, H, W] or [C, D, H, W].

    >>> import weft as torch
    >>> torch.nn.CircularPad3d(1)(torch.rand(1, 4, 4, 4)).shape
    torch.Size([1, 6, 6, 6])
    """

    _n = 3


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dim with the values mirrored at its ends. Shapes: [N, C, L] or [C, L].

    >>> import weft as torch
    >>> torch.nn.ReflectionPad1d(1)(torch.arange(4.0).reshape(1, 4))
    tensor([[1., 0., 1., 2., 3., 2.]])
    """

    _n = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last two dims with the values mirrored at their ends. Shapes: [N, C, H, W] or [C, H, W].

    >>> import weft as torch
    >>> torch.nn.ReflectionPad2d(1)(torch.arange(4.0).reshape(1, 2, 2))
    tensor([[[3., 2., 3., 2.],
             [1., 0., 1., 0.],
             [3., 2., 3., 2.],
             [1., 0., 1., 0.]]])
    """

    _n = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last three dims with the values mirrored at their ends. Shapes: [N, C, D, H, W] or without N.

    >>> import weft as torch
    >>> torch.nn.ReflectionPad3d(1)(torch.rand(1, 4, 4, 4)).shape
    torch.Size([1, 6, 6, 6])
    """

    _n = 3


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dim with its end values. Shapes: [N, C, L] or [C, L].

    >>> import weft as torch
    >>> torch.nn.ReplicationPad1d(1)(torch.arange(4.0).reshape(1, 4))
    tensor([[0., 0., 1., 2., 3., 3.]])
    """

    _n = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last two dims with their end values. Shapes: [N, C, H, W] or [C, H, W].

    >>> import weft as torch
    >>> torch.nn.ReplicationPad2d(1)(torch.arange(4.0).reshape(1, 2, 2))
    tensor([[[0., 0., 1., 1.],
             [0., 0., 1., 1.],
             [2., 2., 3., 3.],
             [2., 2., 3., 3.]]])
    """

    _n = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last three dims with their end values. Shapes: [N, C, D, H, W] or [C, D, H, W].

    >>> import weft as torch
    >>> torch.nn.ReplicationPad3d(1)(torch.rand(1, 4, 4, 4)).shape
    torch.Size([1, 6, 6, 6])
    """

    _n = 3
