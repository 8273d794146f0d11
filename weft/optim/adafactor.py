"""Adafactor stores the second moment of Adam as one number for each row and one for each column."""

from __future__ import annotations

from typing import Any

from ..core.limits import finfo
from ..core.tensor import Tensor
from ..ops.creation.creation import zeros_like
from .optimizer import ParamsT, check, check_lr, scalar_tensor
from .per_parameter import PerParameter


class Adafactor(PerParameter):
    """Steps divided by the root of a running mean square, which for matrices is the product of a column and a row.

    Steps are as large as `lr` (later 1 / sqrt(step)) of the parameter's own root mean square, at least eps[1] of it;
    eps[0] (by default the dtype's) keeps the divisor from 0; a step whose root mean square is above `d` is shortened.
    Raises: ValueError for options outside their range, RuntimeError for complex parameters.
    Source: Shazeer and Stern, Adafactor: Adaptive Learning Rates with Sublinear Memory Cost, 2018.

    >>> import weft as torch
    >>> weight = torch.ones(2)
    >>> weight.grad = torch.tensor([1.0, -2.0])
    >>> torch.optim.Adafactor([weight], lr=0.1).step()
    >>> weight
    tensor([0.9000, 1.1000])
    """

    _legacy_options = {"foreach": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ):
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None:
            check(eps[0], "epsilon1 should be >= 0 but is: {}")
        check(eps[1], "epsilon2 should be >= 0 but is: {}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        check(weight_decay, "weight_decay should be >= 0 but is: {}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _update(self, param: Tensor, group: dict[str, Any]) -> None:
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        grad: Any = param.grad  # `step` leaves parameters without gradients out
        grad = -grad if group["maximize"] else grad
        state = self.state[param]
        if not state:
            _start(state, grad)
        state["step"] += 1
        step, lr = state["step"].item(), float(group["lr"])
        smallest, relative = group["eps"]
        smallest = finfo(param.dtype).eps if smallest is None else smallest
        rate = max(relative, _root_mean_square(param)) * min(lr, 1 / step**0.5)
        if group["weight_decay"] != 0:
            param.mul_(1 - lr * group["weight_decay"])
        square = _mean_square(state, grad, step ** group["beta2_decay"], smallest)
        update = square.clamp(min=smallest * smallest).rsqrt().mul_(grad)
        param.add_(update, alpha=-rate / max(1.0, _root_mean_square(update) / group["d"]))


def _start(state: dict[str, Any], grad: Tensor) -> None:
    state["step"] = scalar_tensor(0.0)
    if grad.dim() > 1:
        *batch, rows, columns = grad.shape
        state["row_var"] = grad.new_zeros((*batch, rows, 1))
        state["col_var"] = grad.new_zeros((*batch, 1, columns))
    else:
        state["variance"] = zeros_like(grad)


def _mean_square(state: dict[str, Any], grad: Tensor, weight: float, smallest: float) -> Tensor:
    """Add grad**2 to its running mean and return the mean; for a matrix the mean is the product of its two factors."""
    if grad.dim() <= 1:
        return state["variance"].lerp_(grad * grad, weight)
    rows, columns = state["row_var"], state["col_var"]
    rows.lerp_(grad.norm(dim=-1, keepdim=True).square_().div_(grad.shape[-1]), weight)
    columns.lerp_(grad.norm(dim=-2, keepdim=True).square_().div_(grad.shape[-2]), weight)
    return (rows @ columns).div_(rows.mean(dim=-2, keepdim=True).clamp_(min=smallest))


def _root_mean_square(values: Tensor) -> float:
    return values.norm(2).item() / values.numel() ** 0.5
