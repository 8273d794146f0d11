"""`torch.distributed.tensor.debug`: how DTensors lie on processes, and which collectives programs call."""

from ....compat.missing import package_names

__all__, __getattr__ = package_names(
    __name__, {"_comm_mode": "CommDebugMode", "_visualize_sharding": "visualize_sharding"}
)
