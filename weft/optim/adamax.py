"""Adamax uses the largest gradient where Adam uses the mean square."""

from __future__ import annotations

from ..core.tensor import Tensor
from ..families.update import FusedUpdate
from .arithmetic import absolute, addcdiv, directed, lerp, maximum
from .elementwise import Elementwise
from .optimizer import ParamsT, check_adam_options


def _rule(options, grad, param, mean, largest, weight_decay, weight1, beta2, eps, step_size):
    maximize, decays = options
    grad = directed(grad, param, maximize, weight_decay if decays else None)
    mean = lerp(mean, grad, weight1)
    largest = maximum(largest * beta2, absolute(grad) + eps)
    return addcdiv(param, mean, largest, step_size), mean, largest


class Adamax(Elementwise):
    """Divides the running mean of the gradient by its largest absolute value, which decays by beta2 in each step.

    Raises: ValueError for options outside their range.
    Source: Kingma and Ba, Adam, 2015, section 7.1.

    >>> import weft as torch
    >>> weight = torch.ones(2)
    >>> weight.grad = torch.tensor([1.0, -2.0])
    >>> torch.optim.Adamax([weight], lr=0.1).step()
    >>> weight
    tensor([0.9000, 1.1000])
    """

    update = FusedUpdate(_rule)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        check_adam_options(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        return "exp_avg", "exp_inf"

    def _next(self, group, state, param, step):
        (beta1, beta2), decay = group["betas"], group["weight_decay"]
        step_size = group["lr"] / (1 - beta1**step)
        return (group["maximize"], decay != 0), (decay, 1 - beta1, beta2, group["eps"], -step_size)
