"""SparseAdam is Adam for sparse gradients."""

from __future__ import annotations

import math
from typing import Any

from ..core.layout_spec import is_strided
from ..core.tensor import Tensor
from ..layouts.parts import with_values
from ..ops.creation.creation import zeros_like
from .optimizer import ParamsT, check_betas, check_lr
from .per_parameter import PerParameter

# What the optimizer says of parameters that it does not take.
_WANTED = {"Sparse": "requires dense parameter tensors", "Complex": "does not support complex parameters"}


def _is_sparse(param: Tensor) -> bool:
    return not is_strided(param.spec)


class SparseAdam(PerParameter):
    """Updates only the elements that a sparse gradient names, as Adam does.

    Of the other elements, neither the value nor the running means change. Raises: ValueError for options outside their range, and for
    complex or sparse parameters; `step` raises RuntimeError for dense gradients.

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
        for kind, is_refused in (("Sparse", _is_sparse), ("Complex", Tensor.is_complex)):
            found = [
                [g, k]
                for g, group in enumerate(self.param_groups)
                for k, param in enumerate(group["params"])
                if is_refused(param)
            ]
            if found:
                raise ValueError(f"{kind} params at indices {found}: SparseAdam {_WANTED[kind]}")

    def _update(self, param: Tensor, group: dict[str, Any]) -> None:
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")

    def _step_sparse(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state = self.state[param]
        if not state:
            state.update(step=0, exp_avg=zeros_like(param), exp_avg_sq=zeros_like(param))
        state["step"] += 1
        grad = (-grad if group["maximize"] else grad).coalesce()
        values = grad._values()
        if not values.numel():
            return
        means = []
        for name, beta, sample in zip(("exp_avg", "exp_avg_sq"), group["betas"], (values, values * values)):
            mean = state[name]
            before = mean.sparse_mask(grad)._values()
            change = (sample - before).mul_(1 - beta)
            mean.add_(with_values(grad, change))
            means.append(change.add_(before))
        rest = [1 - beta ** state["step"] for beta in group["betas"]]
        step_size = group["lr"] * math.sqrt(rest[1]) / rest[0]
        means[1].sqrt_().add_(group["eps"])
        param.add_(with_values(grad, -step_size * means[0].div_(means[1])))
