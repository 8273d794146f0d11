"""Quantized convolutions whose result is added to a second tensor."""

from __future__ import annotations

from typing import Any, ClassVar

from ......core.tensor import Tensor
from ......library.namespaces import ops
from ....quantized import Conv2d
from ...modules import fused


class ConvAdd2d(Conv2d):
    """A quantized convolution, and the sum of its result and a second tensor."""

    _FLOAT_MODULE: ClassVar[Any] = fused.ConvAdd2d

    def forward(self, input: Tensor, extra_input: Tensor) -> Tensor:  # type: ignore[override]  # of two inputs
        call = ops.quantized.conv2d_add_relu if self._relu else ops.quantized.conv2d_add
        return call(self._padded(input), extra_input, self._packed_params, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return f"QuantizedConvAdd{'ReLU' if self._relu else ''}2d"

    @classmethod
    def from_reference(cls, ref_qconv: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The layer of a reference layer and a sum, with the parameters of the result."""
        return super().from_reference(ref_qconv[0], output_scale, output_zero_point)


class ConvAddReLU2d(ConvAdd2d):
    """ConvAdd2d and ReLU, which costs nothing."""

    _FLOAT_MODULE = fused.ConvAddReLU2d
    _relu = True
