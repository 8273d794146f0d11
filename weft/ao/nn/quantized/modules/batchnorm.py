"""Batch normalization of quantized tensors, with the averages that training has left."""

from __future__ import annotations

from typing import Any

from .....core.tensor import Tensor
from .....library.namespaces import ops
from .....nn import BatchNorm2d as FloatBatchNorm2d
from .....nn import BatchNorm3d as FloatBatchNorm3d
from .....ops.creation.from_data import tensor
from .utils import result_parameters


class _QuantizedBatchNorm:
    _kind = ""
    _relu = False
    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(num_features, eps, momentum, device=device, dtype=dtype)  # type: ignore[call-arg]
        self.register_buffer("scale", tensor(1.0, device=device, dtype=dtype))  # type: ignore[attr-defined]
        self.register_buffer("zero_point", tensor(0, device=device, dtype=dtype))  # type: ignore[attr-defined]

    def forward(self: Any, input: Tensor) -> Tensor:
        call = getattr(ops.quantized, f"batch_norm{self._kind}{'_relu' if self._relu else ''}")
        parameters = (self.weight, self.bias, self.running_mean, self.running_var, self.eps)
        return call(
            input,
            *(each.detach() if isinstance(each, Tensor) else each for each in parameters),
            float(self.scale),
            int(self.zero_point),
        )

    def _get_name(self) -> str:
        return f"Quantized{'BNReLU' if self._relu else 'BatchNorm'}{self._kind}"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantized layer of a layer that was observed."""
        return cls._like(mod[0] if cls._relu else mod, *result_parameters(mod))

    @classmethod
    def from_reference(cls, bn: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The quantized layer of a layer of floats, with the parameters of the result."""
        return cls._like(bn[0] if cls._relu else bn, output_scale, output_zero_point)

    @classmethod
    def _like(cls, bn: Any, output_scale: Any, output_zero_point: Any) -> Any:
        made: Any = cls(bn.num_features, bn.eps, bn.momentum)
        for name in ("weight", "bias", "running_mean", "running_var"):
            setattr(made, name, getattr(bn, name))
        made.scale, made.zero_point = tensor(float(output_scale)), tensor(int(output_zero_point))
        return made


class BatchNorm2d(_QuantizedBatchNorm, FloatBatchNorm2d):
    """Batch normalization of images."""

    _kind = "2d"


class BatchNorm3d(_QuantizedBatchNorm, FloatBatchNorm3d):
    """Batch normalization of volumes."""

    _kind = "3d"
