"""The older spectral normalization, by a hook before each call; `parametrizations.spectral_norm` is its successor."""

from __future__ import annotations

from typing import Any, TypeVar

import weft

from ...autograd.parameter import Parameter, is_lazy
from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from .parametrizations import as_matrix, default_dim, power_iterations

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]

M = TypeVar("M", bound=Module)


class SpectralNorm:
    """The hook: computes the weight `name` from the parameter `name_orig` and the buffers `name_u` and `name_v`."""

    _version = 1  # the version of the saved state

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """Return the weight, after power iterations if asked for."""
        weight, u, v = (getattr(module, self.name + suffix) for suffix in ("_orig", "_u", "_v"))
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            power_iterations(matrix.mH, v, u, self.n_power_iterations, self.eps)  # v first
        # Copies: the next call writes to the buffers, and backward needs the values of this one.
        u, v = u.clone(), v.clone()
        return weight / weft.dot(u, weft.mv(matrix, v))

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix whose rows are the slices of `dim`."""
        return as_matrix(weight, self.dim)

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
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


class SpectralNormStateDictHook:
    """Says in the metadata of a state_dict how the weight was saved."""

    def __init__(self, fn: SpectralNorm):
        self.fn = fn

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Completes a state_dict that was saved before PyTorch 1.0, which lacks `name_v`."""

    def __init__(self, fn: SpectralNorm):
        self.fn = fn

    def __call__(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        fn, key = self.fn, prefix + self.fn.name
        version = local_metadata.get("spectral_norm", {}).get(fn.name + ".version")
        kept = [key + suffix in state_dict for suffix in ("_orig", "_u")]
        if version is not None and version >= 1 or key + "_v" in state_dict or not all(kept):
            return
        with no_grad():
            matrix = as_matrix(state_dict[key + "_orig"], fn.dim)
            u = state_dict[key + "_u"]
            sigma = (
                (state_dict.pop(key) / state_dict[key + "_orig"]).mean().reciprocal()
                if key in state_dict
                else 1.0
            )
            v = (matrix.t() @ matrix).pinverse() @ (matrix.t() @ u)
            state_dict[key + "_v"] = v * (sigma / (u @ (matrix @ v)))


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
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
        if isinstance(hook, SpectralNormStateDictHook) and hook.fn.name == name:
            del module._state_dict_hooks[id]
            break
    return module
