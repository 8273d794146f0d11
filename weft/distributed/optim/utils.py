"""`torch.distributed.optim.utils`: the functional optimizer of each optimizer."""

from __future__ import annotations

from typing import Any

from ...optim import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, RMSprop, Rprop
from . import _functional

functional_optim_map: dict[Any, Any] = {
    Adagrad: _functional._FunctionalAdagrad,
    Adam: _functional._FunctionalAdam,
    AdamW: _functional._FunctionalAdamW,
    SGD: _functional._FunctionalSGD,
    Adadelta: _functional._FunctionalAdadelta,
    RMSprop: _functional._FunctionalRMSprop,
    Rprop: _functional._FunctionalRprop,
    Adamax: _functional._FunctionalAdamax,
}


def register_functional_optim(key: Any, optim: Any) -> None:
    """Let `optim` be the functional optimizer of `key`, unless that has one."""
    functional_optim_map.setdefault(key, optim)


def as_functional_optim(optim_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a functional optimizer without parameters, for `step_param`.

    Args:
        optim_cls: the class of the optimizer.
        args, kwargs: its settings, in the order of PyTorch's functional optimizers.

    Raises: ValueError for a class without functional optimizer.
    """
    if optim_cls not in functional_optim_map:
        raise ValueError(f"Optimizer {optim_cls} does not have a functional counterpart!")
    return functional_optim_map[optim_cls]([], *args, **kwargs, _allow_empty_param_list=True)
