"""Annotating nodes with the types of their results."""

from __future__ import annotations

import inspect
import typing
from typing import Any

from ...core.tensor import Tensor
from ...library.qualified_name import public_name, torch_name
from ..interpreter import Transformer
from ..node import Argument, Target

__all__ = ["AnnotateTypesWithSchema"]


class AnnotateTypesWithSchema(Transformer):
    """Makes a module in which calls of `nn.functional` and of layers, and attributes, are annotated with their types."""

    def __init__(
        self,
        module: Any,
        annotate_functionals: bool = True,
        annotate_modules: bool = True,
        annotate_get_attrs: bool = True,
    ) -> None:
        super().__init__(module)
        self.annotate_functionals = annotate_functionals
        self.annotate_modules = annotate_modules
        self.annotate_get_attrs = annotate_get_attrs

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        result = super().call_function(target, args, kwargs)
        if self.annotate_functionals and _is_functional(target):
            result.node.type = self._extract_python_return_type(target) or result.node.type
        return result

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        result = super().call_module(target, args, kwargs)
        submodule: Any = self.fetch_attr(str(target))
        is_layer = submodule.__class__.__module__.partition(".")[2].startswith("nn.modules")
        if self.annotate_modules and is_layer:
            result.node.type = self._extract_python_return_type(submodule.forward) or result.node.type
        return result

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        result = super().get_attr(target, args, kwargs)
        if self.annotate_get_attrs:
            value: Any = self.module
            for part in str(target).split("."):
                value = getattr(value, part)
            if isinstance(value, Tensor):
                result.node.type = Tensor
        return result

    def _extract_python_return_type(self, target: Any) -> Any:
        """The annotated type of the result; None if there is none."""
        try:
            found = typing.get_type_hints(inspect.unwrap(target)).get("return")
        except Exception:
            return None
        return None if found is Any else found


def _is_functional(target: Any) -> bool:
    """Whether `target` is a function of `nn.functional` that PyTorch writes in Python, with annotations."""
    name = public_name(target)
    return name is not None and torch_name(name).startswith("torch.nn.functional.")
