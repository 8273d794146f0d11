"""Adam scales each step by running moments of the gradient."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..families.update import FusedUpdate
from .arithmetic import addcdiv, addcmul, decayed, lerp, maximum, sqrt
from .elementwise import Elementwise, decay_kind
from .optimizer import ParamsT, check_adam_options, check_fused


def _rule(options, grad, param, mean, square, *rest):
    maximize, decay, amsgrad = options
    *largest, weight_decay, kept, weight1, beta2, weight2, step_size, correction, eps = rest
    grad, param = decayed(grad, param, maximize, decay, weight_decay, kept)
    mean = lerp(mean, grad, weight1)
    square = addcmul(square * beta2, grad, grad, weight2)
    if amsgrad:
        largest = [maximum(largest[0], square)]
    root = sqrt(largest[0] if amsgrad else square) / correction + eps
    return addcdiv(param, mean, root, step_size), mean, square, *largest


class Adam(Elementwise):
    """Steps by mean / sqrt(square), the running means of the gradient and its square without their bias to 0.

    `amsgrad` divides by the largest square so far. `weight_decay` is added to the gradient, or shrinks the parameters
    directly if `decoupled_weight_decay`.
    Raises: ValueError for options outside their range.
    Source: Kingma and Ba, Adam, 2015; Reddi et al., On the Convergence of Adam and Beyond, 2018.

    >>> import weft as torch
    >>> weight = torch.ones(2)
    >>> weight.grad = torch.tensor([1.0, 20.0])
    >>> torch.optim.Adam([weight], lr=0.1).step()
    >>> weight
    tensor([0.9000, 0.9000])
    """

    update = FusedUpdate(_rule)
    _legacy_options: dict[str, Any] = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_adam_options(lr, betas, eps, weight_decay)
        _check_tensor_betas(betas, foreach and not capturable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(defaults)

    def _step_sparse(self, param, grad, group):
        raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")

    def _slots(self, group):
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")

    def _next(self, group, state, param, step):
        (beta1, beta2), lr, decay = group["betas"], group["lr"], group["weight_decay"]
        if group["differentiable"]:
            scales = _recorded_scales(state["step"].clone(), lr, beta1, beta2, group["eps"])
        else:
            scales = -(lr / (1 - beta1**step)), (1 - beta2**step) ** 0.5, group["eps"]
        numbers = (decay, 1 - lr * decay, 1 - beta1, beta2, 1 - beta2, *scales)
        return (group["maximize"], decay_kind(group), group["amsgrad"]), numbers


def _recorded_scales(step: Tensor, lr: Any, beta1: Any, beta2: Any, eps: float) -> tuple[Any, Any, Any]:
    """Return the step size, bias correction and eps of a differentiable step as 0-dim tensors in the dtype of `step`.

    The step size is a part of the divisor here, because PyTorch rounds their product to float32.
    """
    negative = -(lr / (1 - beta1**step))
    return 1, (1 - beta2**step).sqrt() * negative, eps / negative


def _check_tensor_betas(betas: Any, foreach: Any) -> None:
    tensors = [isinstance(beta, Tensor) for beta in betas]
    if any(tensors) and not all(tensors):
        raise ValueError("betas must be either both floats or both Tensors")
    for index, beta in enumerate(betas):
        if isinstance(beta, Tensor):
            if foreach:
                raise ValueError(
                    f"betas[{index}] as a Tensor is not supported for capturable=False and foreach=True"
                )
            if beta.numel() != 1:
                raise ValueError(f"Tensor betas[{index}] must be 1-element")
