"""`torch.export.draft_export`: an export that takes what cannot be dynamic for static, and says so."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..compiler.errors import UserError
from ..core.pytree import tree_map
from ..nn import Module
from ._capture import capture
from .dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, _DimHint, _DimHintType
from .exported_program import ExportedProgram


@dataclasses.dataclass
class DraftExportReport:
    """What is wrong with an export: messages that `torch.export.export` would have raised."""

    failures: list[str]

    def successful(self) -> bool:
        """Whether `torch.export.export` would have worked."""
        return not self.failures

    def __str__(self) -> str:
        if self.successful():
            return "No issues are found during export. You can now change back to torch.export.export()"
        listed = "\n\n".join(f"{number}. {each}" for number, each in enumerate(self.failures, 1))
        return f"{len(self.failures)} issue(s) during export, in which dimensions were taken for static:\n\n{listed}"


def draft_export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | list[Any] | None = None,
    preserve_module_call_signature: tuple[str, ...] = (),
    strict: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """As `export`, but a dimension that turns out not to be dynamic is static, instead of an error.

    The program has a report of that: `program._report`.
    Raises: DataDependentError where the program decides by elements of tensors, as `export` does.
    """
    given = dict(kwargs or {})
    try:
        program = capture(mod, args, given, dynamic_shapes, preserve_module_call_signature)
        failures = []
    except UserError as error:
        if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
            dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, given)
        program = capture(mod, args, given, _automatic(dynamic_shapes), preserve_module_call_signature)
        failures = [str(error)]
    program._report = DraftExportReport(failures)  # type: ignore[attr-defined]
    return program


def _automatic(shapes: Any) -> Any:
    """The same shapes, with `Dim.AUTO` for each dimension that was to be dynamic."""

    def automatic(hint: Any) -> Any:
        is_static = isinstance(hint, int) or (isinstance(hint, _DimHint) and hint.type is _DimHintType.STATIC)
        return hint if hint is None or is_static else Dim.AUTO

    return tree_map(automatic, shapes)


draft_export.__module__ = "torch.export"
