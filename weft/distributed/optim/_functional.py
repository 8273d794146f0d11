"""Optimizers that are given gradients and do not read those of their parameters, so that they can update single parameters within a backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import optim
from ...core.tensor import Tensor
from ...optim import Optimizer

# Arguments of PyTorch's classes that choose an implementation, of which weft has one.
_WITHOUT_EFFECT = {"foreach": False, "fused": False}


class FunctionalOptimizer:
    """Updates parameters as `_optimizer_class` does, with settings that are the same for all of them.

    Args:
        params: the parameters that `step` updates.
        args, kwargs: the settings of the optimizer. `defaults` has them, where programs may change them.

    Raises: ValueError without parameters, TypeError for settings that the optimizer does not have.

    >>> import weft as torch
    >>> x = torch.nn.Parameter(torch.ones(2))
    >>> optimizer = torch.distributed.optim.as_functional_optim(torch.optim.SGD, lr=0.5)
    >>> optimizer.step_param(x, torch.ones(2))
    >>> x.data
    tensor([0.5000, 0.5000])
    """

    _optimizer_class: type[Optimizer]
    _arguments: dict[str, Any]  # the names of settings in their order, and their defaults

    def __init__(
        self, params: Sequence[Tensor], *args: Any, _allow_empty_param_list: bool = False, **kwargs: Any
    ) -> None:
        if not params and not _allow_empty_param_list:
            raise ValueError("optimizer got an empty parameter list")
        given = {**dict(zip(self._arguments, args)), **kwargs}
        unknown = [name for name in given if name not in {**self._arguments, **_WITHOUT_EFFECT}]
        if unknown or len(args) > len(self._arguments):
            raise TypeError(
                f"{type(self).__name__}: the settings are {', '.join(self._arguments)}, but got {', '.join(unknown) or args}"
            )
        self.defaults = {name: given.get(name, default) for name, default in self._arguments.items()}
        self.param_group = {"params": list(params)}
        self._optimizers: dict[Tensor, Optimizer] = {}

    @property
    def state(self) -> dict[Tensor, dict[str, Any]]:
        """Return the state of each parameter that was updated."""
        return {param: each.state[param] for param, each in self._optimizers.items()}

    def step_param(self, param: Tensor, grad: Tensor | None) -> None:
        """Update one parameter by a gradient; None changes nothing."""
        if grad is None:
            return
        if param not in self._optimizers:
            self._optimizers[param] = self._optimizer_class([param], **self.defaults)
        optimizer = self._optimizers[param]
        optimizer.param_groups[0].update(self.defaults)
        own, param.grad = param.grad, grad
        try:
            optimizer.step()
        finally:
            param.grad = own

    def step(self, gradients: Sequence[Tensor | None]) -> None:
        """Update all parameters, each by its gradient. Raises: ValueError unless there are as many gradients as parameters."""
        params = self.param_group["params"]
        if len(params) != len(gradients):
            raise ValueError(
                "the gradients passed in does not equal to the size of the parameters!"
                f"Params length: {len(params)}. Gradients length: {len(gradients)}"
            )
        for param, gradient in zip(params, gradients):
            self.step_param(param, gradient)


def _functional(optimizer_class: type[Optimizer], **arguments: Any) -> Any:
    name = f"_Functional{optimizer_class.__name__}"
    members = {"__module__": __name__, "_optimizer_class": optimizer_class, "_arguments": arguments}
    return type(name, (FunctionalOptimizer,), members)


_FunctionalAdadelta = _functional(optim.Adadelta, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0, maximize=False)
_FunctionalAdagrad = _functional(
    optim.Adagrad,
    lr=1e-2,
    lr_decay=0.0,
    weight_decay=0.0,
    initial_accumulator_value=0.0,
    eps=1e-10,
    maximize=False,
)
_ADAM = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8}
_FunctionalAdam = _functional(optim.Adam, **_ADAM, weight_decay=0.0, amsgrad=False, maximize=False)
_FunctionalAdamax = _functional(optim.Adamax, **_ADAM, weight_decay=0.0, maximize=False)
_FunctionalAdamW = _functional(optim.AdamW, **_ADAM, weight_decay=1e-2, amsgrad=False, maximize=False)
_FunctionalRMSprop = _functional(
    optim.RMSprop,
    lr=1e-2,
    alpha=0.99,
    eps=1e-8,
    weight_decay=0.0,
    momentum=0.0,
    centered=False,
    maximize=False,
)
_FunctionalRprop = _functional(optim.Rprop, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), maximize=False)
_FunctionalSGD = _functional(
    optim.SGD, lr=1e-2, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False
)
