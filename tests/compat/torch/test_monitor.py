"""Counters and events of a running program."""

import time
from datetime import datetime, timedelta

import pytest
import torch.monitor

import weft.monitor

BOTH = pytest.mark.parametrize("monitor", [torch.monitor, weft.monitor])


@BOTH
def test_a_window_that_ended_is_logged(monitor):
    events = []
    handle = monitor.register_event_handler(events.append)
    kinds = [monitor.SUM, monitor.COUNT, monitor.MEAN, monitor.MIN, monitor.MAX]
    stat = monitor.Stat("seconds", kinds, timedelta(hours=5), 3)
    try:
        for value in (1.0, 3.0, 5.0, 7.0):
            stat.add(value)
        assert (stat.name, stat.count) == ("seconds", 0)  # the window is full: the fourth was dropped
        found = {kind.name: value for kind, value in stat.get().items()}
        assert found == {"SUM": 9.0, "COUNT": 3.0, "MEAN": 3.0, "MIN": 1.0, "MAX": 5.0}
        (event,) = events
        assert event.name == monitor.STAT_EVENT
        assert event.data["seconds.sum"] == 9.0
        assert isinstance(event.timestamp, datetime)
    finally:
        monitor.unregister_event_handler(handle)


@BOTH
def test_windows_of_time(monitor):
    """Windows end at whole multiples of their length, so that one may end within any two calls: one try is enough."""

    def ends_between_the_calls():
        stat = monitor.Stat("time", [monitor.Aggregation.MEAN], timedelta(milliseconds=20))
        stat.add(2.0)
        time.sleep(0.03)
        stat.add(4.0)
        return (list(stat.get().values()), stat.count) == ([2.0], 1)

    assert any(ends_between_the_calls() for _ in range(100))


@BOTH
def test_events(monitor):
    class Writer:
        def __init__(self):
            self.written = []

        def add_scalar(self, name, value, walltime):
            self.written.append((name, value, walltime))

    writer = Writer()
    handle = monitor.register_event_handler(monitor.TensorboardEventHandler(writer))
    monitor.log_event(monitor.Event("other", datetime.fromtimestamp(100), {"a": 1}))
    monitor.log_event(monitor.Event(monitor.STAT_EVENT, datetime.fromtimestamp(100), {"a": 1.5}))
    monitor.unregister_event_handler(handle)
    monitor.log_event(monitor.Event(monitor.STAT_EVENT, datetime.fromtimestamp(100), {"a": 2.5}))
    assert writer.written == [("a", 1.5, 100.0)]
    with pytest.raises(TypeError):
        monitor.Event("x", datetime.now(), {"a": [1]})
    with monitor._WaitCounter("waits").guard() as nothing:
        assert nothing is None
