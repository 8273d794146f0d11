"""`held`: which variables, parameters, gradients and recorded steps hold the storages of a program."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any, NamedTuple

from ..autograd.graph import Leaf, endpoint
from ..autograd.saved import short_name
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..engine.explain import is_ours
from ..nn.module import Module
from ..optim.optimizer import Optimizer
from .saved import saved_by

# What holds a storage, in the order in which the first one that applies gives it its colour.
PARAMETER, GRADIENT, STATE, SAVED, VARIABLE, TEMPORARY = (
    "parameters and buffers", "gradients", "states of optimizers", "saved for backward", "variables", "temporary",
)  # fmt: skip
KINDS = (PARAMETER, GRADIENT, STATE, SAVED, VARIABLE, TEMPORARY)
_DEPTH = 2  # of lists and dictionaries in variables


class Holder(NamedTuple):
    """One of KINDS, and its name in the program."""

    kind: str
    name: str


class Held(NamedTuple):
    """By the ids of storages what holds them, and a tensor on each that is in a variable."""

    holders: dict[int, list[Holder]]
    tensors: dict[int, Tensor]


def held(variables: Iterable[tuple[str, Any]], graph: Any = None) -> Held:
    """What variables hold, and the nodes of the autograd graph below them and below `graph`."""
    found: dict[int, list[Holder]] = {}
    tensors: dict[int, Tensor] = {}
    graphs = [graph]

    def note(tensor: Tensor, kind: str, name: str) -> None:
        if type(tensor.spec) is not Spec:
            return
        tensors.setdefault(id(tensor._storage), tensor)
        holders = found.setdefault(id(tensor._storage), [])
        if Holder(kind, name) not in holders:
            holders.append(Holder(kind, name))
        if tensor._autograd is not None:
            graphs.append(endpoint(tensor._autograd)[0])
        gradient = tensor.grad if type(tensor._autograd) is Leaf else None
        if gradient is not None:
            note(gradient, GRADIENT, f"{name}.grad")

    for name, value in variables:
        _note_all(note, name, value, _DEPTH)
    for node in _nodes(graphs):
        for storage in saved_by(node):
            found.setdefault(id(storage), []).append(Holder(SAVED, f"saved by {short_name(node)}"))
    return Held(found, tensors)


def _note_all(note: Any, name: str, value: Any, depth: int) -> None:
    """Note the tensors of a value."""
    if isinstance(value, Tensor):
        note(value, VARIABLE, name)
    elif isinstance(value, Module):
        for inner, tensor in (*value.named_parameters(), *value.named_buffers()):
            note(tensor, PARAMETER, f"{name}.{inner}")
    elif isinstance(value, Optimizer):
        for state in value.state.values():
            for key, each in state.items():
                if isinstance(each, Tensor):
                    note(each, STATE, f"{name}: {key}")
    elif depth and isinstance(value, (list, tuple)):
        for place, each in enumerate(value):
            _note_all(note, f"{name}[{place}]", each, depth - 1)
    elif depth and isinstance(value, dict):
        for key, each in value.items():
            _note_all(note, f"{name}[{key!r}]", each, depth - 1)


def variables_of(function: Callable) -> Iterator[tuple[str, Any]]:
    """The names in the code of a function with their values, and the object that a method belongs to."""
    owner = getattr(function, "__self__", function)
    yield type(owner).__name__, owner
    with contextlib.suppress(TypeError):  # a function that is not written in Python
        found = inspect.getclosurevars(inspect.unwrap(function))
        yield from (*found.nonlocals.items(), *found.globals.items())


def variables_here() -> Iterator[tuple[str, Any]]:
    """The variables of the calls that led here, without those of weft, and the global ones of the innermost such call."""
    frame: FrameType | None = sys._getframe(1)
    seen_globals = False
    while frame is not None:
        if not is_ours(frame.f_code.co_filename):
            yield from list(frame.f_locals.items())
            if not seen_globals:
                yield from list(frame.f_globals.items())
                seen_globals = True
        frame = frame.f_back


def _nodes(starts: list[Any]) -> Iterator[Any]:
    seen: set[int] = set()
    stack = list(starts)
    while stack:
        node = stack.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        stack += [other for other, _ in node.next_functions]
