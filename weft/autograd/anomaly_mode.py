"""Searching for the step of a NaN, `torch.autograd.anomaly_mode`."""

from __future__ import annotations

from ..compat.missing import module_getattr
from ..core.names import name_public
from .anomaly import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]

name_public(__name__, "autograd.anomaly")
__getattr__ = module_getattr(__name__)
