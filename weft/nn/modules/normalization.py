"""Layers that normalize each sample over its last dims, over groups of channels, or over neighbouring channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.parameter import Parameter
from ...core.dtype import DType
from ...core.tensor import Tensor
from ...ops.creation.creation import empty
from ...ops.creation.ranges import arange
from .. import functional as F
from .. import init
from ..module import Module
from .affine import AffineNorm
from .utils import shown

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _ChannelNorm(Module):
    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self) -> str:
        return f"{self.size}, {shown(self, 'alpha', 'beta', 'k')}"


class LocalResponseNorm(_ChannelNorm):
    """Divides each element by (k + alpha * the mean square of `size` neighbouring channels) ** beta.

    Shapes: [N, C, ...]. Source: Krizhevsky, Sutskever, Hinton 2012.

    >>> import weft as torch
    >>> torch.nn.LocalResponseNorm(2)(torch.ones(1, 3, 1, 1)).shape
    torch.Size([1, 3, 1, 1])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_ChannelNorm):
    """Is an older `LocalResponseNorm` for [N, C, H, W] only.

    Raises: ValueError for other than four dims.

    >>> import weft as torch
    >>> torch.nn.CrossMapLRN2d(2)(torch.ones(1, 3, 1, 1)).shape
    torch.Size([1, 3, 1, 1])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        reach = (self.size + 1) // 2
        squares = input * input
        total = F.pad(squares, (0, 0, 0, 0, reach - 1, reach - 1)).unfold(1, 2 * reach - 1, 1).sum(-1)
        # PyTorch's sum over a sliding window never subtracts the first channel.
        late = arange(input.size(1), device=input.device).view(-1, 1, 1) >= reach
        total = total + squares[:, :1] * late
        return input * (total * (self.alpha / self.size) + self.k) ** -self.beta


class LayerNorm(AffineNorm):
    """Gives the last dims, of sizes `normalized_shape`, mean 0 and variance 1; then scales and shifts each element.

    Shapes: [..., *normalized_shape] -> the same. Source: Ba, Kiros, Hinton 2016, "Layer normalization".

    >>> import weft as torch
    >>> torch.nn.LayerNorm(3)(torch.tensor([[1.0, 2.0, 3.0]]))  # doctest: +ELLIPSIS
    tensor([[-1.2247,  0.0000,  1.2247]]...)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make_affine(
            self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype
        )
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, {shown(self, 'eps', 'elementwise_affine')}, bias={self.bias is not None}"


def _sizes(sizes: int | Sequence[int]) -> tuple[int, ...]:
    return (sizes,) if isinstance(sizes, int) else tuple(sizes)


class GroupNorm(AffineNorm):
    """Gives each of `num_groups` groups of channels mean 0 and variance 1; then scales and shifts each channel.

    Shapes: [N, num_channels, ...] -> the same. Source: Wu and He 2018, "Group normalization".
    Raises: ValueError unless num_groups divides num_channels.

    >>> import weft as torch
    >>> torch.nn.GroupNorm(num_groups=2, num_channels=6)(torch.rand(4, 6, 5)).shape
    torch.Size([4, 6, 5])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_affine(num_channels, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, {shown(self, 'eps', 'affine')}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides the last dims, of sizes `normalized_shape`, by their root mean square; then scales each element.

    eps: None is the epsilon of the dtype. Source: Zhang and Sennrich 2019.
    Shapes: [..., *normalized_shape] -> the same.

    >>> import weft as torch
    >>> torch.nn.RMSNorm(2)(torch.tensor([[3.0, 4.0]])).detach()
    tensor([[0.8485, 1.1314]])
    """

    weight: Tensor | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        wanted = elementwise_affine
        values = Parameter(empty(self.normalized_shape, device=device, dtype=dtype)) if wanted else None
        self.register_parameter("weight", values)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, {shown(self, 'eps', 'elementwise_affine')}"
