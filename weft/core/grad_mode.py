"""Grad mode and inference mode: context managers and decorators that switch recording on and off."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import warnings
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from .restoring import Restoring
from .warn import user_level

F = TypeVar("F", bound=Callable[..., Any])


class _Mode(threading.local):
    enabled = True
    inference = False
    reverse = True  # False under no_grad; operations are then recorded only for an open level of forward mode
    forward: Any = None  # the context of the forward of a custom Function that runs, see `core/uncounted.py`


mode = _Mode()
open_levels: list[int] = []  # of forward mode, outermost first
open_inference: list[None] = []  # one entry for each active inference mode, of all threads
# While this list is not empty, the recorders of plans (autograd/recorders.py) are not used. It has an entry for each open level of
# forward mode, each context with hooks on saved tensors, and each active anomaly mode, of all threads.
detours: list[str] = []


class InferenceVersion(int):
    """The version of storages allocated in inference mode. Writes are not counted, and are allowed in inference mode only."""

    def __add__(self, one: int) -> InferenceVersion:
        if not mode.inference:
            raise RuntimeError(
                "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
                "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
            )
        return self

    def __pos__(self) -> int:
        """Raise an error when a node saves the tensor for backward, because saving stores `+version`."""
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
            "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
            "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
        )


INFERENCE_VERSION = InferenceVersion(0)


def _set(enabled: bool) -> None:
    """Switch recording on or off. Inference mode never records."""
    mode.enabled = (enabled or bool(open_levels)) and not mode.inference
    mode.reverse = enabled


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require grad are recorded."""
    return mode.enabled and mode.reverse


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on."""
    return mode.inference


class _Switch(Restoring, contextlib.ContextDecorator):
    """Sets the mode on entry and restores it on exit. It is reentrant.

    As a decorator of a generator, it applies while the generator runs, and not between its steps.
    """

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        # A linked list of the modes to restore, the innermost entry first.
        self._outer: Any = None

    def clone(self) -> Any:
        """Another switch to the same setting."""
        made: Any = type(self)
        return made() if made in (no_grad, enable_grad) else made(self._enabled)

    def _recreate_cm(self):
        return self.clone() if type(self) in (no_grad, enable_grad) else self

    def __enter__(self) -> None:
        recorded = (self._enabled or bool(open_levels)) and not mode.inference
        self._outer = (mode.enabled, mode.inference, mode.reverse), self._outer
        mode.enabled, mode.reverse = recorded, self._enabled

    def _restore(self) -> None:
        (mode.enabled, mode.inference, mode.reverse), self._outer = self._outer

    def __call__(self, function: F) -> F:
        if isinstance(function, type):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
                "the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=user_level(),
            )
            function.__init__ = self(function.__init__)  # type: ignore[misc]
            return function
        if inspect.isgeneratorfunction(function):
            return functools.wraps(function)(  # type: ignore[return-value]
                lambda *args, **kwargs: _steps(self._recreate_cm, function(*args, **kwargs))
            )
        return super().__call__(function)


def _steps(context: Any, generator: Generator) -> Generator:
    """A generator that runs each step of `generator` in a new context."""
    step: Any = generator.send
    value: Any = None
    while True:
        try:
            with context():
                yielded = step(value)
        except StopIteration as end:
            return end.value
        try:
            step, value = generator.send, (yield yielded)
        except GeneratorExit:
            with context():
                generator.close()
            raise
        except BaseException as error:
            step, value = generator.throw, error


class no_grad(_Switch):  # noqa: N801 (PyTorch's name)
    """Switch recording off, as a context (`with no_grad():`) or as a decorator (`@no_grad()`).

    >>> import weft as torch
    >>> with torch.no_grad():
    ...     torch.is_grad_enabled()
    False
    """

    def __new__(cls, orig_func: Any = None) -> Any:
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)  # @no_grad without parentheses

    def __init__(self, orig_func: Any = None) -> None:
        super().__init__(False)


class enable_grad(no_grad):  # noqa: N801
    """Switch recording on, also inside `no_grad`."""

    def __new__(cls, orig_func: Any = None) -> Any:
        return super().__new__(cls, orig_func)

    def __init__(self, orig_func: Any = None) -> None:
        _Switch.__init__(self, True)


class inference_mode(_Switch):  # noqa: N801
    """Switch recording off, and create tensors that can never be recorded."""

    def __new__(cls, mode: Any = True) -> Any:
        return cls()(mode) if callable(mode) else super().__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)
        self._inference = bool(mode)

    def __enter__(self) -> None:
        self._outer = (mode.enabled, mode.inference, mode.reverse), self._outer
        mode.enabled = mode.reverse = not self._inference
        mode.inference = self._inference
        if self._inference:
            open_inference[:0] = (None,)

    def clone(self) -> Any:
        """Another switch to the same setting."""
        return type(self)(self._inference)

    def _restore(self) -> None:
        (mode.enabled, mode.inference, mode.reverse), self._outer = self._outer
        if self._inference:
            del open_inference[:1]


class set_grad_enabled(_Switch):  # noqa: N801
    """Switch recording on or off; as a context manager, until the end of the context."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        _Switch.__enter__(self)

    def __enter__(self) -> None:
        _set(self._enabled)

    def __call__(self, function: F) -> F:
        self.__exit__()  # undo the switch of `__init__`, because a decorator only applies inside the function
        return super().__call__(function)

    def clone(self) -> Any:
        """Another switch to the same setting, which takes effect immediately."""
        return type(self)(self._enabled)

    _recreate_cm = clone
