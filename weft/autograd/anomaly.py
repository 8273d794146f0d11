"""Anomaly mode: store the stack trace of each recorded operation, and raise at the first NaN in a backward pass."""

from __future__ import annotations

import contextlib
import traceback
import warnings
from typing import Any

from ..core.grad_mode import detours
from ..core.public import public
from ..core.restoring import Restoring
from ..core.warn import user_level

tracing = False  # whether new nodes store a stack trace
checking = False  # whether backward checks cotangents for NaN


def trace(node: Any) -> None:
    """Store the stack trace of the forward operation in `node.metadata`."""
    node.metadata["traceback_"] = traceback.format_stack()[:-3]


def report(node: Any) -> None:
    """Warn with the stack trace of the forward operation whose backward fails."""
    stack = node._notes.metadata.get("traceback_") if node._notes else None
    if stack is None:
        text = (
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
            "forward pass for more information."
        )
    else:
        text = f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(stack)}"
    warnings.warn(text, UserWarning, stacklevel=user_level())


class set_detect_anomaly(Restoring, contextlib.ContextDecorator):  # noqa: N801 (PyTorch's name)
    """Switch anomaly detection on or off; as a context manager, until the end of the context.

    While it is on, errors of backward come with the traceback of the forward step, and NaN in a cotangent raises
    RuntimeError (unless `check_nan` is False). It costs time: for debugging only.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self._outer = [(tracing, checking)]
        self._mode = mode, mode and check_nan
        _set(*self._mode)

    def __enter__(self) -> None:
        _set(*self._mode)

    def _restore(self) -> None:
        _set(*self._outer[-1])


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch anomaly detection on or off; `set_detect_anomaly` is the context for it."""
    _set(mode, mode and check_nan)


def _set(traced: bool, checked: bool) -> None:
    global tracing, checking
    tracing, checking = traced, checked
    detours[:] = [each for each in detours if each != "anomaly"] + ["anomaly"] * traced


class detect_anomaly(set_detect_anomaly):  # noqa: N801
    """A context in which anomaly detection is on.

    >>> import weft as torch
    >>> x = torch.zeros(1, requires_grad=True)
    >>> with torch.autograd.detect_anomaly(check_nan=False):
    ...     (x * 2).backward()
    """

    def __init__(self, check_nan: bool = True):
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            UserWarning,
            stacklevel=user_level(),
        )
        outer = tracing, checking
        super().__init__(True, check_nan)
        self._outer = [outer]
        _set(*outer)  # `__enter__` switches it on


@public("function")
def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on."""
    return tracing


@public("function")
def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks for NaN."""
    return checking
