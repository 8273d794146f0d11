"""Whether operations are recorded for backward, and the place where recording plugs in."""

from __future__ import annotations

import threading


class _Mode(threading.local):
    enabled = True


mode = _Mode()


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require grad are recorded now."""
    return mode.enabled
