"""SGD is stochastic gradient descent."""

from __future__ import annotations

from ..core.tensor import Tensor
from ..families.update import FusedUpdate
from ..ops.creation.creation import empty_like
from .arithmetic import add_scaled, directed
from .elementwise import Elementwise
from .optimizer import ParamsT, check, check_fused, check_lr


def _rule(options, grad, param, *rest):
    maximize, decays, momentum, nesterov = options
    *buffer, lr, weight_decay, factor, share = rest
    grad = directed(grad, param, maximize, weight_decay if decays else None)
    if momentum == "none":
        return (add_scaled(param, grad, lr),)
    average = grad.detach() if momentum == "first" else add_scaled(buffer[0] * factor, grad, share)
    return add_scaled(param, add_scaled(grad, average, factor) if nesterov else average, lr), average


class SGD(Elementwise):
    """Descends along the gradient, with momentum if that is not 0.

    It computes buffer = momentum * buffer + (1 - dampening) * grad (at first grad) and param -= lr * buffer; with
    `nesterov`, it computes param -= lr * (grad + momentum * buffer).
    Raises: ValueError for negative options, and for nesterov without momentum or with dampening.

    >>> import weft as torch
    >>> weight = torch.ones(2)
    >>> weight.grad = torch.tensor([1.0, 2.0])
    >>> torch.optim.SGD([weight], lr=0.1).step()
    >>> weight
    tensor([0.9000, 0.8000])
    """

    update = FusedUpdate(_rule)
    _legacy_options = {
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        check_lr(lr)
        check(momentum, "Invalid momentum value: {}")
        check(weight_decay, "Invalid weight_decay value: {}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(defaults)

    def _step_sparse(self, param, grad, group):
        if group["fused"]:
            raise RuntimeError("`_fused_sgd` does not support sparse gradients")
        if group["weight_decay"] != 0:
            raise RuntimeError(
                "add(sparse, dense) is not supported: weight decay would make the sparse gradient dense, so it must be 0"
            )
        grad = -grad if group["maximize"] else grad
        if group["momentum"] != 0:
            state = self.state[param]
            if state.get("momentum_buffer") is None:
                state["momentum_buffer"] = grad.detach().clone()
            else:
                state["momentum_buffer"].mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
            average = state["momentum_buffer"]
            grad = grad.add(average, alpha=group["momentum"]) if group["nesterov"] else average
        param.add_(grad, alpha=-group["lr"])

    def _slots(self, group):
        return ("momentum_buffer",) if group["momentum"] != 0 else ()

    def _start(self, state, param, group):
        pass  # the first step creates the buffer

    def _next(self, group, state, param, step):
        momentum, decay = group["momentum"], group["weight_decay"]
        kind = "none"
        if momentum != 0:
            kind = "later"
            if state.get("momentum_buffer") is None:
                kind = "first"
                state["momentum_buffer"] = empty_like(param.grad)
        options = group["maximize"], decay != 0, kind, group["nesterov"]
        return options, (-group["lr"], decay, momentum, 1 - group["dampening"])
