"""Fourier transforms, `torch.fft`."""

from __future__ import annotations

from .compat.missing import module_getattr
from .core.op import namespace

globals().update(namespace("fft"))

__getattr__ = module_getattr(__name__)
