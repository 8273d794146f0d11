"""The values that nodes save for backward: the parts and the version of a tensor, or the result of a pack hook."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.batched import is_recorded_around
from ..core.dtype import FLOAT, LEGACY_NAMES
from ..core.recording import unrecorded
from ..core.spec import Spec
from ..core.storage import Storage
from ..core.tensor import Tensor, make
from . import anomaly
from .dual import set_tangents

# Replaces the saved values of a node after they are freed.
RELEASED: Any = ("released",)
SECOND_TIME = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)


class Saved(NamedTuple):
    """The parts of a tensor. A node does not save the tensor object, because the tensor would keep its grad_fn alive."""

    storage: Storage
    start: int
    spec: Spec
    version: int
    # The edge of the tensor when it was saved. For a result of the node itself, the index of the result.
    edge: Any


class SavedOutputs(tuple):
    """The saved results of a node with several results."""


class SavedDual(NamedTuple):
    """A saved tensor with its tangents."""

    saved: Any
    tangents: dict[int, Tensor]


class Packed:
    """The result of a pack hook, with the unpack hook."""

    __slots__ = ("value", "hook", "edge")

    def __init__(self, value: Any, hook: Callable, edge: Any):
        self.value, self.hook, self.edge = value, hook, edge


class _Hooks(threading.local):
    def __init__(self) -> None:
        self.stack: list[tuple[Callable, Callable]] = []
        self.disabled: str | None = None  # the error message while `disable_saved_tensors_hooks` is active


hooks = _Hooks()
hooked = 0  # the number of open contexts in all threads; `save` reads `hooks` only if it is not 0
_tuple = tuple.__new__


def save(tensor: Tensor, edge: Any) -> Any:
    """`edge` as in `Saved`."""
    if hooked and hooks.stack:
        return _pack(tensor, edge)
    storage = tensor._storage
    return _tuple(Saved, (storage, tensor._byte_offset, tensor.spec, +storage.version, edge))


class SavedTensor:
    """A tensor that a node saves for backward, as users see it.

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

    def __init__(self, node: Any = None, place: int = 0):
        if node is None:
            raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")
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
        """The tensor, as the rules will get it."""
        return unpack(self._entry(), self._node, True)

    @property
    def data(self) -> Any:
        """The saved value: the tensor, or the result of the pack hook."""
        entry = self._entry()
        return entry.value if type(entry) is Packed else unpack(entry, self._node, False)

    @property
    def unpack_hook(self) -> Callable | None:
        """The unpack hook, or None."""
        entry = self._entry()
        return entry.hook if type(entry) is Packed else None

    def register_hooks(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        """Save `pack_hook(tensor)` instead of the tensor. Backward calls `unpack_hook` to get the tensor.

        Raises: RuntimeError if there are hooks already, or if the saved tensor is freed.
        """
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError("register_hooks(): two functions are expected, pack_hook and unpack_hook")
        entry = self._entry()
        if entry is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden.")
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
    # Detach a result of the node itself, because it must not keep the node alive.
    value = make(tensor._storage, tensor._byte_offset, tensor.spec) if type(edge) is int else tensor
    return _packed(value, *hooks.stack[-1], edge)


def _packed(tensor: Tensor, pack: Callable, hook: Callable, edge: Any) -> Packed:
    if is_recorded_around(tensor):
        raise RuntimeError(
            "Hooks on saved tensors cannot be used within vmap (or jacfwd, or jacrev) if its input takes part in autograd "
            "around it, because the tensor that a hook returns does not. Use them outside of the mapped function"
        )
    version = tensor._storage.version
    outer, hooks.stack = hooks.stack, []  # do not apply hooks to tensors that are saved inside the hook
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
    """The saved value. If `recording`, the tensor gets its edge back."""
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
        tensor = make(tensor._storage, tensor._byte_offset, tensor.spec)
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
    if hasattr(maker, "_spec"):  # leaves have no `_spec`
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
    """The name of a node for error messages, such as `Mul` for MulBackward0."""
    return re.sub(r"Backward\d*$", "", node.name())
