"""Rprop chooses the size of a step by the signs of the gradient only."""

from __future__ import annotations

from ..core.tensor import Tensor
from ..families.update import FusedUpdate
from ..ops.creation.creation import full_like
from .arithmetic import absolute, addcmul, clamp, sign, where
from .elementwise import Elementwise
from .optimizer import ParamsT, check_lr


def _rule(options, grad, param, previous, size, shrink, grow, smallest, largest):
    (maximize,) = options
    grad = -grad if maximize else grad
    agreement = grad * previous
    unchanged = absolute(sign(agreement)) + 1.0  # 1 where the product is 0, in the dtype of the product
    factor = where(agreement > 0, grow, where(agreement < 0, shrink, unchanged))
    size = clamp(size * factor, smallest, largest)
    grad = where(agreement < 0, 0.0, grad)
    return addcmul(param, sign(grad), size, -1.0), grad, size


class Rprop(Elementwise):
    """Each element has its own step size, which grows while the gradient keeps its sign, and shrinks when it turns.

    `etas` are the factors of shrinking and growing, `step_sizes` the smallest and largest size; `lr` is the first one.
    After a turn the element waits for a step.
    Raises: ValueError for options outside their range.
    Source: Riedmiller and Braun, A Direct Adaptive Method for Faster Backpropagation Learning, 1993.

    >>> import weft as torch
    >>> weight = torch.ones(2)
    >>> weight.grad = torch.tensor([1.0, -2.0])
    >>> torch.optim.Rprop([weight], lr=0.1).step()
    >>> weight
    tensor([0.9000, 1.1000])
    """

    update = FusedUpdate(_rule)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        return "prev", "step_size"

    def _start(self, state, param, group):
        super()._start(state, param, group)
        lr = float(group["lr"])
        state["step_size"] = full_like(param, complex(lr, lr) if param.is_complex() else lr)

    def _next(self, group, state, param, step):
        return (group["maximize"],), (*group["etas"], *group["step_sizes"])
