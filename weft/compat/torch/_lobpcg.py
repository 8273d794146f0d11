"""`torch._lobpcg`: where `torch.lobpcg` is defined."""

from weft.ops.linalg.lowrank import lobpcg

__all__ = ["lobpcg"]
