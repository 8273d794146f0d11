"""`grad_fn._saved_self` and similar attributes: PyTorch's names for the values that a node saves for backward.

`grad_fn._raw_saved_self` is the `SavedTensor`, to which users can attach hooks.
"""

from __future__ import annotations

from typing import Any

from .graph import Node, original
from .saved import RELEASED, SECOND_TIME, Packed, Saved, SavedTensor

# op -> names of its inputs. The default is "self other".
INPUTS = {
    name: names.split()
    for name, names in {
        "pow": "self exponent",
        "mm": "self mat2",
        "mv": "self vec",
        "dot": "self tensor",
        "addmm": "self beta alpha mat1 mat2",
        "add": "self other alpha",
        "sub": "self other alpha",
        "where": "condition self other",
        "clamp": "self min max",
        "lerp": "self end weight",
        "gather": "self index",
        "masked_fill": "self mask value",
        "softmax": "self",
        "log_softmax": "self",
        "leaky_relu": "self negative_slope",
        "mse_loss": "self target",
        "convolution": "input weight bias",
        "embedding": "weight indices",
        "getitem.select.at": "self index",
        "getitem.slice.at": "self start",
    }.items()
}
# op -> names of its static arguments.
STATIC = {
    name: names.split()
    for name, names in {
        "sum": "dim keepdim",
        "mean": "dim keepdim",
        "transpose": "dim0 dim1",
        "permute": "dims",
        "unsqueeze": "dim",
        "cat": "dim",
        "stack": "dim",
        "cumsum": "dim",
        "softmax": "dim",
        "log_softmax": "dim",
        "gather": "dim",
        "unbind": "dim",
        "repeat": "repeats",
    }.items()
}
DEFAULTS = {"alpha": 1}
SIZES = "_sym_sizes"


def _names(node: Node) -> tuple[list[str], list[str]]:
    """The names of a node's inputs and of its static arguments."""
    name = node._spec.op.name
    return INPUTS.get(name, ["self", "other"])[: len(node._spec.inputs)], STATIC.get(name, [])[
        : len(node._spec.static)
    ]


def _saved(node: Node, name: str) -> Any:
    if node._saved is RELEASED:
        raise RuntimeError(SECOND_TIME)
    inputs, static = _names(node)
    if name == "result" and node._saved[0] is not None:
        return original(node._saved[0], node)
    if name in inputs:
        return original(node._saved[1 + inputs.index(name)], node)
    if name in static:
        return node._spec.static[static.index(name)]
    if name in DEFAULTS and name in INPUTS.get(node._spec.op.name, ()):
        return DEFAULTS[name]
    if name.endswith(SIZES) and name.removesuffix(SIZES) in inputs:
        spec = node._spec.inputs[inputs.index(name.removesuffix(SIZES))]
        if spec is not None:
            return tuple(spec.shape)
    return _MISSING


_MISSING = object()


def _raw(node: Node, name: str) -> Any:
    """The SavedTensor for an input, or for the result, of the node."""
    if node._saved is RELEASED:
        raise RuntimeError(SECOND_TIME)
    inputs, _ = _names(node)
    place = 0 if name == "result" else 1 + inputs.index(name) if name in inputs else None
    if place is None or not isinstance(node._saved[place], (Saved, Packed)):
        return _MISSING
    return SavedTensor(node, place)


def _getattr(self: Node, name: str) -> Any:
    if name.startswith("_raw_saved_"):
        value = _raw(self, name.removeprefix("_raw_saved_"))
        if value is not _MISSING:
            return value
    if name.startswith("_saved_"):
        value = _saved(self, name.removeprefix("_saved_"))
        if value is not _MISSING:
            return value
    raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


def _dir(self: Node) -> list[str]:
    names = [*object.__dir__(self)]
    if self._saved is not RELEASED:
        inputs, static = _names(self)
        candidates = ["result", *inputs, *[name + SIZES for name in inputs], *static]
        names += [
            f"_saved_{name}"
            for name in candidates
            if not any(_saved(self, name) is each for each in (None, _MISSING))
        ]
        names += [f"_raw_saved_{name}" for name in ("result", *inputs) if _raw(self, name) is not _MISSING]
    return names


Node.__getattr__ = _getattr  # type: ignore[attr-defined]
Node.__dir__ = _dir  # type: ignore[method-assign,assignment]
