"""`torch.onnx.ExportableModule`: a module that knows how it is exported."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

from ..nn import Module


class ExportableModule(Module, abc.ABC):
    """A module that says with what arguments, dynamic dimensions and names it is exported: `to_onnx` needs none of these.

    >>> import weft as torch
    >>> class Doubled(torch.onnx.ExportableModule):
    ...     def forward(self, x):
    ...         return x * 2
    ...
    ...     def example_arguments(self):
    ...         return (torch.ones(3),), None
    >>> Doubled().dynamic_shapes() is None
    True
    """

    __module__ = "torch.onnx"

    @abc.abstractmethod
    def example_arguments(self) -> tuple[tuple[Any], dict[str, Any] | None]:
        """Positional and keyword arguments to trace the module with."""

    def dynamic_shapes(self) -> Any:
        """The `dynamic_shapes` of `export`."""
        return None

    def input_names(self) -> Sequence[str] | None:
        """The names of the ONNX inputs."""
        return None

    def output_names(self) -> Sequence[str] | None:
        """The names of the ONNX outputs."""
        return None

    def to_onnx(self, **kwargs: Any) -> Any:
        """Export the module; `kwargs` are arguments of `torch.onnx.export`."""
        from . import export

        args, keywords = self.example_arguments()
        options: dict[str, Any] = {
            "dynamic_shapes": self.dynamic_shapes(),
            "input_names": self.input_names(),
            "output_names": self.output_names(),
        }
        return export(self, args, kwargs=keywords, **(options | kwargs))
