"""Fourier transforms, `torch.fft`."""

from __future__ import annotations

from .compat.missing import module_getattr
from .core.registry import namespace
from .core.tensor import Tensor as Tensor

globals().update(namespace("fft"))

__getattr__ = module_getattr(__name__)
