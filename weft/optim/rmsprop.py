"""RMSprop divides the gradient by its running root mean square."""

from __future__ import annotations

from ..core.tensor import Tensor
from ..families.update import FusedUpdate
from .arithmetic import add_scaled, addcdiv, addcmul, directed, lerp, sqrt
from .elementwise import Elementwise
from .optimizer import ParamsT, check, check_lr


def _rule(options, grad, param, square, *rest):
    maximize, decays, has_momentum, centered = options
    *others, weight_decay, alpha, share, eps, lr, momentum = rest
    grad = directed(grad, param, maximize, weight_decay if decays else None)
    square = addcmul(square * alpha, grad, grad, share)
    variance = square
    if centered:
        others[-1] = mean = lerp(others[-1], grad, share)
        variance = addcmul(square, mean, mean, -1.0)
    root = sqrt(variance) + eps
    if has_momentum:
        others[0] = buffer = addcdiv(others[0] * momentum, grad, root, 1.0)
        return add_scaled(param, buffer, lr), square, *others
    return addcdiv(param, grad, root, lr), square, *others


class RMSprop(Elementwise):
    """Divides the gradient by its running root mean square; `centered` subtracts the square of the mean first.

    Raises: ValueError for negative options.
    Source: Hinton's lecture 6 of Neural Networks for Machine Learning; Graves, 2013, for the centered form.

    >>> import weft as torch
    >>> weight = torch.ones(2)
    >>> weight.grad = torch.tensor([1.0, -2.0])
    >>> torch.optim.RMSprop([weight], lr=0.1).step()
    >>> weight
    tensor([5.9605e-08, 2.0000e+00])
    """

    update = FusedUpdate(_rule)
    _legacy_options = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_lr(lr)
        check(eps, "Invalid epsilon value: {}")
        check(momentum, "Invalid momentum value: {}")
        check(weight_decay, "Invalid weight_decay value: {}")
        check(alpha, "Invalid alpha value: {}")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        momentum = ("momentum_buffer",) if group["momentum"] > 0 else ()
        return ("square_avg", *momentum, *(("grad_avg",) if group["centered"] else ()))

    def _next(self, group, state, param, step):
        alpha, decay, momentum = group["alpha"], group["weight_decay"], group["momentum"]
        numbers = decay, alpha, 1 - alpha, group["eps"], -group["lr"], momentum
        return (group["maximize"], decay != 0, momentum > 0, group["centered"]), numbers
