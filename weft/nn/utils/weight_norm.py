"""The older weight normalization, by a hook before each call; `parametrizations.weight_norm` is its successor."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from ...autograd.parameter import Parameter, is_lazy
from ...core.warn import user_level
from ..module import Module
from .parametrizations import norm_except

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


class WeightNorm:
    """The hook: computes the weight `name` from the parameters `name_g` (magnitude) and `name_v` (direction)."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        """Return the weight."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / norm_except(v, self.dim))

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Replace the weight of a module by two parameters, and have it computed before each call."""
        if any(
            isinstance(hook, WeightNorm) and hook.name == name for hook in module._forward_pre_hooks.values()
        ):
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying weight normalization"
            )
        hook = WeightNorm(name, dim)
        delattr(module, name)
        module.register_parameter(name + "_g", Parameter(norm_except(weight.detach(), hook.dim)))
        module.register_parameter(name + "_v", Parameter(weight.detach()))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module).detach()
        for name in (self.name, self.name + "_g", self.name + "_v"):
            delattr(module, name)
        setattr(module, self.name, Parameter(weight))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: int = 0) -> M:
    """Make a weight the product of the parameters `name_g` (magnitude) and `name_v` (direction), for slices of `dim`.

    Raises: RuntimeError if the weight has this already.
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=user_level(),
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undo `weight_norm`. Raises: ValueError if the weight does not have it."""
    for id, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[id]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
