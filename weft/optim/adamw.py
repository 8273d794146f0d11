"""AdamW is Adam whose weight decay is not a part of the gradient."""

from __future__ import annotations

from ..core.tensor import Tensor
from .adam import Adam
from .optimizer import ParamsT


class AdamW(Adam):
    """Is Adam with decoupled weight decay, because each step first shrinks the parameters by lr * weight_decay.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019.

    >>> import weft as torch
    >>> weight = torch.ones(2)
    >>> weight.grad = torch.zeros(2)
    >>> torch.optim.AdamW([weight], lr=0.1, weight_decay=0.5).step()
    >>> weight
    tensor([0.9500, 0.9500])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
