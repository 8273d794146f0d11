"""weft.cpu: the processor as a device, and its memory."""

from .engine.memory import memory_stats, reset_peak_memory_stats

__all__ = ["memory_stats", "reset_peak_memory_stats"]
