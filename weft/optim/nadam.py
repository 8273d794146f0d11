"""NAdam is Adam with Nesterov's momentum."""

from __future__ import annotations

from ..core.tensor import Tensor
from ..families.update import FusedUpdate
from .arithmetic import addcdiv, addcmul, decayed, lerp, sqrt
from .elementwise import Elementwise, decay_kind
from .optimizer import ParamsT, check, check_adam_options, scalar_tensor


def _rule(options, grad, param, mean, square, *numbers):
    maximize, decay = options
    weight_decay, kept, weight1, beta2, weight2, correction, eps, of_grad, of_mean = numbers
    grad, param = decayed(grad, param, maximize, decay, weight_decay, kept)
    mean = lerp(mean, grad, weight1)
    square = addcmul(square * beta2, grad, grad, weight2)
    root = sqrt(square / correction) + eps
    return addcdiv(addcdiv(param, grad, root, of_grad), mean, root, of_mean), mean, square


class NAdam(Elementwise):
    """Is Adam with a look ahead, because a step mixes the gradient and its running mean by a growing momentum.

    Raises: ValueError for options outside their range.
    Source: Dozat, Incorporating Nesterov Momentum into Adam, 2016.

    >>> import weft as torch
    >>> weight = torch.ones(2)
    >>> weight.grad = torch.tensor([1.0, -2.0])
    >>> torch.optim.NAdam([weight], lr=0.1).step()
    >>> weight
    tensor([0.8944, 1.1056])
    """

    update = FusedUpdate(_rule)
    _legacy_options = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }
    _scalar_state = ("step", "mu_product")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        check_adam_options(lr, betas, eps, weight_decay)
        check(momentum_decay, "Invalid momentum_decay value: {}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        return "exp_avg", "exp_avg_sq"

    def _start(self, state, param, group):
        state["step"] = None  # reserves the place of the key, because state dictionaries have PyTorch's order
        state["mu_product"] = scalar_tensor(1.0)
        super()._start(state, param, group)

    def _next(self, group, state, param, step):
        (beta1, beta2), lr, decay = group["betas"], group["lr"], group["weight_decay"]
        momentum_decay = group["momentum_decay"]
        momentum = beta1 * (1.0 - 0.5 * (0.96 ** (step * momentum_decay)))
        later = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * momentum_decay)))
        product = state["mu_product"]
        product *= momentum
        # A differentiable step computes with `product` as a tensor, because PyTorch rounds its factors to float32.
        product = product.clone() if group["differentiable"] else product.item()
        numbers = (
            decay,
            1 - lr * decay,
            1 - beta1,
            beta2,
            1 - beta2,
            1 - beta2**step,
            group["eps"],
            -lr * (1.0 - momentum) / (1.0 - product),
            (-lr * later) / (1.0 - product * later),
        )
        return (group["maximize"], decay_kind(group)), numbers
