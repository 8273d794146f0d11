"""Defines convolutions and transposed convolutions over one, two and three dims."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...autograd.parameter import Parameter, UninitializedParameter
from ...core.dtype import DType
from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from ...ops.creation.creation import empty
from .. import functional as F
from .. import init
from ..module import Module
from .lazy import LazyModuleMixin
from .linear import init_bias
from .utils import _ntuple, _reverse_repeat_tuple

# fmt: off
__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d",
    "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]
# fmt: on


class _ConvNd(Module):
    """The base of all convolutions, with their checks, parameters and repr."""

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self._check(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._padding_of_pad()
        self.weight = Parameter(empty(self._weight_shape(), device=device, dtype=dtype))
        values = Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", values)
        self.reset_parameters()

    @staticmethod
    def _check(
        in_channels: int,
        out_channels: int,
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        groups: int,
        padding_mode: str,
    ) -> None:
        if groups <= 0:
            raise ValueError(f"groups must be a positive integer, got {groups}")
        if in_channels % groups:
            raise ValueError(f"in_channels must be divisible by groups, got {in_channels} and {groups}")
        if out_channels % groups:
            raise ValueError(f"out_channels must be divisible by groups, got {out_channels} and {groups}")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError(f"padding='same' is not supported for strided convolutions: stride {stride}")
        modes = ("zeros", "reflect", "replicate", "circular")
        if padding_mode not in modes:
            raise ValueError(
                f"padding_mode must be one of {set(modes)}, but got padding_mode='{padding_mode}'"
            )

    def _padding_of_pad(self) -> Sequence[int]:
        """Return the padding as `F.pad` takes it: both ends of each dim, the last dim first."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        found: list[int] = []
        for step, size in zip(reversed(self.dilation), reversed(self.kernel_size)):
            total = step * (size - 1) if self.padding == "same" else 0
            found += [total // 2, total - total // 2]
        return found

    def _weight_shape(self) -> tuple[int, ...]:
        if self.transposed:
            return self.in_channels, self.out_channels // self.groups, *self.kernel_size
        return self.out_channels, self.in_channels // self.groups, *self.kernel_size

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None and self.weight.numel():
            init_bias(self.bias, self.weight)

    def extra_repr(self) -> str:
        none = (0,) * len(self.kernel_size)
        facts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}",
            f"padding={self.padding}" if self.padding != none else "",
            f"dilation={self.dilation}" if self.dilation != (1,) * len(none) else "",
            f"output_padding={self.output_padding}" if self.output_padding != none else "",
            f"groups={self.groups}" if self.groups != 1 else "",
            "bias=False" if self.bias is None else "",
            f"padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "",
        ]
        return ", ".join(filter(None, facts))


