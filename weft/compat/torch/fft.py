"""Fourier transforms, `torch.fft`."""

from __future__ import annotations

from weft.core.registry import namespace
from weft.core.tensor import Tensor as Tensor

globals().update(namespace("fft"))
__all__ = [*namespace("fft"), "Tensor"]
