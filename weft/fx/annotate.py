"""Types of traced values."""

from __future__ import annotations

from typing import Any

from ._compatibility import compatibility
from .proxy import Proxy

__all__ = ["annotate"]


@compatibility(is_backward_compatible=False)
def annotate(val: Any, type: Any) -> Any:
    """Say what type a value has: a Proxy's node carries it from then on. Other values come back as they are.

    Raises: RuntimeError if the node has another type already.
    """
    if not isinstance(val, Proxy):
        return val
    if val.node.type:
        raise RuntimeError(
            f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and new type is "
            f"{type}. This could happen if you tried to annotate a function parameter value (in which case you should use "
            "the type slot on the function signature) or you called annotate on the same value twice"
        )
    val.node.type = type
    return val
