"""Warnings about code that was written for the first versions of PyTorch. weft has neither of the old behaviours."""

from __future__ import annotations


class Warning:
    """The switch of a warning, which weft never gives."""

    def __init__(self) -> None:
        self._enabled = False

    def set_enabled(self, value: bool) -> None:
        """Set the switch, which changes nothing here."""
        self._enabled = value

    def get_enabled(self) -> bool:
        """Return what was set."""
        return self._enabled

    enabled = property(get_enabled, set_enabled)


broadcast_warning = Warning()
keepdim_warning = Warning()
