"""Fourier transforms, `torch.fft`."""

from __future__ import annotations

from .core.op import namespace

globals().update(namespace("fft"))
