"""ASGD averages the parameters over the steps of stochastic gradient descent."""

from __future__ import annotations

from ..core.tensor import Tensor
from ..families.update import FusedUpdate
from .arithmetic import add_scaled, directed
from .elementwise import Elementwise
from .optimizer import ParamsT, check, check_lr, scalar_tensor


def _rule(options, grad, param, average, weight_decay, kept, step_size, share):
    maximize, decays, averages = options
    grad = directed(grad, param, maximize, weight_decay if decays else None)
    param = add_scaled(param * kept, grad, step_size)
    return param, average + (param - average) * share if averages else param


class ASGD(Elementwise):
    """Descends with decreasing steps, and stores the average of the parameters since step `t0` as the state "ax".

    The step is lr / (1 + lambd * lr * step)**alpha.
    Raises: ValueError for a negative learning rate or weight decay.
    Source: Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992.

    >>> import weft as torch
    >>> weight = torch.ones(2)
    >>> weight.grad = torch.tensor([1.0, -2.0])
    >>> torch.optim.ASGD([weight], lr=0.1).step()
    >>> weight
    tensor([0.9000, 1.2000])
    """

    update = FusedUpdate(_rule)
    _scalar_state = ("step", "eta", "mu")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        check_lr(lr)
        check(weight_decay, "Invalid weight_decay value: {}")
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        return ("ax",)

    def _start(self, state, param, group):
        state["step"] = None  # reserves the place of the key, because state dictionaries have PyTorch's order
        state["eta"] = scalar_tensor(float(group["lr"]))
        state["mu"] = scalar_tensor(1.0)
        super()._start(state, param, group)

    def _next(self, group, state, param, step):
        eta, share = state["eta"].item(), state["mu"].item()
        lr, lambd, decay = group["lr"], group["lambd"], group["weight_decay"]
        options = group["maximize"], decay != 0, share != 1
        numbers = decay, 1 - lambd * eta, -eta, share
        _store(state["eta"], lr / (1 + lambd * lr * step) ** group["alpha"])
        _store(state["mu"], 1 / max(1, step - group["t0"]))
        return options, numbers


def _store(target: Tensor, value: float | Tensor) -> None:
    """Write a number into the state, rounded to the default dtype even if loading has widened the state to float64."""
    target.copy_(value if isinstance(value, Tensor) else scalar_tensor(value))
