"""Calls modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.assembly.joining import stack
from .replaced import _functional_call


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with these tensors in place of its parameters and buffers.

    For missing names the module's own tensors are used. Several dicts must not share names.

    Raises: ValueError for a name in two dicts; RuntimeError, if `strict`, for names that are missing or unknown.
    """
    if isinstance(parameter_and_buffer_dicts, Sequence):
        found: Any = {}
        for each in parameter_and_buffer_dicts:
            twice = found.keys() & each.keys()
            if twice:
                raise ValueError(
                    f"{sorted(twice)} appeared in multiple dictionaries; behavior of functional call is ambiguous"
                )
            found.update(each)
    elif isinstance(parameter_and_buffer_dicts, Mapping):
        found = parameter_and_buffer_dicts  # it gets the tensors that the module sets
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, "
            f"but got {type(parameter_and_buffer_dicts)}"
        )
    return _functional_call(module, found, args, kwargs, tie_weights=tie_weights, strict=strict)


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Remove the running statistics of all batch norms of a module, because `vmap` cannot update them. Returns the module."""
    for module in root.modules():
        if hasattr(module, "track_running_stats") and "BatchNorm" in type(module).__name__:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(parameters, buffers) of modules of one class, stacked by name, for `vmap` of `functional_call`.

    Raises: RuntimeError for no models, models of several classes, or some in training mode and others not.
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({each.training for each in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(each) for each in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return (
        {
            name: _stack([dict(m.named_parameters())[name] for m in models])
            for name, _ in models[0].named_parameters()
        },
        {
            name: _stack([dict(m.named_buffers())[name] for m in models])
            for name, _ in models[0].named_buffers()
        },
    )


def _stack(tensors: Sequence[Tensor]) -> Tensor:
    stacked = stack(tuple(each.detach() for each in tensors))
    return stacked.requires_grad_(tensors[0].requires_grad)
