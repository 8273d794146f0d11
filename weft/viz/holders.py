"""`held`: which variables, parameters, gradients and recorded steps hold the storages of a program."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import sys
from collections import deque
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
_MOST_ITEMS = 100  # of one of them; a longer one holds data rather than tensors
# Of the graph, beginning with the node that was recorded last. A visit takes about 8 us (AMD Zen 4), and all nodes are visited after each call.
_MOST_NODES = 2000


class Holder(NamedTuple):
    """One of KINDS, and its name in the program."""

    kind: str
    name: str


class Held:
    """What variables hold: `holders` has for the id of each storage what holds it, and `tensors` a tensor on each storage in a variable."""

    def __init__(self) -> None:
        self.holders: dict[int, list[Holder]] = {}
        self.tensors: dict[int, Tensor] = {}
        self.nodes: list[Any] = []  # of the autograd graph, those that tensors in variables belong to
        self._seen: set[int] = set()  # modules and optimizers, which often have several names

    def note(self, name: str, value: Any, depth: int = _DEPTH) -> None:
        """Note the tensors in the value of a variable."""
        if isinstance(value, Tensor):
            self._note_tensor(value, VARIABLE, name)
        elif isinstance(value, (Module, Optimizer)):
            if id(value) not in self._seen:
                self._seen.add(id(value))
                for kind, inner, tensor in _state_of(value):
                    self._note_tensor(tensor, kind, f"{name}.{inner}")
        elif depth and isinstance(value, (list, tuple)):
            for place, each in enumerate(value[:_MOST_ITEMS]):
                self.note(f"{name}[{place}]", each, depth - 1)
        elif depth and isinstance(value, dict):
            for key, each in itertools.islice(value.items(), _MOST_ITEMS):
                self.note(f"{name}[{key!r}]", each, depth - 1)

    def _note_tensor(self, tensor: Tensor, kind: str, name: str) -> None:
        if type(tensor.spec) is not Spec:
            return
        self.tensors.setdefault(id(tensor._storage), tensor)
        self._add(tensor._storage, Holder(kind, name))
        if tensor._autograd is not None:
            self.nodes.append(endpoint(tensor._autograd)[0])
        if type(tensor._autograd) is Leaf and tensor.grad is not None:
            self._note_tensor(tensor.grad, GRADIENT, f"{name}.grad")

    def note_graph(self, start: Any) -> None:
        """Note what nodes save, those of the graph below `start` first, then those below tensors in variables."""
        for node in itertools.islice(_nodes([start, *self.nodes]), _MOST_NODES):
            for storage in saved_by(node):
                self._add(storage, Holder(SAVED, f"saved by {short_name(node)}"))

    def _add(self, storage: Any, holder: Holder) -> None:
        holders = self.holders.setdefault(id(storage), [])
        if holder not in holders:
            holders.append(holder)


def held(variables: Iterable[tuple[str, Any]], graph: Any = None) -> Held:
    """What variables hold, and the nodes of the autograd graph below them and below `graph`."""
    found = Held()
    for name, value in variables:
        found.note(name, value)
    found.note_graph(graph)
    return found


def _state_of(value: Module | Optimizer) -> Iterator[tuple[str, str, Tensor]]:
    """The tensors of a module or an optimizer: the kind of holder, the name, the tensor."""
    if isinstance(value, Module):
        for name, tensor in (*value.named_parameters(), *value.named_buffers()):
            yield PARAMETER, name, tensor
    else:
        for state in value.state.values():
            for name, tensor in state.items():
                if isinstance(tensor, Tensor):
                    yield STATE, name, tensor


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


def _nodes(starts: Iterable[Any]) -> Iterator[Any]:
    """The nodes of graphs, those near the first start first."""
    seen: set[int] = set()
    waiting = deque(starts)
    while waiting:
        node = waiting.popleft()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        waiting.extend(other for other, _ in node.next_functions)
