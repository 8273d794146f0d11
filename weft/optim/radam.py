"""RAdam is Adam that does not use the second moment until it is reliable."""

from __future__ import annotations

from ..core.tensor import Tensor
from ..families.update import FusedUpdate
from .arithmetic import add_scaled, addcmul, decayed, lerp, reciprocal, sqrt
from .elementwise import Elementwise, decay_kind
from .optimizer import ParamsT, check_adam_options


def _rule(options, grad, param, mean, square, *numbers):
    maximize, decay, rectified = options
    weight_decay, kept, weight1, beta2, weight2, correction1, lr, eps, correction2, rectifier = numbers
    grad, param = decayed(grad, param, maximize, decay, weight_decay, kept)
    mean = lerp(mean, grad, weight1)
    square = addcmul(square * beta2, grad, grad, weight2)
    step = mean / correction1 * lr
    if rectified:
        step = step * (reciprocal(sqrt(square) + eps) * correction2) * rectifier
    return add_scaled(param, step, -1.0), mean, square


class RAdam(Elementwise):
    """Is Adam with a rectified step, which ignores the second moment at first and uses a part of it later.

    Raises: ValueError for options outside their range.
    Source: Liu et al., On the Variance of the Adaptive Learning Rate and Beyond, 2020.

    >>> import weft as torch
    >>> weight = torch.ones(2)
    >>> weight.grad = torch.tensor([1.0, -2.0])
    >>> torch.optim.RAdam([weight], lr=0.1).step()
    >>> weight
    tensor([0.9000, 1.2000])
    """

    update = FusedUpdate(_rule)
    _legacy_options = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        check_adam_options(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        return "exp_avg", "exp_avg_sq"

    def _next(self, group, state, param, step):
        (beta1, beta2), lr, decay = group["betas"], group["lr"], group["weight_decay"]
        correction2 = 1 - beta2**step
        # The length of the moving average: in the limit of many steps, and after the steps so far.
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * (beta2**step) / correction2
        rectifier = 1.0
        if length > 5.0:
            rectifier = (
                ((length - 4) * (length - 2) * longest) / ((longest - 4) * (longest - 2) * length)
            ) ** 0.5
        numbers = (
            decay,
            1 - lr * decay,
            1 - beta1,
            beta2,
            1 - beta2,
            1 - beta1**step,
            lr,
            group["eps"],
            correction2**0.5,
            rectifier,
        )
        return (group["maximize"], decay_kind(group), length > 5.0), numbers
