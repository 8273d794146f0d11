"""`torch.distributed._shard.sharder`: what divides a whole module in a way of its own."""

from abc import ABC, abstractmethod

from ...nn.module import Module

__all__ = ["Sharder"]


class Sharder(ABC):
    """Divides a module. A ShardingPlan may name one for a module, where specs of single parameters do not suffice."""

    @abstractmethod
    def shard(self, module: Module) -> Module:
        """The module that takes the place of this one."""
