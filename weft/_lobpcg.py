"""`torch._lobpcg`: where `torch.lobpcg` is defined."""

from .ops.lowrank import lobpcg

__all__ = ["lobpcg"]
