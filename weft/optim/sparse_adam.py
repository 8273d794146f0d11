"""Adam for sparse gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.grad_mode import no_grad
from ..core.layout import strided
from ..core.tensor import Tensor
from .optimizer import Optimizer, ParamsT, check_betas, check_lr, evaluate


class SparseAdam(Optimizer):
    """Adam that updates only the elements that a sparse gradient names.

    Sparse tensors are not there yet: a step with any gradient raises.
    Raises: ValueError for options outside their range and for complex parameters.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ):
        check_lr(lr)
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        found = [
            [g, k]
            for g, group in enumerate(self.param_groups)
            for k, param in enumerate(group["params"])
            if param.is_complex()
        ]
        if found:
            raise ValueError(
                f"Complex params at indices {found}: SparseAdam does not support complex parameters"
            )

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Raises: RuntimeError for dense gradients, NotImplementedError for sparse ones."""
        loss = evaluate(closure)
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if param.grad.layout is strided:
                    raise RuntimeError(
                        "SparseAdam does not support dense gradients, please consider Adam instead"
                    )
                raise NotImplementedError("SparseAdam: sparse gradients are not available yet")
        return loss