class _Conv(_ConvNd):
    _function: Callable[..., Tensor]
    _n: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        per_dim = _ntuple(self._n)
        super().__init__(
            in_channels,
            out_channels,
            per_dim(kernel_size),
            per_dim(stride),
            padding if isinstance(padding, str) else per_dim(padding),
            per_dim(dilation),
            False,
            per_dim(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * self._n
        return self._function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Convolves with learned weights. Shapes: [N, C, L] or [C, L].

    >>> import weft as torch
    >>> torch.nn.Conv1d(16, 33, 3, stride=2)(torch.randn(20, 16, 50)).shape
    torch.Size([20, 33, 24])
    """

    _function = staticmethod(F.conv1d)
    _n = 1


class Conv2d(_Conv):
    """Convolves with learned weights. Shapes: [N, C, H, W] or [C, H, W]; weight [out, in / groups, *kernel_size].

    >>> import weft as torch
    >>> torch.nn.Conv2d(1, 32, 3, padding="same")(torch.randn(4, 1, 28, 28)).shape
    torch.Size([4, 32, 28, 28])
    """

    _function = staticmethod(F.conv2d)
    _n = 2


class Conv3d(_Conv):
    """Convolves with learned weights. Shapes: [N, C, D, H, W] or [C, D, H, W].

    >>> import weft as torch
    >>> torch.nn.Conv3d(3, 4, kernel_size=3)(torch.rand(2, 3, 8, 6, 4)).shape
    torch.Size([2, 4, 6, 4, 2])
    """

    _function = staticmethod(F.conv3d)
    _n = 3


# ---- Transposed ----------------------------------------------------------------------------------------------------


class _ConvTransposeNd(_ConvNd):
    _function: Callable[..., Tensor]
    _n: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        per_dim = _ntuple(self._n)
        super().__init__(
            in_channels,
            out_channels,
            per_dim(kernel_size),
            per_dim(stride),
            per_dim(padding),
            per_dim(dilation),
            True,
            per_dim(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        extra = self.output_padding if output_size is None else self._extra_for(input, output_size)
        return self._function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _extra_for(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """Return the output padding for which the result has `output_size`, with or without batch and channels.

        Raises: ValueError if no output padding gives that size.
        """
        n = self._n
        wanted = tuple(output_size)
        if len(wanted) in (n + 1, n + 2) and len(wanted) == input.dim():
            wanted = wanted[-n:]
        if len(wanted) != n:
            raise ValueError(
                f"{type(self).__name__}: for {input.dim()}D input, output_size must have {n} or {input.dim()} elements "
                f"(got {len(output_size)})"
            )
        pads: Any = self.padding
        least = [
            (size - 1) * step - 2 * pad + reach * (kernel - 1) + 1
            for size, step, pad, kernel, reach in zip(
                input.shape[-n:], self.stride, pads, self.kernel_size, self.dilation
            )
        ]
        most = [size + step - 1 for size, step in zip(least, self.stride)]
        if not all(low <= size <= high for low, size, high in zip(least, wanted, most)):
            raise ValueError(
                f"requested an output size of {list(output_size)}, but valid sizes range from {least} to {most} "
                f"(for an input of {list(input.shape[2:])}) in {self}"
            )
        return tuple(size - low for size, low in zip(wanted, least))


class ConvTranspose1d(_ConvTransposeNd):
    """Is the transpose of `Conv1d` as a matrix. Shapes: [N, C, L] or [C, L].

    >>> import weft as torch
    >>> torch.nn.ConvTranspose1d(3, 4, kernel_size=3, stride=2)(torch.rand(2, 3, 8)).shape
    torch.Size([2, 4, 17])
    """

    _function = staticmethod(F.conv_transpose1d)
    _n = 1


class ConvTranspose2d(_ConvTransposeNd):
    """Is the transpose of `Conv2d` as a matrix. Shapes: [N, C, H, W] or [C, H, W]; weight [in, out / groups, *kernel_size].

    >>> import weft as torch
    >>> down = torch.nn.Conv2d(16, 16, 3, stride=2, padding=1)
    >>> up = torch.nn.ConvTranspose2d(16, 16, 3, stride=2, padding=1)
    >>> images = torch.randn(1, 16, 12, 12)
    >>> up(down(images), output_size=images.size()).shape
    torch.Size([1, 16, 12, 12])
    """

    _function = staticmethod(F.conv_transpose2d)
    _n = 2


class ConvTranspose3d(_ConvTransposeNd):
    """Is the transpose of `Conv3d` as a matrix. Shapes: [N, C, D, H, W] or [C, D, H, W].

    >>> import weft as torch
    >>> torch.nn.ConvTranspose3d(3, 4, kernel_size=3, stride=2)(torch.rand(2, 3, 8, 6, 4)).shape
    torch.Size([2, 4, 17, 13, 9])
    """

    _function = staticmethod(F.conv_transpose3d)
    _n = 3


# ---- Lazy ----------------------------------------------------------------------------------------------------------


class _LazyConvXdMixin(LazyModuleMixin):
    """Takes `in_channels` from the first input."""

    _n: int
    in_channels: int
    out_channels: int
    groups: int
    weight: Any
    bias: Any

    def _begin(self, out_channels: int, bias: bool, device: Any, dtype: DType | None) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        if self.has_uninitialized_params():
            with no_grad():
                self.in_channels = self._get_in_channels(input)
                if self.in_channels % self.groups:
                    raise ValueError(
                        f"in_channels must be divisible by groups, got {self.in_channels} and {self.groups}"
                    )
                self.weight.materialize(self._weight_shape())  # type: ignore[attr-defined]
                if self.bias is not None:
                    self.bias.materialize((self.out_channels,))
                self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        if input.dim() not in (self._n + 1, self._n + 2):
            raise RuntimeError(
                f"Expected {self._n + 1}D (unbatched) or {self._n + 2}D (batched) input to {type(self).__name__}, "
                f"but got input of size: {input.shape}"
            )
        return input.shape[-self._n - 1]


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        # Create the layer without bias, because the bias must be drawn after the weight.
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._begin(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode
        )
        self._begin(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A Conv1d that takes `in_channels` from its first input.

    >>> import weft as torch
    >>> layer = torch.nn.LazyConv1d(4, kernel_size=3)
    >>> layer(torch.rand(2, 3, 8)).shape
    torch.Size([2, 4, 6])
    >>> layer.in_channels
    3
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A Conv2d that takes `in_channels` from its first input.

    >>> import weft as torch
    >>> layer = torch.nn.LazyConv2d(4, kernel_size=3)
    >>> layer(torch.rand(2, 3, 8, 6)).shape
    torch.Size([2, 4, 6, 4])
    >>> layer.in_channels
    3
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A Conv3d that takes `in_channels` from its first input.

    >>> import weft as torch
    >>> layer = torch.nn.LazyConv3d(4, kernel_size=3)
    >>> layer(torch.rand(2, 3, 8, 6, 4)).shape
    torch.Size([2, 4, 6, 4, 2])
    >>> layer.in_channels
    3
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A ConvTranspose1d that takes `in_channels` from its first input.

    >>> import weft as torch
    >>> layer = torch.nn.LazyConvTranspose1d(4, kernel_size=3)
    >>> layer(torch.rand(2, 3, 8)).shape
    torch.Size([2, 4, 10])
    >>> layer.in_channels
    3
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A ConvTranspose2d that takes `in_channels` from its first input.

    >>> import weft as torch
    >>> layer = torch.nn.LazyConvTranspose2d(4, kernel_size=3)
    >>> layer(torch.rand(2, 3, 8, 6)).shape
    torch.Size([2, 4, 10, 8])
    >>> layer.in_channels
    3
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A ConvTranspose3d that takes `in_channels` from its first input.

    >>> import weft as torch
    >>> layer = torch.nn.LazyConvTranspose3d(4, kernel_size=3)
    >>> layer(torch.rand(2, 3, 8, 6, 4)).shape
    torch.Size([2, 4, 10, 8, 6])
    >>> layer.in_channels
    3
    """

    cls_to_become = ConvTranspose3d
