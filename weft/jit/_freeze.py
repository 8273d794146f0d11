"""`torch.jit.freeze` and `optimize_for_inference`: modules run unchanged, so these functions return their argument."""

from __future__ import annotations

from typing import Any

from ..nn.module import Module

__all__ = ["freeze", "optimize_for_inference"]


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Any:
    """The module, which must be in evaluation mode.

    PyTorch makes constants of its parameters; here they stay parameters.
    Raises: RuntimeError if the argument is not a module, or is a module in training mode.
    """
    _check_module(mod, "Freezing")
    if mod.training and not preserved_attrs:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before "
            "freezing."
        )
    return mod


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """The module.

    Raises: RuntimeError if the argument is not a module.
    """
    _check_module(mod, "optimize_for_inference")
    return mod


def run_frozen_optimizations(
    mod: Any, optimize_numerics: bool = True, preserved_methods: list[str] | None = None
) -> None:
    """Nothing: the module runs as it is."""


def _check_module(mod: Any, function: str) -> None:
    if not isinstance(mod, Module):
        raise RuntimeError(
            f"{function} expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your "
            "'nn.Module'."
        )
