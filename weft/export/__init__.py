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
from ..core.pytree import register_dataclass as _register_dataclass
from ..nn import Module
from ._archive import load, save
from ._capture import capture
from ._draft import draft_export
from .decomp_utils import CustomDecompTable
from .dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, default_decompositions
from .graph_signature import ExportBackwardSignature, ExportGraphSignature
from .unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = [
    "AdditionalInputs", "Constraint", "CustomDecompTable", "Dim", "ExportBackwardSignature",
    "ExportGraphSignature", "ExportedProgram", "FlatArgsAdapter", "ModuleCallEntry", "ModuleCallSignature",
    "ShapesCollection", "UnflattenedModule", "default_decompositions", "dims", "draft_export", "export",
    "load", "register_dataclass", "save", "unflatten",
]  # fmt: skip


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
    Modules in `preserve_module_call_signature` keep their signature when the program is unflattened. `strict` asks PyTorch to read
    the bytecode of the program; weft always runs it.
    Raises: TypeError if `args` is no tuple; ValueError for what is no module; UserError for a dynamic dimension that the program
    takes for a constant; DataDependentError, a RuntimeError, where it decides by elements of tensors.
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise TypeError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    return capture(mod, args, dict(kwargs or {}), dynamic_shapes, preserve_module_call_signature)


def register_dataclass(cls: type[Any], *, serialized_type_name: str | None = None) -> None:
    """Make a dataclass a container that inputs and outputs of exported modules may be. `save` needs a name for it.

    >>> import dataclasses
    >>> import weft as torch
    >>> @dataclasses.dataclass
    ... class Pair:
    ...     x: torch.Tensor
    ...     y: torch.Tensor
    >>> torch.export.register_dataclass(Pair, serialized_type_name="Pair")
    >>> class Sum(torch.nn.Module):
    ...     def forward(self, pair):
    ...         return pair.x + pair.y
    >>> torch.export.export(Sum(), (Pair(torch.ones(1), torch.ones(1)),)).graph_signature.user_inputs
    ('pair_x', 'pair_y')
    """
    from ..fx._pytree import register_pytree_flatten_spec

    _register_dataclass(cls, serialized_type_name=serialized_type_name)
    # The context of a node of the tree says which fields were there.
    register_pytree_flatten_spec(cls, lambda value, spec: [getattr(value, name) for name in spec.context[0]])


__getattr__ = module_getattr(__name__, ("custom_ops",))
