"""Adadelta scales each step to the size of recent steps, not to the size of the gradient."""

from __future__ import annotations

from ..core.tensor import Tensor
from ..families.update import FusedUpdate
from .arithmetic import add_scaled, addcmul, directed, sqrt
from .elementwise import Elementwise
from .optimizer import ParamsT, check, check_lr


def _rule(options, grad, param, square, steps, weight_decay, rho, share, eps, lr):
    maximize, decays = options
    grad = directed(grad, param, maximize, weight_decay if decays else None)
    square = addcmul(square * rho, grad, grad, share)
    delta = sqrt(steps + eps) / sqrt(square + eps) * grad
    return add_scaled(param, delta, lr), square, addcmul(steps * rho, delta, delta, share)


class Adadelta(Elementwise):
    """Divides the gradient by its running root mean square, and multiplies it by that of the steps themselves.

    Raises: ValueError for options outside their range.
    Source: Zeiler, ADADELTA: An Adaptive Learning Rate Method, 2012.

    >>> import weft as torch
    >>> weight = torch.ones(2)
    >>> weight.grad = torch.tensor([1.0, -2.0])
    >>> torch.optim.Adadelta([weight], lr=1.0).step()
    >>> weight
    tensor([0.9968, 1.0032])
    """

    update = FusedUpdate(_rule)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check(eps, "Invalid epsilon value: {}")
        check(weight_decay, "Invalid weight_decay value: {}")
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        return "square_avg", "acc_delta"

    def _next(self, group, state, param, step):
        rho, decay = group["rho"], group["weight_decay"]
        return (group["maximize"], decay != 0), (decay, rho, 1 - rho, group["eps"], -group["lr"])
