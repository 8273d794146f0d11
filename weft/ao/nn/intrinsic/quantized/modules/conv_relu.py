"""Quantized convolutions that end with ReLU."""

from __future__ import annotations

from typing import Any

from ....quantized import Conv1d, Conv2d, Conv3d
from ...modules import fused


class _EndsWithReLU:
    """The part of quantized layers that are made of two layers, the second of which is ReLU."""

    _relu = True

    @classmethod
    def from_reference(cls, ref_qconv: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The layer of a reference layer and ReLU, with the parameters of the result."""
        return super().from_reference(ref_qconv[0], output_scale, output_zero_point)  # type: ignore[misc]


class ConvReLU1d(_EndsWithReLU, Conv1d):
    """A quantized convolution and ReLU, which costs nothing."""

    _FLOAT_MODULE = fused.ConvReLU1d


class ConvReLU2d(_EndsWithReLU, Conv2d):
    """A quantized convolution and ReLU, which costs nothing."""

    _FLOAT_MODULE = fused.ConvReLU2d


class ConvReLU3d(_EndsWithReLU, Conv3d):
    """A quantized convolution and ReLU, which costs nothing."""

    _FLOAT_MODULE = fused.ConvReLU3d
