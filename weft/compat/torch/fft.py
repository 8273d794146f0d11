"""Fourier transforms, `torch.fft`."""

from __future__ import annotations

from weft.compat.missing import module_getattr
from weft.core.registry import namespace
from weft.core.tensor import Tensor as Tensor

globals().update(namespace("fft"))
__all__ = [*namespace("fft"), "Tensor"]

__getattr__ = module_getattr(__name__)
