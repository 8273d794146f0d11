"""Modules as functions and their parameters, as functorch had it before `torch.func.functional_call`."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from weft.core.tensor import Tensor
from weft.func import functional_call, stack_module_state
from weft.nn import Module

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "make_functional",
    "make_functional_with_buffers",
]  # fmt: skip


class FunctionalModule(Module):
    """A module that is called with its parameters: `function(params, *args)`."""

    def __init__(
        self, stateless_model: Module, param_names: tuple[str, ...], names_map: dict[str, list[str]]
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.names_map = names_map

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return functional_call(
            self.stateless_model, dict(zip(self.param_names, params, strict=True)), args, kwargs
        )


class FunctionalModuleWithBuffers(Module):
    """A module that is called with its parameters and buffers: `function(params, buffers, *args)`."""

    def __init__(
        self,
        stateless_model: Module,
        param_names: tuple[str, ...],
        buffer_names: tuple[str, ...],
        param_names_map: dict[str, list[str]],
        buffer_names_map: dict[str, list[str]],
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = param_names, buffer_names
        self.all_names_map = {**param_names_map, **buffer_names_map}

    def forward(  # type: ignore[override]
        self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any
    ) -> Any:
        state = dict(zip(self.param_names, params, strict=True))
        state.update(zip(self.buffer_names, buffers, strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """(function, parameters) of a copy of the model, which must not have buffers.

    >>> import weft as torch
    >>> function, params = make_functional(torch.nn.Linear(2, 1))
    >>> function([torch.ones_like(each) for each in params], torch.ones(2))
    tensor([3.])
    """
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    inner, params, _ = make_functional_with_buffers(model, disable_autograd_tracking)
    names_map = inner.all_names_map
    return FunctionalModule(inner.stateless_model, inner.param_names, names_map), params


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """(function, parameters, buffers) of a copy of the model."""
    model = copy.deepcopy(model)
    params, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    if disable_autograd_tracking:
        for each in params.values():
            each.requires_grad_(False)
    function = FunctionalModuleWithBuffers(
        copy.deepcopy(model),
        tuple(params),
        tuple(buffers),
        _shared_names(model, "named_parameters"),
        _shared_names(model, "named_buffers"),
    )
    return function, tuple(params.values()), tuple(buffers.values())


def _shared_names(model: Module, kind: str) -> dict[str, list[str]]:
    """The first name of each tensor -> all of its names."""
    names: dict[int, list[str]] = {}
    for name, tensor in getattr(model, kind)(remove_duplicate=False):
        names.setdefault(id(tensor), []).append(name)
    return {each[0]: each for each in names.values()}


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """(function, stacked parameters, stacked buffers) of models of one class, for `vmap` over the first dim.

    Raises: RuntimeError for no models, models of several classes, or some in training mode and others not.
    """
    params, buffers = stack_module_state(models)
    function, _, _ = make_functional_with_buffers(models[0])
    return function, tuple(params.values()), tuple(buffers.values())
