"""`torch.distributed._shard.sharded_optim`: optimizers of parameters of which some are ShardedTensors."""

from ....compat.missing import package_names

__all__, __getattr__ = package_names(
    __name__, {"_named": "named_params_with_sharded_tensor", "api": "ShardedOptimizer"}
)
