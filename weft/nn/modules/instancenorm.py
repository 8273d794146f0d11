"""Instance normalization gives each channel of each sample the mean and variance that the parameters hold."""

from __future__ import annotations

import warnings
from typing import Any

from ...core.dtype import DType
from ...core.tensor import Tensor
from ...core.warn import user_level
from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase

# fmt: off
__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]
# fmt: on


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        single = input.dim() == self._get_no_batch_dim()
        if input.size(0 if single else 1) != self.num_features:
            self._complain(input, 0 if single else 1)
        return self._normalized(input.unsqueeze(0)).squeeze(0) if single else self._normalized(input)

    def _get_no_batch_dim(self) -> int:
        """Return the number of dims of an input without a batch."""
        return self._dims[0]

    def _normalized(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )

    def _complain(self, input: Tensor, dim: int) -> None:
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={dim} to match num_features ({self.num_features}), "
                f"but got: {input.size(dim)}.\n{self}: input {list(input.shape)}"
            )
        warnings.warn(
            f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing in "
            "num_features, which is not used because affine=False",
            stacklevel=user_level(),
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalizes each channel of each sample. Shapes: [N, C, L] or [C, L].

    Source: Ulyanov, Vedaldi, Lempitsky 2016, "Instance normalization".

    >>> import weft as torch
    >>> torch.nn.InstanceNorm1d(3)(torch.rand(2, 3, 8)).shape
    torch.Size([2, 3, 8])
    """

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalizes each channel of each sample. Shapes: [N, C, H, W] or [C, H, W].

    >>> import weft as torch
    >>> result = torch.nn.InstanceNorm2d(3)(torch.rand(2, 3, 8, 8))
    >>> bool((result.mean((2, 3)).abs() < 1e-5).all())
    True
    """

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalizes each channel of each sample. Shapes: [N, C, D, H, W] or [C, D, H, W].

    >>> import weft as torch
    >>> torch.nn.InstanceNorm3d(3)(torch.rand(2, 3, 8, 6, 4)).shape
    torch.Size([2, 3, 8, 6, 4])
    """

    _dims = (4, 5)


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm1d that takes `num_features` from its first input.

    >>> import weft as torch
    >>> norm = torch.nn.LazyInstanceNorm1d(affine=True)
    >>> norm(torch.rand(2, 3, 8)).shape
    torch.Size([2, 3, 8])
    >>> norm
    InstanceNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become = InstanceNorm1d
    _dims = InstanceNorm1d._dims


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm2d that takes `num_features` from its first input.

    >>> import weft as torch
    >>> norm = torch.nn.LazyInstanceNorm2d(affine=True)
    >>> norm(torch.rand(2, 3, 8, 6)).shape
    torch.Size([2, 3, 8, 6])
    >>> norm
    InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become = InstanceNorm2d
    _dims = InstanceNorm2d._dims


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm3d that takes `num_features` from its first input.

    >>> import weft as torch
    >>> norm = torch.nn.LazyInstanceNorm3d(affine=True)
    >>> norm(torch.rand(2, 3, 8, 6, 4)).shape
    torch.Size([2, 3, 8, 6, 4])
    >>> norm
    InstanceNorm3d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become = InstanceNorm3d
    _dims = InstanceNorm3d._dims
