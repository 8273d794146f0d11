"""Pooling layers compute maxima, averages and norms of windows; unpooling layers put maxima back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from .utils import _ntuple, shown

# fmt: off
__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]
# fmt: on

# ---- Maxima --------------------------------------------------------------------------------------------------------


class _MaxPoolNd(Module):
    _function: Callable[..., Any]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return self._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        return shown(self, "kernel_size", "stride", "padding", "dilation", "ceil_mode")


class MaxPool1d(_MaxPoolNd):
    """Computes the maximum of each window. Shapes: [N, C, L] or [C, L].

    >>> import weft as torch
    >>> torch.nn.MaxPool1d(2)(torch.rand(2, 3, 8)).shape
    torch.Size([2, 3, 4])
    """

    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """Computes the maximum of each window. Shapes: [N, C, H, W] or [C, H, W].

    >>> import weft as torch
    >>> torch.nn.MaxPool2d(2)(torch.arange(16.0).reshape(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """Computes the maximum of each window. Shapes: [N, C, D, H, W] or [C, D, H, W].

    >>> import weft as torch
    >>> torch.nn.MaxPool3d(2)(torch.rand(2, 3, 8, 6, 4)).shape
    torch.Size([2, 3, 4, 3, 2])
    """

    _function = staticmethod(F.max_pool3d)


class _MaxUnpoolNd(Module):
    _function: Callable[..., Tensor]
    _n: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        per_dim = _ntuple(self._n)
        self.kernel_size = per_dim(kernel_size)
        self.stride = self.kernel_size if stride is None else per_dim(stride)
        self.padding = per_dim(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return shown(self, "kernel_size", "stride", "padding")


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts the maxima back where `MaxPool1d` with return_indices found them, and zeros elsewhere.

    Shapes: the output and the input of the pooling.

    >>> import weft as torch
    >>> values, indices = torch.nn.MaxPool1d(2, return_indices=True)(torch.rand(2, 3, 8))
    >>> torch.nn.MaxUnpool1d(2)(values, indices).shape
    torch.Size([2, 3, 8])
    """

    _function = staticmethod(F.max_unpool1d)
    _n = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts the maxima back where `MaxPool2d` with return_indices found them, and zeros elsewhere.

    Shapes: the output and the input of the pooling.

    >>> import weft as torch
    >>> values, indices = torch.nn.MaxPool2d(2, return_indices=True)(torch.rand(2, 3, 8, 6))
    >>> torch.nn.MaxUnpool2d(2)(values, indices).shape
    torch.Size([2, 3, 8, 6])
    """

    _function = staticmethod(F.max_unpool2d)
    _n = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts the maxima back where `MaxPool3d` with return_indices found them, and zeros elsewhere.

    Shapes: the output and the input of the pooling.

    >>> import weft as torch
    >>> values, indices = torch.nn.MaxPool3d(2, return_indices=True)(torch.rand(2, 3, 8, 6, 4))
    >>> torch.nn.MaxUnpool3d(2)(values, indices).shape
    torch.Size([2, 3, 8, 6, 4])
    """

    _function = staticmethod(F.max_unpool3d)
    _n = 3


class _FractionalMaxPoolNd(Module):
    _function: Callable[..., Any]
    _n: int

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        per_dim, name = _ntuple(self._n), type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        self.kernel_size = per_dim(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else per_dim(output_size)
        self.output_ratio = None if output_ratio is None else per_dim(output_ratio)
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        return self._function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Computes the maxima of windows that begin at random places. Source: Graham 2014, "Fractional max-pooling".

    Shapes: [N, C, *sizes] or [C, *sizes] -> [N, C, *output_size]. Raises: ValueError unless one of output_size and
    output_ratio is given, the latter within (0, 1).

    >>> import weft as torch
    >>> torch.nn.FractionalMaxPool2d(2, output_ratio=0.5)(torch.rand(2, 3, 8, 6)).shape
    torch.Size([2, 3, 4, 3])
    """

    _function = staticmethod(F.fractional_max_pool2d)
    _n = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Computes the maxima of windows that begin at random places. Source: Graham 2014, "Fractional max-pooling".

    Shapes: [N, C, *sizes] or [C, *sizes] -> [N, C, *output_size]. Raises: ValueError unless one of output_size and
    output_ratio is given, the latter within (0, 1).

    >>> import weft as torch
    >>> torch.nn.FractionalMaxPool3d(2, output_ratio=0.5)(torch.rand(2, 3, 8, 6, 4)).shape
    torch.Size([2, 3, 4, 3, 2])
    """

    _function = staticmethod(F.fractional_max_pool3d)
    _n = 3


# ---- Averages and norms --------------------------------------------------------------------------------------------


class _AvgPoolNd(Module):
    def extra_repr(self) -> str:
        return shown(self, "kernel_size", "stride", "padding")


class AvgPool1d(_AvgPoolNd):
    """Computes the average of each window. Shapes: [N, C, L] or [C, L].

    >>> import weft as torch
    >>> torch.nn.AvgPool1d(2)(torch.rand(2, 3, 8)).shape
    torch.Size([2, 3, 4])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        per_dim = _ntuple(1)
        self.kernel_size = per_dim(kernel_size)
        self.stride = self.kernel_size if stride is None else per_dim(stride)
        self.padding = per_dim(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class _AvgPoolWithDivisor(_AvgPoolNd):
    _function: Callable[..., Tensor]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolWithDivisor):
    """Computes the average of each window. Shapes: [N, C, H, W] or [C, H, W].

    >>> import weft as torch
    >>> torch.nn.AvgPool2d(2)(torch.rand(2, 3, 8, 6)).shape
    torch.Size([2, 3, 4, 3])
    """

    _function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPoolWithDivisor):
    """Computes the average of each window. Shapes: [N, C, D, H, W] or [C, D, H, W].

    >>> import weft as torch
    >>> torch.nn.AvgPool3d(2)(torch.rand(2, 3, 8, 6, 4)).shape
    torch.Size([2, 3, 4, 3, 2])
    """

    _function = staticmethod(F.avg_pool3d)


class _LPPoolNd(Module):
    _function: Callable[..., Tensor]

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return shown(self, "norm_type", "kernel_size", "stride", "ceil_mode")


class LPPool1d(_LPPoolNd):
    """Computes the `norm_type`-norm of each window. Shapes: [N, C, L] or [C, L].

    >>> import weft as torch
    >>> torch.nn.LPPool1d(2, kernel_size=2)(torch.rand(2, 3, 8)).shape
    torch.Size([2, 3, 4])
    """

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """Computes the `norm_type`-norm of each window. Shapes: [N, C, H, W] or [C, H, W].

    >>> import weft as torch
    >>> torch.nn.LPPool2d(2, kernel_size=2)(torch.rand(2, 3, 8, 6)).shape
    torch.Size([2, 3, 4, 3])
    """

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPoolNd):
    """Computes the `norm_type`-norm of each window. Shapes: [N, C, D, H, W] or [C, D, H, W].

    >>> import weft as torch
    >>> torch.nn.LPPool3d(2, kernel_size=2)(torch.rand(2, 3, 8, 6, 4)).shape
    torch.Size([2, 3, 4, 3, 2])
    """

    _function = staticmethod(F.lp_pool3d)


# ---- Adaptive ------------------------------------------------------------------------------------------------------


class _AdaptiveMaxPoolNd(Module):
    _function: Callable[..., Any]

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return self._function(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Computes the maxima of as many windows as give `output_size`. Shapes: [N, C, L] or [C, L].

    >>> import weft as torch
    >>> torch.nn.AdaptiveMaxPool1d(2)(torch.rand(2, 3, 8)).shape
    torch.Size([2, 3, 2])
    """

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Computes the maxima of windows for `output_size`; None keeps a size. Shapes: [N, C, H, W] or [C, H, W].

    >>> import weft as torch
    >>> torch.nn.AdaptiveMaxPool2d(2)(torch.rand(2, 3, 8, 6)).shape
    torch.Size([2, 3, 2, 2])
    """

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Computes the maxima of windows for `output_size`; None keeps a size. Shapes: [N, C, D, H, W] or without N.

    >>> import weft as torch
    >>> torch.nn.AdaptiveMaxPool3d(2)(torch.rand(2, 3, 8, 6, 4)).shape
    torch.Size([2, 3, 2, 2, 2])
    """

    _function = staticmethod(F.adaptive_max_pool3d)


class _AdaptiveAvgPoolNd(Module):
    _function: Callable[..., Tensor]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Computes the averages of as many windows as give `output_size`. Shapes: [N, C, L] or [C, L].

    >>> import weft as torch
    >>> torch.nn.AdaptiveAvgPool1d(2)(torch.rand(2, 3, 8)).shape
    torch.Size([2, 3, 2])
    """

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Computes the averages of windows for `output_size`; None keeps a size. Shapes: [N, C, H, W] or [C, H, W].

    >>> import weft as torch
    >>> torch.nn.AdaptiveAvgPool2d((1, None))(torch.ones(2, 3, 4, 5)).shape
    torch.Size([2, 3, 1, 5])
    """

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Computes the averages of windows for `output_size`; None keeps a size. Shapes: [N, C, D, H, W] or without N.

    >>> import weft as torch
    >>> torch.nn.AdaptiveAvgPool3d(2)(torch.rand(2, 3, 8, 6, 4)).shape
    torch.Size([2, 3, 2, 2, 2])
    """

    _function = staticmethod(F.adaptive_avg_pool3d)
