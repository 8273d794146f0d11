"""Whether operations are recorded for backward: switches that are context managers and decorators."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import warnings
from collections.abc import Generator
from typing import Any

from .restoring import Restoring


class _Mode(threading.local):
    enabled = True
    inference = False
    reverse = True  # False under no_grad while forward mode is on: then steps are taken note of for that only


mode = _Mode()
open_levels: list[int] = []  # of forward mode, outermost first
open_inference: list[None] = []  # has an entry for each inference mode that is open, in any thread
# Why calls cannot be recorded the short way (autograd/recorders.py): an entry for each level of forward mode, each context
# with hooks on saved tensors and each switch to anomaly mode that is open, in any thread.
detours: list[str] = []


class InferenceVersion(int):
    """The version of memory made in inference mode: writes do not count, and are allowed there only."""

    def __add__(self, one: int) -> InferenceVersion:
        if not mode.inference:
            raise RuntimeError(
                "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
                "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
            )
        return self

    def __pos__(self) -> int:
        """Saving memory for backward stores `+version`, which is an error here."""
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
            "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
            "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
        )


INFERENCE_VERSION = InferenceVersion(0)


def _set(enabled: bool) -> None:
    """Record from now on, or no longer; what is made in inference mode is never recorded."""
    mode.enabled = (enabled or bool(open_levels)) and not mode.inference
    mode.reverse = enabled


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require grad are recorded now."""
    return mode.enabled and mode.reverse


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on."""
    return mode.inference


class _Switch(Restoring, contextlib.ContextDecorator):
    """Sets the mode on entry and restores it on exit; may be entered again while entered.

    Of a generator, every step runs in the mode; between steps it is the caller's.
    """

    def __init__(self, enabled: bool):
        self._enabled = enabled
        # The mode to return to, and what this was before: from the innermost entry outwards.
        self._outer: Any = None

    def clone(self):
        """Another switch to the same setting."""
        return type(self)() if type(self) in (no_grad, enable_grad) else type(self)(self._enabled)

    def _recreate_cm(self):
        return self.clone() if type(self) in (no_grad, enable_grad) else self

    def __enter__(self) -> None:
        recorded = (self._enabled or bool(open_levels)) and not mode.inference
        self._outer = (mode.enabled, mode.inference, mode.reverse), self._outer
        mode.enabled, mode.reverse = recorded, self._enabled

    def _restore(self) -> None:
        (mode.enabled, mode.inference, mode.reverse), self._outer = self._outer

    def __call__(self, function):
        if isinstance(function, type):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
                "the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            function.__init__ = self(function.__init__)  # type: ignore[misc]
            return function
        if inspect.isgeneratorfunction(function):
            return functools.wraps(function)(
                lambda *args, **kwargs: _steps(self._recreate_cm, function(*args, **kwargs))
            )
        return super().__call__(function)


def _steps(context: Any, generator: Generator) -> Generator:
    """The generator, each of whose steps runs in a context of its own."""
    step: Any = generator.send
    value: Any = None
    while True:
        try:
            with context():
                found = step(value)
        except StopIteration as end:
            return end.value
        try:
            step, value = generator.send, (yield found)
        except GeneratorExit:
            with context():
                generator.close()
            raise
        except BaseException as error:
            step, value = generator.throw, error


class no_grad(_Switch):  # noqa: N801 (PyTorch's name)
    """Nothing is recorded inside: as a context (`with no_grad():`) or decorator (`@no_grad()`).

    >>> import weft as torch
    >>> with torch.no_grad():
    ...     torch.is_grad_enabled()
    False
    """

    def __new__(cls, orig_func=None):
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)  # @no_grad without parentheses

    def __init__(self, orig_func=None):
        super().__init__(False)


class enable_grad(no_grad):  # noqa: N801
    """Recording is on inside, within `no_grad` too."""

    def __new__(cls, orig_func=None):
        return super().__new__(cls, orig_func)

    def __init__(self, orig_func=None):
        _Switch.__init__(self, True)


class inference_mode(_Switch):  # noqa: N801
    """Nothing is recorded inside, and never will be for what is made there."""

    def __new__(cls, mode=True):
        return cls()(mode) if callable(mode) else super().__new__(cls)

    def __init__(self, mode: bool = True):
        super().__init__(not mode)
        self._inference = bool(mode)

    def __enter__(self) -> None:
        self._outer = (mode.enabled, mode.inference, mode.reverse), self._outer
        mode.enabled = mode.reverse = not self._inference
        mode.inference = self._inference
        if self._inference:
            open_inference[:0] = (None,)

    def clone(self):
        """Another switch to the same setting."""
        return type(self)(self._inference)

    def _restore(self) -> None:
        (mode.enabled, mode.inference, mode.reverse), self._outer = self._outer
        if self._inference:
            del open_inference[:1]


class set_grad_enabled(_Switch):  # noqa: N801
    """Recording is on or off from now on; as a context, until its end."""

    def __init__(self, mode: bool):
        super().__init__(mode)
        _Switch.__enter__(self)

    def __enter__(self) -> None:
        _set(self._enabled)

    def __call__(self, function):
        self.__exit__()  # as a decorator it changes nothing but the function
        return super().__call__(function)

    def clone(self):
        """Another switch to the same setting. It is set at once."""
        return type(self)(self._enabled)

    _recreate_cm = clone
