"""Counters and events of a running program, `torch.monitor`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any

STAT_EVENT = "torch.monitor.Stat"


class data_value_t:  # noqa: N801 (PyTorch's name)
    """For annotations: a value of an event, which is a string, a number or a bool."""


class Aggregation(IntEnum):
    """What a `Stat` makes of the numbers of a window."""

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


VALUE, MEAN, COUNT = Aggregation.VALUE, Aggregation.MEAN, Aggregation.COUNT
SUM, MAX, MIN = Aggregation.SUM, Aggregation.MAX, Aggregation.MIN

_AGGREGATES: dict[Aggregation, Callable[[list[float]], float]] = {
    VALUE: lambda samples: samples[-1] if samples else 0.0,
    MEAN: lambda samples: sum(samples) / len(samples) if samples else 0.0,
    COUNT: lambda samples: float(len(samples)),
    SUM: lambda samples: float(sum(samples)),
    MAX: lambda samples: max(samples, default=0.0),
    MIN: lambda samples: min(samples, default=0.0),
}


class Event:
    """Something that happened: `data` maps strings to strings, numbers or bools."""

    def __init__(self, name: str, timestamp: datetime, data: dict[str, Any]):
        if not isinstance(name, str) or not isinstance(timestamp, datetime):
            raise TypeError(f"Event: expected a str and a datetime, got {name!r} and {timestamp!r}")
        for key, value in data.items():
            if not isinstance(key, str) or not isinstance(value, (str, int, float)):
                raise TypeError(f"Event: expected data of strings, numbers and bools, got {key!r}: {value!r}")
        self.name, self.timestamp = name, timestamp
        self.data = dict(data)


class EventHandlerHandle:
    """Names a handler to `unregister_event_handler`."""

    def __init__(self, callback: Callable[[Event], None]):
        self._callback = callback


_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """`callback(event)` runs for each event that is logged.

    >>> handle = register_event_handler(lambda event: print(event.name, event.data))
    >>> log_event(Event("started", datetime.now(), {"step": 3}))
    started {'step': 3}
    >>> unregister_event_handler(handle)
    """
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Forget a handler."""
    if handler in _handlers:
        _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Give an event to all handlers."""
    for handler in list(_handlers):
        handler._callback(event)


class Stat:
    """Aggregates of the numbers that are added in each window of time; a window that ended is logged as an event.

    `get` gives the aggregates of the last window that ended. A window has at most `max_samples` numbers: it is then
    logged at once, and further numbers are dropped until the next window.
    """

    def __init__(
        self,
        name: str,
        aggregations: Sequence[Aggregation],
        window_size: timedelta,
        max_samples: int | None = None,
    ):
        self.name = name
        self._aggregations = tuple(Aggregation(each) for each in aggregations)
        self._seconds = window_size.total_seconds()
        self._max_samples = max_samples
        self._lock = threading.Lock()
        self._samples: list[float] = []
        self._full = False
        self._window = self._now()
        self._last = self._aggregated([])

    @property
    def count(self) -> int:
        """How many numbers the current window has."""
        return len(self._samples)

    def add(self, v: float) -> None:
        """Add a number to the current window."""
        with self._lock:
            ended = self._end_window()
            if not self._full:
                self._samples.append(float(v))
                if len(self._samples) == self._max_samples:
                    self._full = True
                    ended.append(self._take())
        self._log(ended)

    def get(self) -> dict[Aggregation, float]:
        """The aggregates of the last window that ended."""
        with self._lock:
            ended = self._end_window()
        self._log(ended)
        return dict(self._last)

    def _now(self) -> int:
        return int(time.time() / self._seconds)

    def _end_window(self) -> list[dict[Aggregation, float]]:
        now = self._now()
        if now == self._window:
            return []
        self._window, self._full = now, False
        return [self._take()] if self._samples else []

    def _take(self) -> dict[Aggregation, float]:
        self._last = self._aggregated(self._samples)
        self._samples = []
        return self._last

    def _aggregated(self, samples: list[float]) -> dict[Aggregation, float]:
        return {each: _AGGREGATES[each](samples) for each in self._aggregations}

    def _log(self, ended: list[dict[Aggregation, float]]) -> None:
        for values in ended:
            data = {f"{self.name}.{each.name.lower()}": value for each, value in values.items()}
            log_event(Event(STAT_EVENT, datetime.now(), data))


class TensorboardEventHandler:
    """Writes the aggregates of each `Stat` to a SummaryWriter of `torch.utils.tensorboard`, as scalars."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())


class _WaitCounterTracker(AbstractContextManager):
    """A wait that `_WaitCounter` would measure if a backend listened; none does."""

    def __exit__(self, *given: Any) -> None:
        return None

    def __enter__(self) -> None:  # type: ignore[override]
        return None


class _WaitCounter:
    """Marks code that waits."""

    def __init__(self, key: str):
        self.key = key

    def guard(self) -> _WaitCounterTracker:
        return _WaitCounterTracker()
