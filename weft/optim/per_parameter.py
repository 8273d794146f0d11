"""The base of the optimizers that update one parameter after the other with tensor ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.grad_mode import no_grad
from ..core.layout_spec import is_strided
from ..core.tensor import Tensor
from .optimizer import Optimizer, evaluate


class PerParameter(Optimizer):
    """A subclass defines how a parameter is updated by its gradient, and by a sparse one if it can be."""

    def _update(self, param: Tensor, group: dict[str, Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define _update(param, group)")

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have gradients; `closure` computes the loss again. Returns the loss."""
        loss = evaluate(closure)
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if is_strided(param.grad.spec):
                    self._update(param, group)
                else:
                    self._step_sparse(param, param.grad, group)
        return loss
