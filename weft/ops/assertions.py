"""`torch._assert`: an assertion that tracing can write down."""

from __future__ import annotations

from typing import Any

from ..core.op import add_function
from ..core.overrides import PLAIN, overridden


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError with `message` unless `condition` holds. `torch.fx` traces it, unlike the statement.

    >>> import weft as torch
    >>> torch._assert(torch.tensor(1) < 2, "too large")
    """
    if overridden(_assert, (condition, message), {}) is PLAIN:
        assert condition, message


add_function("_assert", _assert)
