"""The base of the optimizers that update one parameter after the other with tensor ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from .optimizer import Optimizer, evaluate


class PerParameter(Optimizer):
    """A subclass defines how a parameter that has a gradient is updated."""

    def _update(self, param: Tensor, group: dict[str, Any]) -> None:
        raise NotImplementedError

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have gradients; `closure` computes the loss again. Returns the loss."""
        loss = evaluate(closure)
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    self._update(param, group)
        return loss
