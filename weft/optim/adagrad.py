"""Adagrad divides each step by the root of the sum of all squared gradients."""

from __future__ import annotations

from ..core.tensor import Tensor
from ..families.update import FusedUpdate
from ..layouts.parts import with_values
from ..ops.creation.creation import full_like
from .arithmetic import addcdiv, addcmul, directed, sqrt
from .elementwise import Elementwise, count
from .optimizer import ParamsT, check, check_fused, check_lr, scalar_tensor


def _rule(options, grad, param, total, weight_decay, step_size, eps):
    maximize, decays = options
    grad = directed(grad, param, maximize, weight_decay if decays else None)
    total = addcmul(total, grad, grad, 1.0)
    return addcdiv(param, grad, sqrt(total) + eps, step_size), total


class Adagrad(Elementwise):
    """Computes sum += grad**2 and param -= lr / (1 + (step - 1) * lr_decay) * grad / (sqrt(sum) + eps).

    Raises: ValueError for negative options.
    Source: Duchi, Hazan and Singer, Adaptive Subgradient Methods, 2011.

    >>> import weft as torch
    >>> weight = torch.ones(2)
    >>> weight.grad = torch.tensor([1.0, -2.0])
    >>> torch.optim.Adagrad([weight], lr=0.1).step()
    >>> weight
    tensor([0.9000, 1.1000])
    """

    update = FusedUpdate(_rule)
    _legacy_options = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        check_lr(lr)
        check(lr_decay, "Invalid lr_decay value: {}")
        check(weight_decay, "Invalid weight_decay value: {}")
        check(initial_accumulator_value, "Invalid initial_accumulator_value value: {}")
        check(eps, "Invalid epsilon value: {}")
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(defaults)
        for group in self.param_groups:  # PyTorch creates the state in the constructor
            for param in group["params"]:
                self._start(self.state[param], param, group)

    def share_memory(self) -> None:
        """Move the state to memory that other processes share."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _step_sparse(self, param, grad, group):
        """Update the elements that the gradient names."""
        if group["fused"]:
            raise RuntimeError("`fused` does not support sparse grad or complex param")
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        state = self.state[param]
        if not state:
            self._start(state, param, group)
        _, (_, step_size, eps) = self._next(group, state, param, count(state))
        grad = (-grad if group["maximize"] else grad).coalesce()
        values, total = grad._values(), state["sum"]
        total.add_(with_values(grad, values * values))
        roots = total.sparse_mask(grad)._values().sqrt_().add_(eps)
        param.add_(with_values(grad, values / roots), alpha=step_size)

    def _slots(self, group):
        return ("sum",)

    def _start(self, state, param, group):
        value = group["initial_accumulator_value"]
        state["step"] = scalar_tensor(0.0)
        state["sum"] = full_like(param, complex(value, value) if param.is_complex() else value)

    def _next(self, group, state, param, step):
        decay = group["weight_decay"]
        step_size = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        return (group["maximize"], decay != 0), (decay, -step_size, group["eps"])
