"""Programs as graphs: `torch.export`.

`export` runs a module on example inputs and writes down the functions that it calls, as an `ExportedProgram`.

>>> import weft as torch
>>> program = torch.export.export(torch.nn.ReLU(), (torch.tensor([-1.0, 2.0]),))
>>> program.module()(torch.tensor([3.0, -4.0]))
tensor([3., 0.])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..compat.missing import module_getattr
from ..nn import Module
from ._capture import capture
from .dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, dims
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, default_decompositions
from .graph_signature import ExportBackwardSignature, ExportGraphSignature

__all__ = [
    "AdditionalInputs",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "default_decompositions",
    "dims",
    "export",
]


def export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | list[Any] | None = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """The program of a module, traced with example inputs.

    Sizes of the inputs are constants of the program, but for those that `dynamic_shapes` names: for each argument, a Dim
    or a hint (`Dim.DYNAMIC`, `Dim.AUTO`) by dimension. What depends on the elements of a tensor cannot be exported.
    Raises: TypeError if `args` is no tuple; ValueError for a ScriptModule or what is no module.
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise TypeError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    return capture(mod, args, dict(kwargs or {}), dynamic_shapes)


__getattr__ = module_getattr(__name__)
