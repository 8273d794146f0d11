"""`torch.distributed._shard.sharding_plan.api`: the plan that `shard_module` carries out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from ....nn.module import Module
from ..sharder import Sharder
from ..sharding_spec.api import ShardingSpec

__all__ = ["ShardingPlan", "ShardingPlanner"]


@dataclass
class ShardingPlan:
    """What `shard_module` does with a module.

    plan: the spec of each parameter, by its name, or a Sharder for a module. output_plan: the spec of the result of each
    module, by the module's name, "" for the outermost. return_local_tensor: the modules whose result becomes the shard of this
    process.
    """

    plan: dict[str, ShardingSpec | Sharder]
    output_plan: dict[str, ShardingSpec] | None = None
    return_local_tensor: list[str] | None = None


class ShardingPlanner(ABC):
    """Makes a plan for a module."""

    @abstractmethod
    def build_plan(self, module: Module) -> ShardingPlan:
        """The plan for this module."""
