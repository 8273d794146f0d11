"""Normalization of quantized tensors: their numbers are normalized, and quantized again."""

from __future__ import annotations

from typing import Any

from ..... import nn
from .....core.tensor import Tensor
from .....library.namespaces import ops
from .....ops.creation.from_data import tensor
from .utils import result_parameters

__all__ = ["GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm"]


class _Normalization(nn.Module):
    """`scale` and `zero_point` are those of the result."""

    scale: Tensor
    zero_point: Tensor

    def _set(self, weight: Any, bias: Any, scale: Any, zero_point: Any, device: Any, dtype: Any) -> None:
        self.weight, self.bias = weight, bias
        self.register_buffer("scale", tensor(scale, device=device, dtype=dtype))
        self.register_buffer("zero_point", tensor(zero_point, device=device, dtype=dtype))

    def _result(self) -> tuple[float, int]:
        return float(self.scale), int(self.zero_point)

    def _weights(self: Any) -> tuple[Tensor | None, Tensor | None]:
        return tuple(None if each is None else each.detach() for each in (self.weight, self.bias))  # type: ignore[return-value]

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    @classmethod
    def _like(cls, mod: Any, scale: float, zero_point: int) -> Any:
        raise NotImplementedError

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantized layer of a layer that was observed."""
        return cls._like(mod, *result_parameters(mod))

    @classmethod
    def from_reference(cls, mod: Any, scale: Any, zero_point: Any) -> Any:
        """The quantized layer of a layer of floats, with the parameters of the result."""
        return cls._like(mod, float(scale), int(zero_point))


class LayerNorm(_Normalization, nn.LayerNorm):
    """Each sample has the mean 0 and the variance 1."""

    def __init__(
        self, normalized_shape: Any, weight: Any, bias: Any, scale: Any, zero_point: Any, eps: float = 1e-5,
        elementwise_affine: bool = True, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__(normalized_shape, eps, elementwise_affine, device=device, dtype=dtype)
        self._set(weight, bias, scale, zero_point, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return ops.quantized.layer_norm(
            input, self.normalized_shape, *self._weights(), self.eps, *self._result()
        )

    @classmethod
    def _like(cls, mod: Any, scale: float, zero_point: int) -> LayerNorm:
        return cls(
            mod.normalized_shape, mod.weight, mod.bias, scale, zero_point, mod.eps, mod.elementwise_affine
        )


class GroupNorm(_Normalization, nn.GroupNorm):
    """Each group of channels of a sample has the mean 0 and the variance 1."""

    def __init__(
        self, num_groups: int, num_channels: int, weight: Any, bias: Any, scale: Any, zero_point: Any, eps: float = 1e-5,
        affine: bool = True, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        super().__init__(num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        self._set(weight, bias, scale, zero_point, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return ops.quantized.group_norm(input, self.num_groups, *self._weights(), self.eps, *self._result())

    @classmethod
    def _like(cls, mod: Any, scale: float, zero_point: int) -> GroupNorm:
        sizes = mod.num_groups, mod.num_channels
        return cls(*sizes, mod.weight, mod.bias, scale, zero_point, mod.eps, mod.affine)


class _InstanceNorm(_Normalization):
    def __init__(
        self, num_features: int, weight: Any, bias: Any, scale: Any, zero_point: Any, eps: float = 1e-5,
        momentum: float = 0.1, affine: bool = False, track_running_stats: bool = False, device: Any = None, dtype: Any = None,
    ):  # fmt: skip
        options = num_features, eps, momentum, affine, track_running_stats
        super().__init__(*options, device=device, dtype=dtype)  # type: ignore[call-arg]
        self._set(weight, bias, scale, zero_point, device, dtype)

    def forward(self: Any, input: Tensor) -> Tensor:
        return ops.quantized.instance_norm(input, *self._weights(), self.eps, *self._result())

    @classmethod
    def _like(cls, mod: Any, scale: float, zero_point: int) -> Any:
        return cls(mod.num_features, mod.weight, mod.bias, scale, zero_point, mod.eps, mod.affine)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """Each channel of a sequence has the mean 0 and the variance 1."""


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """Each channel of an image has the mean 0 and the variance 1."""


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """Each channel of a volume has the mean 0 and the variance 1."""
