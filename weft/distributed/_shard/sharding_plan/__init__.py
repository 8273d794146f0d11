"""`torch.distributed._shard.sharding_plan`: how the parameters and results of a module lie on several processes."""

from ....compat.missing import package_names

__all__, __getattr__ = package_names(__name__, {"api": "ShardingPlan ShardingPlanner"})
