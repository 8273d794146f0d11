"""`torch.distributed.tensor.debug`: pictures of how DTensors lie on processes."""

from ....compat.missing import package_names

__all__, __getattr__ = package_names(__name__, {"_visualize_sharding": "visualize_sharding"})
