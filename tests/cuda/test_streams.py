"""Streams, which are names for the one queue of a device, and events, which tell the time."""

import threading

import pytest

import weft


def test_streams_are_chosen_for_each_thread():
    default, side = weft.cuda.default_stream(), weft.cuda.Stream()
    assert weft.cuda.current_stream() == default != side and isinstance(side, weft.Stream)
    assert default.cuda_stream == 0 and default.device == weft.device("cuda:0")
    found = []
    with weft.cuda.stream(side):
        assert weft.cuda.current_stream() == weft.accelerator.current_stream() == side
        thread = threading.Thread(target=lambda: found.append(weft.cuda.current_stream()))
        thread.start(), thread.join()
        with side, weft.cuda.stream(None):
            assert weft.cuda.current_stream() == side
        assert weft.cuda.current_stream() == side
    assert weft.cuda.current_stream() == default and found == [default]
    weft.accelerator.set_stream(side)
    assert weft.cuda.current_stream("cuda:0") == side
    weft.cuda.set_stream(default)
    with weft.Stream(device="cuda") as generic:
        assert weft.cuda.current_stream().stream_id == generic.stream_id
    with side, side:
        pass
    assert weft.cuda.current_stream() == default
    assert repr(default) == "<torch.cuda.Stream device=cuda:0 cuda_stream=0x0>"
    assert len({default, weft.cuda.default_stream(0), side}) == 2


def test_work_of_streams_is_in_order():
    x = weft.zeros(1000, device="cuda")
    first, second = weft.cuda.Stream(), weft.cuda.Stream()
    for k in range(20):
        with weft.cuda.stream((first, second)[k % 2]):
            x = x * 2 + 1
    event = first.record_event()
    second.wait_event(event)
    first.wait_stream(second)
    x.record_stream(first)
    first.synchronize()
    assert first.query() and event.query()
    assert x.tolist() == [2.0**20 - 1] * 1000


def test_events_tell_the_time():
    start, end = (weft.cuda.Event(enable_timing=True) for _ in range(2))
    assert start.query() and isinstance(start, weft.Event)
    start.synchronize()
    with pytest.raises(ValueError, match="must be recorded"):
        start.elapsed_time(end)
    x = weft.ones(200, 200, device="cuda")
    start.record()
    for _ in range(5):
        x = x @ x / 200
    end.record(weft.cuda.current_stream())
    end.synchronize()
    assert start.query() and end.query()
    assert 0 < start.elapsed_time(end) < 60_000 and start.elapsed_time(start) == 0
    assert end.elapsed_time(start) < 0
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(weft.cuda.current_stream().record_event())
    assert weft.Event(device="cuda", enable_timing=True).device == weft.device("cuda:0")
    with pytest.raises(NotImplementedError, match="torch.cuda.Event"):
        weft.cuda.Event(interprocess=True)


def test_streams_of_the_accelerator_and_of_the_cpu():
    assert weft.Stream().device == weft.Event().device == weft.device("cuda:0")
    assert weft.Stream().native_handle() == 0 and not weft.Stream().is_capturing()
    with pytest.raises(RuntimeError, match="cpu backend doesn't support events"):
        weft.Event("cpu").record()
    with pytest.raises(RuntimeError, match="does not match recording stream's device cpu"):
        weft.Event("cuda").record(weft.Stream("cpu"))


def test_priorities_and_handles():
    least, greatest = weft.cuda.Stream.priority_range()
    assert [weft.cuda.Stream(priority=p).priority for p in (greatest - 5, greatest, least, 7)] == [
        greatest,
        greatest,
        least,
        least,
    ]
    stream = weft.cuda.Stream()
    assert stream.__cuda_stream__() == (0, 0) and stream._as_parameter_.value is None
    same = weft.cuda.Stream(stream_id=stream.stream_id, device_index=0, device_type=stream.device_type)
    assert same == stream and hash(same) == hash(stream) and stream.device_type == 1
    assert stream != weft.cuda.Stream() and stream != 3
    event = weft.cuda.Event(blocking=True)
    assert repr(event) == "<torch.cuda.Event uninitialized>" and event.cuda_event == 0
    for method in (event.ipc_handle, lambda: weft.cuda.Event.from_ipc_handle(0, b"")):
        with pytest.raises(NotImplementedError, match="other processes"):
            method()


def test_streams_of_several_devices(second):
    here, there = weft.cuda.Stream(), weft.cuda.Stream(device=1)
    assert there.device == second and weft.cuda.default_stream(1).device == second
    with weft.cuda.stream(there):
        assert weft.cuda.current_device() == 1 and weft.cuda.current_stream() == there
        assert weft.cuda.current_stream(0) == weft.cuda.default_stream(0)
        with weft.cuda.stream(here):
            assert weft.cuda.current_device() == 0 and weft.cuda.current_stream(1) == there
        assert weft.cuda.current_device() == 1
    assert weft.cuda.current_device() == 0 and weft.cuda.current_stream(1) == weft.cuda.default_stream(1)
    weft.cuda.set_stream(there)
    assert weft.accelerator.current_device_index() == 1
    weft.cuda.set_stream(weft.cuda.default_stream(1))
    weft.cuda.set_device(0)
    weft.cuda.set_device(-1)
    assert weft.cuda.current_device() == 0
    assert not weft.cuda.can_device_access_peer(0, 1)
    with pytest.raises(AssertionError, match="Invalid device id"):
        weft.cuda.can_device_access_peer(0, 2)


def test_streams_of_other_libraries_are_waited_for(monkeypatch):
    waits = []
    backend = weft.device("cuda:0").backend
    monkeypatch.setattr(backend.runtime, "synchronize", lambda: waits.append(1))
    stream = weft.cuda.ExternalStream(0x1234)
    assert stream == weft.cuda.get_stream_from_external(0x1234) != weft.cuda.ExternalStream(5)
    assert stream.cuda_stream == 0x1234 and "cuda_stream=0x1234" in repr(stream)
    with weft.cuda.stream(stream):
        assert len(waits) == 1 and weft.cuda.current_stream() == stream
    assert len(waits) == 2
    weft.cuda.current_stream().wait_stream(stream)
    weft.cuda.Event().record(stream)
    assert stream.query() and len(waits) == 5
    weft.cuda.current_stream().wait_stream(weft.cuda.Stream())
    assert len(waits) == 5
