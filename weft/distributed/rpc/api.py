"""`torch.distributed.rpc.api`: the decorator of functions that need the agent, which this version of weft never starts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def _is_current_rpc_agent_set() -> bool:
    """Whether `init_rpc` was called: no."""
    return False


def _require_initialized(func: Callable) -> Callable:
    """Decorator: a function that raises RuntimeError unless `init_rpc` was called."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not _is_current_rpc_agent_set():
            raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")
        return func(*args, **kwargs)

    return wrapper
