"""What nodes keep for backward: the parts of a tensor and the version of its memory, or what a hook made of it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.dtype import FLOAT, LEGACY_NAMES
from ..core.recording import unrecorded
from ..core.spec import Spec
from ..core.storage import Storage
from ..core.tensor import Tensor, make
from . import anomaly
from .dual import set_tangents

# In place of what was saved, once it is freed.
RELEASED: Any = ("released",)
SECOND_TIME = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)


class Saved(NamedTuple):
    """A tensor, as parts: it must not keep a later version of itself alive through its own node."""

    storage: Storage
    start: int
    spec: Spec
    version: int
    # Where the tensor's cotangent went when it was saved; for a result of the node itself, which one it is.
    edge: Any


class SavedOutputs(tuple):
    """The results of a node that has several."""


class SavedDual(NamedTuple):
    """A saved tensor with its tangents."""

    saved: Any
    tangents: dict[int, Tensor]


class Packed:
    """What a hook of `saved_tensors_hooks` made of a tensor."""

    __slots__ = ("value", "hook", "edge")

    def __init__(self, value: Any, hook: Callable, edge: Any):
        self.value, self.hook, self.edge = value, hook, edge


class _Hooks(threading.local):
    def __init__(self) -> None:
        self.stack: list[tuple[Callable, Callable]] = []
        self.disabled: str | None = None  # why, if saving with hooks is forbidden


hooks = _Hooks()
hooked = 0  # how many contexts with hooks are open, in all threads: saving looks at `hooks` only then
_tuple = tuple.__new__


def save(tensor: Tensor, edge: Any) -> Any:
    """`edge` as in `Saved`."""
    if hooked and hooks.stack:
        return _pack(tensor, edge)
    storage = tensor._storage
    return _tuple(Saved, (storage, tensor._start, tensor.spec, +storage.version, edge))


class SavedTensor:
    """The place in a node where a tensor is kept for backward.

    >>> import weft as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> y = x * x
    >>> place = y.grad_fn._raw_saved_self
    >>> place.register_hooks(lambda t: t.numpy(), torch.from_numpy)  # keep an array instead
    >>> y.sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ("_node", "_place")

    def __init__(self, node: Any, place: int):
        self._node, self._place = node, place

    def _entry(self) -> Any:
        saved = self._node._saved
        if saved is RELEASED:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are "
                "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through "
                "the graph a second time or if you need to access saved variables after calling backward."
            )
        return saved[self._place]

    def unpack(self) -> Tensor:
        """The tensor, as the node will see it."""
        return unpack(self._entry(), self._node, True)

    @property
    def data(self) -> Any:
        """What is kept: the tensor, or what the hook made of it."""
        entry = self._entry()
        return entry.value if type(entry) is Packed else unpack(entry, self._node, False)

    @property
    def unpack_hook(self) -> Callable | None:
        """The hook that makes the tensor again, if there is one."""
        entry = self._entry()
        return entry.hook if type(entry) is Packed else None

    def register_hooks(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        """Keep `pack_hook(tensor)` instead of the tensor; `unpack_hook` makes it again when it is needed.

        Raises: RuntimeError if there are hooks already, or nothing is kept any more.
        """
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError("register_hooks(): two functions are expected, pack_hook and unpack_hook")
        entry = self._entry()
        if type(entry) is Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is "
                "allowed at a time."
            )
        tensor = unpack(entry, self._node, False)
        saved = [*self._node._saved]
        saved[self._place] = _packed(tensor, pack_hook, unpack_hook, entry.edge)
        self._node._saved = tuple(saved)


def _pack(tensor: Tensor, edge: Any) -> Packed:
    # A result of the node itself must not keep that alive.
    given = make(tensor._storage, tensor._start, tensor.spec) if type(edge) is int else tensor
    return _packed(given, *hooks.stack[-1], edge)


def _packed(tensor: Tensor, pack: Callable, hook: Callable, edge: Any) -> Packed:
    version = tensor._storage.version
    outer, hooks.stack = hooks.stack, []  # what the hook itself computes is not packed
    try:
        with unrecorded():
            packed = pack(tensor)
    finally:
        hooks.stack = outer
    if tensor._storage.version != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
            "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need "
            "to perform in-place operations on the input to a pack hook."
        )
    return Packed(packed, hook, edge)


def unpack(entry: Any, node: Any, recording: bool) -> Any:
    """The value saved, as a tensor that belongs to the graph if `recording`."""
    kind = type(entry)
    if kind is Saved:
        storage, start, spec, version, edge = entry
        if storage.version != version:
            raise RuntimeError(overwritten(entry, node))
        tensor = make(storage, start, spec)
    elif kind is Packed:
        tensor, edge = entry.hook(entry.value), entry.edge
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor).__name__}"
            )
        tensor = make(tensor._storage, tensor._start, tensor.spec)
    elif kind is SavedDual:
        return set_tangents(unpack(entry.saved, node, recording), entry.tangents)
    elif kind is SavedOutputs:
        return tuple([unpack(each, node, recording) for each in entry])
    else:
        return entry
    if recording and tensor.spec.dtype.category >= FLOAT:
        tensor._autograd = node._output(edge) if type(edge) is int else edge
    return tensor


def overwritten(entry: Saved, node: Any) -> str:
    edge = entry.edge
    kind = LEGACY_NAMES[entry.spec.dtype]
    maker, index = (
        (node, edge) if type(edge) is int else (getattr(edge, "node", edge), getattr(edge, "index", 0))
    )
    source = ""
    if hasattr(maker, "_spec"):  # not so of leaves
        source = f", which is output {index} of {short_name(maker)},"
    hint = (
        "the backtrace further above shows the operation that failed to compute its gradient. The variable in question "
        "was changed in there or anywhere later. Good luck!"
        if anomaly.tracing
        else "enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{kind}Tensor {list(entry.spec.shape)}]{source} is at version {entry.storage.version}; expected version "
        f"{entry.version} instead. Hint: {hint}\nIt was saved for {node.name()}: clone() it before it is modified."
    )


def short_name(node: Any) -> str:
    """`Mul` for the node of a multiplication, as messages have it."""
    return re.sub(r"Backward\d*$", "", node.name())
