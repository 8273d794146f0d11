"""What PyTorch's C++ part counts or traces, and weft does not."""

from __future__ import annotations


def _log_api_usage_once(event: str) -> None:
    """Nothing: PyTorch counts which parts of it are used where it was told to, and by default it does nothing either."""


def _get_tracing_state() -> None:
    """None: no function is being traced."""
