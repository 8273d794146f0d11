"""`torch._C._autograd`: saved tensors, their hooks and versions, under the names of PyTorch's C++ part."""

from __future__ import annotations

from weft.autograd import hooks as contexts
from weft.autograd.current_pass import _get_current_graph_task_keep_graph
from weft.autograd.grad_mode import _unsafe_set_version_counter
from weft.autograd.saved import SavedTensor, hooks

__all__ = ["SavedTensor", "_get_current_graph_task_keep_graph", "_unsafe_set_version_counter"]


def _saved_tensors_hooks_disable(message: str) -> None:
    """Let `saved_tensors_hooks` raise RuntimeError with this message. Raises it if hooks are in use."""
    contexts.disable_hooks(message)


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether contexts of `saved_tensors_hooks` may be opened in this thread."""
    return hooks.disabled is None


def _saved_tensors_hooks_enable() -> None:
    """Take back `_saved_tensors_hooks_disable`."""
    hooks.disabled = None


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """The message of `_saved_tensors_hooks_disable`, None while hooks are enabled."""
    return hooks.disabled
