"""Batch normalization gives each channel of a batch the mean and variance that the parameters hold."""

from __future__ import annotations

from typing import Any

from ...autograd.parameter import UninitializedBuffer, UninitializedParameter
from ...core.above import above
from ...core.dtype import DType, int64
from ...core.tensor import Tensor
from ...ops.creation.creation import ones, zeros
from ...ops.creation.from_data import tensor
from .. import functional as F
from ..module import Module
from .affine import AffineNorm
from .lazy import LazyModuleMixin

# fmt: off
__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
    "SyncBatchNorm",
]
# fmt: on


class _NormBase(AffineNorm):
    """Serves as the base of batch and instance norms, with parameters and running statistics."""

    _version = 2
    _dims: tuple[int, ...]  # the numbers of dims that an input may have

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        factory = {"device": device, "dtype": dtype}
        self._make_affine(num_features, affine, affine and bias, device, dtype)
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, **factory) if tracked else None)
        self.register_buffer("running_var", ones(num_features, **factory) if tracked else None)
        self.register_buffer(
            "num_batches_tracked", tensor(0, dtype=int64, device=device) if tracked else None
        )
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        if self.track_running_stats:
            self.running_mean.zero_()  # type: ignore[union-attr]
            self.running_var.fill_(1)  # type: ignore[union-attr]
            self.num_batches_tracked.zero_()  # type: ignore[union-attr]

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._dims:
            expected = " or ".join(f"{n}D" for n in self._dims)
            raise ValueError(
                f"expected {expected} input (got {input.dim()}D input)\n{self}: input {list(input.shape)}"
            )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        key = f"{prefix}num_batches_tracked"
        version = local_metadata.get("version", None)
        # Files of older versions lack the count of batches.
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            own = self.num_batches_tracked
            known = own is not None and not own.is_meta
            state_dict[key] = own if known else tensor(0, dtype=int64)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        share = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # without momentum, average over all batches so far
                share = 1.0 / float(self.num_batches_tracked)
        running_mean, running_var = self.running_mean, self.running_var
        if self.training:
            measure = True
            if not self.track_running_stats:
                running_mean = running_var = None
        else:
            measure = running_mean is None and running_var is None
        return self._normalized(input, running_mean, running_var, measure, share)

    def _normalized(
        self, input: Tensor, running_mean: Any, running_var: Any, measure: bool, share: float
    ) -> Tensor:
        return F.batch_norm(
            input, running_mean, running_var, self.weight, self.bias, measure, share, self.eps
        )


class BatchNorm1d(_BatchNorm):
    """Normalizes each channel over the batch. Shapes: [N, C] or [N, C, L].

    Source: Ioffe and Szegedy 2015, "Batch normalization".

    >>> import weft as torch
    >>> torch.nn.BatchNorm1d(3)(torch.rand(2, 3, 8)).shape
    torch.Size([2, 3, 8])
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalizes each channel over the batch; in evaluation by the running statistics. Shapes: [N, C, H, W].

    >>> import weft as torch
    >>> norm = torch.nn.BatchNorm2d(3)
    >>> images = norm(torch.rand(8, 3, 5, 5))
    >>> norm.num_batches_tracked
    tensor(1)
    """

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalizes each channel over the batch. Shapes: [N, C, D, H, W].

    >>> import weft as torch
    >>> torch.nn.BatchNorm3d(3)(torch.rand(2, 3, 8, 6, 4)).shape
    torch.Size([2, 3, 8, 6, 4])
    """

    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Computes batch normalization over the batches of all processes of a group; in one process as BatchNorm.

    Shapes: [N, C, ...] -> the same.

    >>> import weft as torch
    >>> torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.Sequential(torch.nn.BatchNorm1d(3)))
    Sequential(
      (0): SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    )
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _normalized(
        self, input: Tensor, running_mean: Any, running_var: Any, measure: bool, share: float
    ) -> Tensor:
        if self.training and measure:
            synchronized = above("distributed._batch_norm")
            group = synchronized.group_of(self.process_group)
            if group is not None:
                return synchronized.batch_norm(
                    input, running_mean, running_var, self.weight, self.bias, share, self.eps, group
                )
        return super()._normalized(input, running_mean, running_var, measure, share)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Return `module` with every BatchNorm replaced by a SyncBatchNorm of its parameters and statistics."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(converted, name, getattr(module, name))
            converted.training = module.training
            if hasattr(module, "qconfig"):
                converted.qconfig = module.qconfig
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted


# ---- Lazy ----------------------------------------------------------------------------------------------------------


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Takes `num_features` from the second dim of the first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        factory = {"device": device, "dtype": dtype}
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**factory)
            if bias:
                self.bias = UninitializedParameter(**factory)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**factory)
            self.running_var = UninitializedBuffer(**factory)
            self.num_batches_tracked = tensor(0, dtype=int64, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for each in (self.weight, self.bias, self.running_mean, self.running_var):
                if isinstance(each, (UninitializedParameter, UninitializedBuffer)):
                    each.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A BatchNorm1d that takes `num_features` from its first input.

    >>> import weft as torch
    >>> norm = torch.nn.LazyBatchNorm1d(affine=True)
    >>> norm(torch.rand(2, 3, 8)).shape
    torch.Size([2, 3, 8])
    >>> norm
    BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become = BatchNorm1d
    _dims = BatchNorm1d._dims


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A BatchNorm2d that takes `num_features` from its first input.

    >>> import weft as torch
    >>> norm = torch.nn.LazyBatchNorm2d(affine=True)
    >>> norm(torch.rand(2, 3, 8, 6)).shape
    torch.Size([2, 3, 8, 6])
    >>> norm
    BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become = BatchNorm2d
    _dims = BatchNorm2d._dims


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A BatchNorm3d that takes `num_features` from its first input.

    >>> import weft as torch
    >>> norm = torch.nn.LazyBatchNorm3d(affine=True)
    >>> norm(torch.rand(2, 3, 8, 6, 4)).shape
    torch.Size([2, 3, 8, 6, 4])
    >>> norm
    BatchNorm3d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    cls_to_become = BatchNorm3d
    _dims = BatchNorm3d._dims
