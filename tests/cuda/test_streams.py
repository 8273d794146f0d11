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
