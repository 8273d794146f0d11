"""Muon makes steps whose matrices have singular values near 1."""

from __future__ import annotations

import math
from typing import Any

from ..core.tensor import Tensor
from ..ops.creation.creation import zeros_like
from ..ops.linalg.matmul import addmm
from .optimizer import ParamsT, check, check_lr
from .per_parameter import PerParameter


class Muon(PerParameter):
    """Makes the momentum of a matrix nearly orthogonal before it adds it. Muon is for the matrices of hidden layers.

    `ns_coefficients` and `ns_steps` belong to the Newton-Schulz iteration, which runs in bfloat16. `adjust_lr_fn` is
    "original" (lr * sqrt(max(1, rows / columns))) or "match_rms_adamw" (lr * 0.2 * sqrt(max(rows, columns))).
    Raises: ValueError for parameters that are not matrices, and for options outside their range.
    Source: Jordan et al., Muon: An Optimizer for Hidden Layers in Neural Networks, 2024; Liu et al., Muon is Scalable
    for LLM Training, 2025.

    >>> import weft as torch
    >>> weight = torch.zeros(2, 2)
    >>> weight.grad = torch.eye(2)
    >>> torch.optim.Muon([weight], lr=0.1).step()
    >>> weight.diagonal() < 0
    tensor([True, True])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        check(momentum, "momentum should be >= 0 but is: {}")
        check(weight_decay, "weight decay should be >= 0 but is: {}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                    )

    def _update(self, param: Tensor, group: dict[str, Any]) -> None:
        if param.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        grad: Any = param.grad  # `step` leaves parameters without gradients out
        state = self.state[param]
        if not state:
            state["momentum_buffer"] = zeros_like(grad)
        buffer = state["momentum_buffer"].lerp_(grad, 1 - group["momentum"])
        update = grad.lerp(buffer, group["momentum"]) if group["nesterov"] else buffer
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        lr = float(group["lr"])
        param.mul_(1 - lr * group["weight_decay"])
        param.add_(update, alpha=-lr * _lr_factor(group["adjust_lr_fn"], *param.shape))


def _orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Return an approximation in bfloat16 of the nearest matrix with orthonormal rows (or columns).

    Each step applies the polynomial a x + b x**3 + c x**5 to all singular values, which brings them near 1.
    """
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = matrix.bfloat16()
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.T
    # Scale in place, even if `update` is the momentum itself (bfloat16 without nesterov), because PyTorch does.
    x.div_(x.norm().clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.T
        x = addmm(x, addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _lr_factor(kind: str | None, rows: int, columns: int) -> float:
    if kind == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))
