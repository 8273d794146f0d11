"""Hooks on saved tensors, and hooks on several gradients; public as `torch.autograd.graph`."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from ..core.copy_on_write import CopyOnWrite
from ..core.grad_mode import detours
from ..core.locks import new_lock
from ..core.restoring import Restoring, contextmanager
from ..core.tensor import Tensor
from ..ops.assembly.copying import lazy_clone
from ..ops.tensor.predicates import is_inference
from . import saved


class saved_tensors_hooks(Restoring):  # noqa: N801 (PyTorch's name)
    """Within this context, nodes save `pack_hook(tensor)` instead of a tensor, and call `unpack_hook` in backward.

    >>> import weft as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy(), torch.from_numpy):
    ...     y = x * x
    >>> y.backward(torch.ones(2))
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if saved.hooks.disabled is not None:
            raise RuntimeError(saved.hooks.disabled)
        saved.hooks.stack += ((self.pack_hook, self.unpack_hook),)
        saved.hooked += 1
        detours.append("hooks")

    def _restore(self) -> None:
        if saved.hooks.stack:  # empty if the context is left more often than it was entered
            del saved.hooks.stack[-1]
            saved.hooked -= 1
            detours.remove("hooks")


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """Within this context, nodes save copies in host memory."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        def pack(tensor: Tensor) -> tuple:
            return tensor.device, tensor.cpu() if tensor.device.type != "cpu" else tensor.clone()

        def unpack(packed: tuple) -> Tensor:
            where, tensor = packed
            return tensor.to(where, non_blocking=pin_memory)

        super().__init__(pack, unpack)


def disable_hooks(message: str) -> None:
    """Let `saved_tensors_hooks` raise RuntimeError with this message. Raises it if hooks are in use."""
    if saved.hooks.stack:
        raise RuntimeError(message)
    saved.hooks.disabled = message


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within this context, `saved_tensors_hooks` raises RuntimeError with this message."""
    outer = saved.hooks.disabled
    disable_hooks(error_message)
    try:
        yield
    finally:
        saved.hooks.disabled = outer


class _Handle:
    """A lazy copy that nodes have saved. Nodes that save the same tensor at the same version share it."""

    __slots__ = ("copy", "original", "__weakref__")

    def __init__(self, tensor: Tensor):
        self.copy = lazy_clone(tensor)
        self.original = weakref.ref(tensor._storage)

    def is_separate(self) -> bool:
        """Whether the copy has memory of its own."""
        original, own = self.original(), self.copy._storage
        return type(own) is not CopyOnWrite or original is not None and original.ptr != own.ptr


class _AllowMutationOnSavedContext:
    """An open `allow_mutation_on_saved_tensors`."""

    def __init__(self) -> None:
        self.is_open = True
        # (id of the storage, start, spec, version) -> the handle, as long as a node has it
        self.tid_to_weakhandle: WeakValueDictionary[tuple, _Handle] = WeakValueDictionary()

    @property
    def cloned(self) -> dict[_Handle, Tensor]:
        """The saved copies whose memory is no longer that of the tensor, because the tensor was written."""
        handles = self.tid_to_weakhandle.values()
        return {each: each.copy for each in handles if each.is_separate()}

    def pack(self, tensor: Tensor) -> _Handle:
        storage = tensor._storage
        key = id(storage), tensor._byte_offset, tensor.spec, storage.version
        handle = self.tid_to_weakhandle.get(key)
        if handle is None or handle.original() is not storage:
            handle = self.tid_to_weakhandle[key] = _Handle(tensor)
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        if not self.is_open:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was originally "
                "recorded."
            )
        return handle.copy


_mutation_allowed = False


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """Within this context, programs may write to tensors that are saved for backward, because nodes save lazy copies.

    Forward and backward must both run within the context.

    Raises: RuntimeError if it is entered within itself.

    >>> import weft as torch
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     x = torch.ones(2, requires_grad=True)
    ...     y = x.clone()
    ...     result = (y * y).sum()
    ...     _ = y.zero_()
    ...     result.backward()
    >>> x.grad
    tensor([2., 2.])
    """
    global _mutation_allowed
    if _mutation_allowed:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationOnSavedContext()
    _mutation_allowed = True
    try:
        with saved_tensors_hooks(context.pack, context.unpack):
            yield context
    finally:
        _mutation_allowed = context.is_open = False
        context.tid_to_weakhandle.clear()


def region_activation_memory_budget(budget: float) -> Any:
    """A setting of PyTorch's compiler, which weft does not have.

    Raises: ValueError unless 0 <= budget <= 1; otherwise RuntimeError, as in eager PyTorch.
    """
    name = "torch.autograd.graph.region_activation_memory_budget"
    if not 0 <= budget <= 1:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    raise RuntimeError(
        f"{name} can only be used inside a torch.compile region; it has no effect in eager mode."
    )


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Accepted without effect, because weft has no CUDA graphs."""


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Accepted without effect, because weft has no CUDA streams."""


class _MultiHandle:
    def __init__(self, handles: Sequence[Any]):
        self._handles = handles

    def remove(self) -> None:
        for each in self._handles:
            each.remove()

    def __enter__(self) -> _MultiHandle:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()


class _Running(threading.local):
    now: Any = None  # the backward pass that runs in this thread


running = _Running()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all") -> _MultiHandle:
    """Call `fn(grads)` once in each backward pass, after the pass has computed the gradients of all the tensors.

    Gradients that the pass does not compute are None. With mode "any", call `fn(grad)` with the first gradient computed.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = new_lock()
    of_pass: WeakKeyDictionary[Any, dict] = WeakKeyDictionary()  # backward pass -> position -> gradient

    def hook_of(position: int) -> Callable:
        def hook(grad: Tensor | None) -> None:
            now = running.now
            with lock:
                gradients = of_pass.setdefault(now, {})
                first = not gradients
                gradients[position] = grad
                complete = len(gradients) == sum(now.reaches(tensor._autograd) for tensor in tensors)
            if mode == "any" and first:
                fn(grad)
            elif mode == "all" and complete:
                fn([gradients.get(k) for k in range(len(tensors))])

        return hook

    return _MultiHandle([each.register_hook(hook_of(k)) for k, each in enumerate(tensors)])


def increment_version(tensor: Any) -> None:
    """Increment the version of a tensor, or of several, after a write that autograd cannot see.

    Tensors of inference mode have no version.
    """
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not is_inference(each):
            each._storage.version += 1
