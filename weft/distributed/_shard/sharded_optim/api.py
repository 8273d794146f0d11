"""`torch.distributed._shard.sharded_optim.api`: an optimizer of the shards of this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....core.tensor import Tensor
from ....optim.optimizer import Optimizer
from ..sharded_tensor._base import ShardedTensorBase

__all__ = ["ShardedOptimizer"]


class ShardedOptimizer(Optimizer):
    """An optimizer of a class, for tensors and for the shards that this process has of ShardedTensors."""

    def __init__(
        self,
        named_params: Mapping[str, Tensor],
        optimizer_class: Any,
        *optimizer_args: Any,
        **optimizer_kwargs: Any,
    ) -> None:
        tensors: list[Tensor] = []
        for value in named_params.values():
            if isinstance(value, ShardedTensorBase):
                tensors += [shard.tensor for shard in value.local_shards()]
            else:
                tensors.append(value)
        self.named_params = named_params
        self._optim = optimizer_class(tensors, *optimizer_args, **optimizer_kwargs)
        self.param_groups, self.state = self._optim.param_groups, self._optim.state

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients, or set them to zero."""
        self._optim.zero_grad(set_to_none)

    def step(self, closure: Any = None) -> None:
        """Update the tensors and the shards of this process."""
        self._optim.step(closure)

    def state_dict(self) -> Any:
        """Raises: NotImplementedError, as in PyTorch."""
        raise NotImplementedError("ShardedOptimizer state_dict not implemented yet!")

    def load_state_dict(self, state_dict: Any) -> None:
        """Raises: NotImplementedError, as in PyTorch."""
        raise NotImplementedError("ShardedOptimizer load_state_dict not implemented yet!")

    def add_param_group(self, param_group: Any) -> None:
        """Raises: NotImplementedError, as in PyTorch."""
        raise NotImplementedError("ShardedOptimizer add_param_group not implemented yet!")
