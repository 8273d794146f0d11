"""Optimizers that update a parameter as soon as a backward pass has its gradient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...core.tensor import Tensor
from ...core.weak import WeakTensorKeyDictionary
from ...optim import Optimizer

# The hooks of parameters, which DistributedDataParallel removes because it averages gradients before the update.
param_to_optim_hook_handle_map: Any = WeakTensorKeyDictionary()


def _apply_optimizer_in_backward(
    optimizer_class: type[Optimizer],
    params: Iterable[Tensor],
    optimizer_kwargs: dict[str, Any],
    register_hook: bool = True,
) -> None:
    """Let an optimizer of its own update each parameter within backward passes, after which its gradient is None.

    Args:
        optimizer_class, optimizer_kwargs: the optimizer and its settings.
        params: the parameters.
        register_hook: whether a hook updates them; else code such as a hook of DistributedDataParallel does.

    >>> import weft as torch
    >>> x = torch.nn.Parameter(torch.ones(2))
    >>> torch.distributed.optim._apply_optimizer_in_backward(torch.optim.SGD, [x], {"lr": 0.5})
    >>> x.sum().backward()
    >>> x.data, x.grad
    (tensor([0.5000, 0.5000]), None)
    """
    for param in params:
        known: Any = param.__dict__
        known.setdefault("_in_backward_optimizers", []).append(optimizer_class([param], **optimizer_kwargs))
        known.setdefault("_optimizer_classes", []).append(optimizer_class)
        known.setdefault("_optimizer_kwargs", []).append(optimizer_kwargs)
        if register_hook:
            handle = param.register_post_accumulate_grad_hook(_update)
            param_to_optim_hook_handle_map.setdefault(param, []).append(handle)


def in_backward_optimizers(param: Any) -> list[Optimizer]:
    """The optimizers that update a parameter within backward passes."""
    return param.__dict__.get("_in_backward_optimizers", [])


def _update(param: Tensor) -> None:
    for optimizer in in_backward_optimizers(param):
        optimizer.step()
    param.grad = None


def _get_in_backward_optimizers(module: Any) -> list[Optimizer]:
    """Return the optimizers that update the parameters of a module within backward passes, for checkpoints."""
    return [each for param in module.parameters() for each in in_backward_optimizers(param)]
