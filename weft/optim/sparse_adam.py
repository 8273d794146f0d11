"""SparseAdam is Adam for sparse gradients."""

from __future__ import annotations

from typing import Any

from ..core.layout import strided
from ..core.tensor import Tensor
from .optimizer import ParamsT, check_betas, check_lr
from .per_parameter import PerParameter


class SparseAdam(PerParameter):
    """Updates only the elements that a sparse gradient names, as Adam does.

    Sparse tensors are not there yet: a step with any gradient raises.
    Raises: ValueError for options outside their range and for complex parameters; `step` raises RuntimeError for dense
    gradients, NotImplementedError for sparse ones.

    >>> import weft as torch
    >>> torch.optim.SparseAdam([torch.ones(2)], lr=0.1).defaults['betas']
    (0.9, 0.999)
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

    def _update(self, param: Tensor, group: dict[str, Any]) -> None:
        if param.grad.layout is strided:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        raise NotImplementedError("SparseAdam: sparse gradients are not available yet")
