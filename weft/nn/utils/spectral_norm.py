"""The older spectral normalization, by a hook before each call; `parametrizations.spectral_norm` is its successor."""

from __future__ import annotations

from typing import Any, TypeVar

import weft

from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from ..parameter import Parameter, is_lazy
from .parametrizations import as_matrix, default_dim, power_iterations

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]

M = TypeVar("M", bound=Module)


class SpectralNorm:
    """The hook: computes the weight `name` from the parameter `name_orig` and the buffers `name_u` and `name_v`."""

    _version = 1  # of what it saves

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight, after power iterations if asked for."""
        weight, u, v = (getattr(module, self.name + suffix) for suffix in ("_orig", "_u", "_v"))
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            power_iterations(matrix.mH, v, u, self.n_power_iterations, self.eps)  # v first
        # Copies: the next call writes to the buffers, and backward needs the values of this one.
        u, v = u.clone(), v.clone()
        return weight / weft.dot(u, weft.mv(matrix, v))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Replace the weight of a module by a parameter and two vectors, and have it computed before each call."""
        if any(
            isinstance(hook, SpectralNorm) and hook.name == name
            for hook in module._forward_pre_hooks.values()
        ):
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying spectral normalization"
            )
        with no_grad():
            height, width = as_matrix(weight, dim).shape
            u = F.normalize(weight.new_empty(height).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(width).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)  # an attribute, which the hook replaces
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(hook.mark_version)
        return hook

    def mark_version(
        self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]
    ) -> None:
        """Say in the metadata of a state_dict how this was saved."""
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self._version

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Divide a weight by its largest singular value before each call; the parameter is `name_orig`.

    The weight is seen as a matrix whose rows are the slices of `dim`: 0, or 1 for transposed convolutions.
    Raises: ValueError if `n_power_iterations` is not positive, RuntimeError if the weight has this already.
    """
    SpectralNorm.apply(module, name, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Undo `spectral_norm`. Raises: ValueError if the weight does not have it."""
    for id, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[id]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for id, hook in module._state_dict_hooks.items():
        if getattr(hook, "__self__", None).__class__ is SpectralNorm and hook.__self__.name == name:
            del module._state_dict_hooks[id]
            break
    return module
