"""`torch.ops.quantized`: operators by their schemas. Those of layers take weights that were prepared once (`packed.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_LINEAR = "__torch__.torch.classes.quantized.LinearPackedParamsBase"
_CONV = "__torch__.torch.classes.quantized.Conv{}dPackedParamsBase"
_EMBEDDING = "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase"
_CELL = "__torch__.torch.classes.rnn.CellParamsBase"
_SHORT = {
    "Linear": _LINEAR,
    "Conv2": _CONV.format(2),
    "Conv3": _CONV.format(3),
    "Embedding": _EMBEDDING,
    "Cell": _CELL,
}

# Name -> (schema, function) of each overload.
_defined: dict[str, list[tuple[str, Callable]]] = {}


def operator(*schemas: str) -> Callable[[Callable], Callable]:
    """Decorator: the function computes these overloads. `Linear`, `Conv2`, `Conv3`, `Embedding` and `Cell` stand for packed weights."""

    def note(function: Callable) -> Callable:
        for text in schemas:
            for short, full in _SHORT.items():
                text = text.replace(f"{short} ", f"{full} ")
                text = f"{text[: -len(short)]}{full}" if text.endswith(f" {short}") else text
            name = text[: text.index("(")].partition(".")[0]
            _defined.setdefault(name, []).append((text, function))
        return function

    return note


def overloads(name: str) -> list[tuple[str, Callable]]:
    """The schema and the function of each overload of `quantized::name`; empty if there is none."""
    from . import arithmetic_operators, embedding_operators, layer_operators, out_operators, recurrent  # noqa: F401 (they define them)

    return [(f"quantized::{text}", function) for text, function in _defined.get(name, ())]


def relu_forms(name: str, rest: str) -> Callable[[Callable[..., Any]], Callable]:
    """Decorator: `function(*args, relu=False)` computes the operator, and with relu=True the one called `name`_relu."""

    def note(function: Callable[..., Any]) -> Callable:
        operator(f"{name}{rest}")(function)
        base, dot, overload = name.partition(".")
        operator(f"{base}_relu{dot}{overload}{rest}")(
            lambda *args, **kwargs: function(*args, **kwargs, relu=True)
        )
        return function

    return note
