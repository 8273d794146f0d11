"""weft.cpu: the processor as a device, and its memory."""

from ..compat.missing import module_getattr
from ..engine.memory import memory_stats, reset_peak_memory_stats

__all__ = ["memory_stats", "reset_peak_memory_stats"]

__getattr__ = module_getattr(__name__, ("amp",))
