"""The rules of quantized tensors, which the files of this folder fill."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...core.dispatch import PLAIN
from ...core.layout_calls import Rules
from ...core.overrides import public_function


@functools.cache
def _is_operator(function: Callable) -> bool:
    """Whether this is an operator of `torch.ops`, besides PyTorch's own ones."""
    place = getattr(public_function(function), "__module__", None) or ""
    return place.startswith("torch._ops.") and place != "torch._ops.aten"


class QuantizedRules(Rules):
    """Rules for functions that read integers only (`views.py`), besides those that compute with the numbers.

    No function runs as it is, because the memory of a quantized tensor would be read as numbers, unless `unchanged` names it.
    """

    unchanged: frozenset[str] = frozenset()
    # (name, function, args, kwargs) -> the result of a function on integers; PLAIN if it is no such function
    on_integers: Callable[[str, Callable, tuple, dict[str, Any]], Any]

    def answer(self, name: str, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        if name in self.unchanged or _is_operator(function):
            return PLAIN
        found = self.on_integers(name, function, args, kwargs)
        return super().answer(name, function, args, kwargs) if found is PLAIN else found


QUANTIZED = QuantizedRules(
    "quantized",
    "write x.dequantize() to compute with the numbers, or use torch.ops.quantized",
    composed=False,
)
