"""The layer of `torch.ao.nn.intrinsic.quantized.dynamic`."""

from .linear_relu import LinearReLU

__all__ = ["LinearReLU"]
