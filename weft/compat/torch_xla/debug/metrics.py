"""`torch_xla.debug.metrics`: how many steps there were, and how many graphs ran and were compiled. Times are not measured."""

from __future__ import annotations

from ..core import xla_model

_before: dict[str, int] = {}  # the counters when they were cleared


def _counters() -> dict[str, int]:
    runs, compilations = xla_model.counts()
    found = {
        "CachedCompile": runs - compilations,
        "MarkStep": xla_model.steps,
        "UncachedCompile": compilations,
    }
    return {name: value - _before.get(name, 0) for name, value in found.items()}


def counter_names() -> list[str]:
    """The names of the counters that are not 0."""
    return [name for name, value in _counters().items() if value]


def counter_value(name: str) -> int | None:
    """The value of a counter; None for 0 and for unknown names."""
    return _counters().get(name) or None


def metric_names() -> list[str]:
    """The names of measured times: there are none."""
    return []


def metric_data(name: str) -> None:
    """A measured time: there is none."""


def metrics_report() -> str:
    """All counters as text."""
    return "".join(f"Counter: {name}\n  Value: {counter_value(name)}\n" for name in counter_names())


def short_metrics_report(counter_names: list | None = None, metric_names: list | None = None) -> str:
    """The named counters as text, or all."""
    if not counter_names:
        return metrics_report()
    return "".join(
        f"Counter: {name}\n  Value: {counter_value(name)}\n" for name in counter_names if counter_value(name)
    )


def clear_counters() -> None:
    """Count from 0."""
    values = {name: value + _before.get(name, 0) for name, value in _counters().items()}
    _before.update(values)


def clear_metrics() -> None:
    """Forget measured times, of which there are none."""


def clear_all() -> None:
    """Count from 0."""
    clear_counters()
