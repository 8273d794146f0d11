"""Whether new memory without values is filled, which deterministic mode asks for."""

from __future__ import annotations

from collections.abc import Callable

# Called when filling begins or ends. Plans and records of `empty` contain the launch that fills, so that `empty` need not ask.
when_filling_changes: list[Callable[[], None]] = []


class _Filling:
    enabled = False


filling = _Filling()


def set_filling(enabled: bool) -> None:
    """Let functions such as `empty` and `resize_` fill new memory, or leave it as it is."""
    if enabled is not filling.enabled:
        filling.enabled = enabled
        for forget in when_filling_changes:
            forget()
