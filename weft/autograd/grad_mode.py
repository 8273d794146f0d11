"""Switches of recording, `torch.autograd.grad_mode`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..core.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from ..core.names import name_public

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


@contextlib.contextmanager
def set_multithreading_enabled(mode: bool) -> Iterator[None]:
    """Accepted; a backward pass runs in the thread that asks for it."""
    yield


name_public(__name__)
