"""Whether operations are recorded for backward: switches that are context managers and decorators."""

from __future__ import annotations

import contextlib
import threading


class _Mode(threading.local):
    enabled = True
    inference = False


mode = _Mode()


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require grad are recorded now."""
    return mode.enabled


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on."""
    return mode.inference


class _Switch(contextlib.ContextDecorator):
    """Sets the mode on entry and restores it on exit; may be entered again while entered."""

    def __init__(self, enabled: bool):
        self._enabled = enabled
        self._outer: list[tuple[bool, bool]] = []

    def _recreate_cm(self):
        return type(self)() if type(self) in (no_grad, enable_grad) else self

    def __enter__(self) -> None:
        self._outer.append((mode.enabled, mode.inference))
        mode.enabled = self._enabled

    def __exit__(self, *exception) -> None:
        mode.enabled, mode.inference = self._outer.pop()


class no_grad(_Switch):  # noqa: N801 (PyTorch's name)
    """Nothing is recorded inside: as a context (`with no_grad():`) or decorator (`@no_grad()`).

    >>> import weft as torch
    >>> with torch.no_grad():
    ...     torch.is_grad_enabled()
    False
    """

    def __new__(cls, function=None):
        if function is None:
            return super().__new__(cls)
        return cls()(function)  # @no_grad without parentheses

    def __init__(self, function=None):
        super().__init__(False)


class enable_grad(no_grad):  # noqa: N801
    """Recording is on inside, within `no_grad` too."""

    def __init__(self, function=None):
        _Switch.__init__(self, True)


class inference_mode(_Switch):  # noqa: N801
    """Nothing is recorded inside, and never will be for what is made there."""

    def __new__(cls, mode=True):
        return cls()(mode) if callable(mode) else super().__new__(cls)

    def __init__(self, mode: bool = True):
        super().__init__(not mode)
        self._inference = bool(mode)

    def __enter__(self) -> None:
        super().__enter__()
        mode.inference = self._inference


class set_grad_enabled(_Switch):  # noqa: N801
    """Recording is on or off from now on; as a context, until its end."""

    def __init__(self, mode: bool):
        super().__init__(mode)
        _Switch.__enter__(self)

    def __enter__(self) -> None:
        mode.enabled = self._enabled
