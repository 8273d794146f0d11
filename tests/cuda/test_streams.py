"""Streams, which are queues of a device, and events, which order them and tell the time.

The fixture `hold` stops a queue of OpenCL until the test lets it go on. What happens meanwhile shows whether another queue waits for it.
"""

import ctypes
import gc
import threading
from contextlib import ExitStack, contextmanager

import pytest

import weft
from weft.autograd import stream_order


@pytest.fixture
def hold(monkeypatch):
    """A context in which a stream does none of the work that it is given, until the function that the context gives is called, or its end."""
    runtime = weft.device("cuda:0").backend.runtime
    if runtime.target.name != "spirv":
        pytest.skip("only queues of OpenCL wait for events of the program")
    library, held = runtime._library, []
    library.clCreateUserEvent.restype = ctypes.c_void_p

    @contextmanager
    def held_stream(stream):
        error = ctypes.c_int()
        event = ctypes.c_void_p(library.clCreateUserEvent(runtime._context, ctypes.byref(error)))
        queue = runtime._named(stream.native_handle())
        assert not error.value and not library.clEnqueueBarrierWithWaitList(
            queue, 1, ctypes.byref(event), None
        )

        def go_on():
            if event in held:
                held.remove(event)
                library.clSetUserEventStatus(event, 0)

        held.append(event)
        try:
            yield go_on
        finally:
            go_on()

    yield held_stream
    for event in held:
        library.clSetUserEventStatus(event, 0)
    weft.cuda.synchronize()


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


def test_a_stream_does_not_wait_for_another_one(hold):
    x, first, second = weft.ones(5, device="cuda"), weft.cuda.Stream(), weft.cuda.Stream()
    weft.cuda.synchronize()
    with hold(first) as go_on:
        with weft.cuda.stream(first):
            y = x + 1
            event = first.record_event()
        with weft.cuda.stream(second):
            assert (x + 2).tolist() == [3] * 5  # reads wait for their stream alone
        assert (x + 3).tolist() == [4] * 5  # neither does the default stream wait
        assert not first.query() and not event.query() and second.query()
        second.synchronize()
        go_on()
        event.synchronize()
        assert event.query() and first.query()
    with weft.cuda.stream(first):
        assert y.tolist() == [2] * 5


WAITS = {
    "wait_stream": lambda after, before: after.wait_stream(before),
    "wait_event": lambda after, before: after.wait_event(before.record_event()),
    "Event.wait": lambda after, before: before.record_event().wait(after),
    "Event.wait of the current stream": lambda after, before: _wait_in(after, before.record_event()),
    "torch.Event": lambda after, before: _record(weft.Event("cuda"), before).wait(after),
}


def _wait_in(stream, event):
    with stream:
        event.wait()


def _record(event, stream):
    event.record(stream)
    return event


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_stream_waits_for_what_it_is_told_to(hold, wait):
    x, first, second = weft.ones(5, device="cuda"), weft.cuda.Stream(), weft.cuda.Stream()
    weft.cuda.synchronize()
    with hold(first) as go_on:
        with weft.cuda.stream(first):
            x.add_(1)
        with weft.cuda.stream(second):
            early = (x * 10).tolist()
            wait(second, first)
            assert second.query() is False  # the host does not wait
            late = x * 10
        with weft.cuda.stream(first):
            x.add_(100)  # given after the event, so nobody waits for it
        assert not second.query()
        go_on()
        with weft.cuda.stream(second):
            assert early == [10] * 5 and late[0].item() in (20, 1020)


def test_an_event_stands_for_what_was_given_before_it(hold):
    x, first, second = weft.ones(5, device="cuda"), weft.cuda.Stream(), weft.cuda.Stream()
    weft.cuda.synchronize()
    event = first.record_event()
    with hold(first):
        second.wait_event(event)
        with weft.cuda.stream(second):
            assert (x + 1).tolist() == [2] * 5
        event.synchronize()


def test_a_new_recording_of_an_event_replaces_the_old_one(hold):
    first, second = weft.cuda.Stream(), weft.cuda.Stream()
    weft.cuda.synchronize()
    event = weft.cuda.Event()
    with hold(first):
        first.record_event(event)
        assert not event.query()
        second.record_event(event)
        event.synchronize()


def test_deferred_work_belongs_to_the_stream_on_which_it_was_called(hold):
    x, side = weft.ones(300_000, device="cuda"), weft.cuda.Stream()
    weft.cuda.synchronize()
    with hold(side) as go_on:
        with weft.cuda.stream(side):
            y = x * 2 + 1
        assert not side.query()
        z = x * 3
        assert z[0].item() == 3
        go_on()
        weft.cuda.current_stream().wait_stream(side)
        assert (y + z).sum().item() == 6 * 300_000


def test_deferred_work_is_given_before_a_thread_turns_to_another_stream(hold):
    x, side = weft.ones(300_000, device="cuda"), weft.cuda.Stream()
    weft.cuda.synchronize()
    with hold(side) as go_on:
        y = x * 2 + 1
        with weft.cuda.stream(side):
            side.record_event()
        timer = threading.Timer(20, go_on)
        timer.start()
        assert y[0].item() == 3  # would wait for the timer if it were work of the side stream
        timer.cancel()
        assert not side.query()


def test_deferred_work_of_a_thread_stays_on_its_stream(hold):
    """Whoever computes it."""
    x, side, found = weft.ones(300_000, device="cuda"), weft.cuda.Stream(), []
    weft.cuda.synchronize()

    def work():
        event = weft.cuda.Event()
        event.record()  # of the default stream; all that is deferred is given now
        event.synchronize()
        found.append(side.query())

    with hold(side) as go_on, weft.cuda.stream(side):
        with weft.eager():
            x.add_(1)
        y = x * 2 + 1
        thread = threading.Thread(target=work)
        thread.start(), thread.join(60)
        assert found == [False]
        go_on()
        assert y[0].item() == 5


def test_each_thread_gives_work_to_its_own_stream(hold):
    x, side, found = weft.ones(5, device="cuda"), weft.cuda.Stream(), []
    weft.cuda.synchronize()
    with hold(side) as go_on, weft.cuda.stream(side):
        y = x + 1
        thread = threading.Thread(target=lambda: found.append((x + 2).tolist()))
        thread.start(), thread.join(60)
        assert found == [[3] * 5]
        go_on()
        assert y.tolist() == [2] * 5


def test_synchronize_waits_for_all_streams(hold):
    side = weft.cuda.Stream()
    weft.cuda.synchronize()
    with hold(side) as go_on:
        event = side.record_event()
        timer = threading.Timer(0.05, go_on)
        timer.start()
        weft.cuda.synchronize()
        assert event.query()


# ---- Memory -----------------------------------------------------------------------------------------------------------------


def test_memory_of_a_stream_is_given_to_no_other_one(hold):
    side = weft.cuda.Stream()
    weft.cuda.synchronize()
    x = weft.ones(5000, device="cuda")
    with hold(side):
        with weft.cuda.stream(side):
            y = x + 1
            address = y.data_ptr()
            del y  # its kernel has not run
            again = weft.empty(5000, device="cuda")
            assert again.data_ptr() == address  # work of the stream is in order
            del again
        others = [weft.full((5000,), 7.0, device="cuda") for _ in range(20)]
        assert address not in [each.data_ptr() for each in others]
    assert all(each.tolist() == [7] * 5000 for each in others)
    with weft.cuda.stream(side):
        assert weft.empty(5000, device="cuda").data_ptr() == address
    segments = {each["stream"] for each in weft.cuda.memory_snapshot()}
    assert segments >= {0, side.cuda_stream}


@pytest.mark.parametrize("records", [True, False])
def test_record_stream_keeps_memory_until_the_stream_is_done(hold, records):
    """Without it the memory is given to the next tensor at once."""
    side = weft.cuda.Stream()
    x = weft.ones(5000, device="cuda")
    weft.cuda.synchronize()
    before = weft.cuda.memory_allocated()
    with hold(side) as go_on:
        with weft.cuda.stream(side):
            y = x + 1
        if records:
            x.record_stream(side)
        address = x.data_ptr()
        nbytes = -(-x.nbytes // 512) * 512
        del x
        stats = weft.cuda.memory_stats()
        assert stats["active_bytes.all.current"] - stats["allocated_bytes.all.current"] == records * nbytes
        assert weft.cuda.memory_allocated() == before  # the result of the addition has taken its place
        states = [
            block["state"]
            for segment in weft.cuda.memory_snapshot()
            for block in segment["blocks"]
            if block["address"] == address
        ]
        assert states == ["active_awaiting_free" if records else "inactive"]
        other = weft.full((5000,), 7.0, device="cuda")
        assert (other.data_ptr() == address) is not records
        weft.cuda.current_stream().synchronize()
        go_on()
        side.synchronize()
    with weft.cuda.stream(side):
        assert y.tolist() == [2.0 if records else 8.0] * 5000
    del other
    stats = weft.cuda.memory_stats()
    assert stats["active_bytes.all.current"] == stats["allocated_bytes.all.current"]
    assert address in [each.data_ptr() for each in [weft.empty(5000, device="cuda") for _ in range(2)]]


def test_record_stream_of_its_own_stream_and_of_views(hold):
    side = weft.cuda.Stream()
    x = weft.ones(5000, device="cuda")
    address = x.data_ptr()
    x.record_stream(weft.cuda.current_stream())
    weft.cuda.synchronize()
    with hold(side):
        x[10:20].record_stream(side)
        x[10:20].record_stream(side)
        y = weft.cuda.Stream()
        x.record_stream(y)
        side.record_event()
        del x
        assert weft.empty(5000, device="cuda").data_ptr() != address
    weft.cuda.synchronize()
    with pytest.raises(RuntimeError, match="unknown parameter type"):
        weft.ones(2, device="cuda").record_stream(3)
    with pytest.raises(NotImplementedError, match="aten::record_stream"):
        weft.ones(2).record_stream(side)


def test_deferred_work_in_place_stays_in_the_memory_of_its_stream():
    """Otherwise new content of a tensor may get other memory, which then would be that of another stream."""
    side = weft.cuda.Stream()
    with weft.cuda.stream(side):
        x = weft.rand(300_000, device="cuda")
    weft.cuda.current_stream().wait_stream(side)
    address = x._storage.ptr
    x.mul_(2).add_(1)
    assert x._storage.ptr == address


def test_reductions_of_two_streams_share_no_memory(hold, monkeypatch):
    """A large reduction has intermediate results in memory. Here the stream is held between its two launches."""
    n, side = 1 << 20, weft.cuda.Stream()
    ones, twos = weft.ones(n, device="cuda"), weft.full((n,), 2.0, device="cuda")
    ones.sum(), weft.cuda.synchronize()
    runtime, launches, contexts = weft.device("cuda:0").backend.runtime, [], ExitStack()
    queue = runtime.queue

    def watched():
        if queue() == side.native_handle():
            launches.append(1)
            if len(launches) == 2:
                contexts.enter_context(hold(side))
        return queue()

    monkeypatch.setattr(runtime, "queue", watched)
    with contexts, weft.cuda.stream(side):
        total = ones.sum()
        assert len(launches) == 2
        with weft.cuda.stream(weft.cuda.default_stream()):
            for _ in range(3):
                assert twos.sum().item() == 2 * n
    with weft.cuda.stream(side):
        assert total.item() == n


def test_empty_cache_takes_the_memory_of_all_streams():
    side = weft.cuda.Stream()
    with weft.cuda.stream(side):
        x = weft.ones(30 << 20, dtype=weft.uint8, device="cuda")
    side.synchronize()
    before = weft.cuda.memory_reserved()
    del x
    gc.collect()
    weft.cuda.empty_cache()
    assert weft.cuda.memory_reserved() <= before - (30 << 20)


def test_memory_that_is_lent_belongs_to_the_stream_that_is_named():
    side = weft.cuda.Stream()

    def stream_of(address):
        (found,) = [
            segment["stream"]
            for segment in weft.cuda.memory_snapshot()
            if segment["address"] <= address < segment["address"] + segment["total_size"]
        ]
        weft.cuda.caching_allocator_delete(address)
        return found

    alloc = weft.cuda.caching_allocator_alloc
    assert stream_of(alloc(2000)) == stream_of(alloc(2000, stream=0)) == 0
    assert [stream_of(alloc(2000, stream=each)) for each in (side, side.cuda_stream)] == [
        side.cuda_stream
    ] * 2
    with weft.cuda.stream(side):
        assert stream_of(alloc(2000, 0)) == side.cuda_stream
    with pytest.raises(TypeError, match="Invalid type for stream argument"):
        alloc(2000, stream="0")


# ---- Copies, graphs, other libraries ------------------------------------------------------------------------------------------


def test_copies_from_pinned_memory_are_work_of_the_current_stream(hold):
    side = weft.cuda.Stream()
    source, target = weft.full((1000,), 5.0).pin_memory(), weft.zeros(1000, device="cuda")
    weft.cuda.synchronize()
    with hold(side) as go_on:
        with weft.cuda.stream(side):
            target.copy_(source, non_blocking=True)
        assert not side.query() and target.sum().item() == 0
        del source
        weft.full((1000,), 6.0).pin_memory()  # not the same memory, because the copy still reads it
        go_on()
        with weft.cuda.stream(side):
            assert target.sum().item() == 5000


def test_a_replay_is_work_of_the_current_stream(hold):
    x, side, graph = weft.ones(100, device="cuda"), weft.cuda.Stream(), weft.cuda.CUDAGraph()
    with weft.cuda.graph(graph):
        other = weft.cuda.Stream()  # captured work of all streams is one queue
        other.wait_stream(weft.cuda.current_stream())
        with weft.cuda.stream(other):
            y = x + 1
        weft.cuda.current_stream().wait_stream(other)
        z = y * 2
    weft.cuda.synchronize()
    with hold(side) as go_on:
        with weft.cuda.stream(side):
            x.fill_(4)
            graph.replay()
        assert not side.query()
        go_on()
        with weft.cuda.stream(side):
            assert z.sum().item() == 1000


def test_a_capture_waits_for_no_event_from_before():
    before, graph = weft.cuda.Stream(), weft.cuda.CUDAGraph()
    event = before.record_event()
    with weft.cuda.graph(graph):
        with pytest.raises(weft.AcceleratorError, match="dependency created on uncaptured work"):
            weft.cuda.current_stream().wait_event(event)
        inside = weft.cuda.current_stream().record_event()
    for ask in (inside.query, inside.synchronize, lambda: before.wait_event(inside)):
        with pytest.raises(weft.AcceleratorError, match="last recorded in a capturing stream"):
            ask()


def test_dlpack_orders_streams(hold):
    first, second = weft.cuda.Stream(), weft.cuda.Stream()
    x = weft.ones(5, device="cuda")
    weft.cuda.synchronize()
    with hold(first) as go_on:
        with weft.cuda.stream(first):
            y = x + 1
            y.__dlpack__(stream=-1)
            y.__dlpack__(stream=first.cuda_stream)
            assert second.query()
            y.__dlpack__(stream=second.cuda_stream)
        assert not second.query()
        with weft.cuda.stream(second):
            z = weft.from_dlpack(y) * 10
        go_on()
        with weft.cuda.stream(second):
            assert z.tolist() == [20] * 5
        assert weft.cuda.default_stream().query()
    with hold(first):
        with weft.cuda.stream(first):
            y.__dlpack__()  # for the default stream
        assert not weft.cuda.default_stream().query()


def test_the_current_stream_is_that_of_dlpack():
    given, side = [], weft.cuda.Stream()

    class Other:
        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, stream, **options):
            given.append(stream)
            return weft.ones(2, device="cuda").__dlpack__(stream=stream)

    weft.from_dlpack(Other())
    with weft.cuda.stream(side):
        weft.from_dlpack(Other())
    assert given == [1, side.cuda_stream]


def test_the_cuda_array_interface_orders_streams(hold):
    side, x = weft.cuda.Stream(), weft.ones(5, device="cuda")
    weft.cuda.synchronize()

    class Other:
        __cuda_array_interface__ = x.__cuda_array_interface__ | {"version": 3, "stream": side.cuda_stream}

    with hold(side):
        weft.asarray(Other())
        assert not weft.cuda.current_stream().query()
    weft.cuda.synchronize()
    with hold(side) as go_on, weft.cuda.stream(side):
        timer = threading.Timer(0.05, go_on)
        y = x + 1
        timer.start()
        y.__cuda_array_interface__  # noqa: B018 (the host waits, because the description names no stream)
        assert side.query()


def test_streams_of_other_libraries(hold):
    """Here another stream of weft stands for one."""
    x, made = weft.ones(5, device="cuda"), weft.cuda.Stream()
    weft.cuda.synchronize()
    stream = weft.cuda.ExternalStream(made.cuda_stream)
    assert (
        stream == weft.cuda.get_stream_from_external(made.cuda_stream)
        and stream.cuda_stream == made.cuda_stream
    )
    assert f"cuda_stream={made.cuda_stream:#x}" in repr(stream) and stream != weft.cuda.current_stream()
    with hold(made) as go_on:
        with weft.cuda.stream(stream):
            assert weft.cuda.current_stream() == stream
            y = x + 1
        assert not made.query() and not stream.query()
        weft.cuda.current_stream().wait_stream(stream)
        assert not weft.cuda.current_stream().query()
        go_on()
        assert y.tolist() == [2] * 5
    for number in (5, -1):
        with pytest.raises(ValueError, match="no handle of a stream"):
            weft.cuda.ExternalStream(number)


# ---- Autograd -----------------------------------------------------------------------------------------------------------------


def _on(stream, function):
    with weft.cuda.stream(stream):
        return function()


def test_derivatives_run_on_the_streams_of_the_operations():
    first, second = weft.cuda.Stream(), weft.cuda.Stream()
    a, b = (weft.full((50,), value, device="cuda", requires_grad=True) for value in (0.5, 0.25))
    current, seen = weft.cuda.current_stream(), {}
    for each in (first, second):
        each.wait_stream(current)
    y, z = _on(first, lambda: (a * b).exp()), _on(second, lambda: (a + b).sin())
    for name, tensor in (("y", y), ("z", z)):
        tensor.register_hook(lambda ct, name=name: seen.update({name: weft.cuda.current_stream()}))
    for each in (first, second):
        current.wait_stream(each)
    (y * z).sum().backward()
    assert seen == {"y": first, "z": second} and weft.cuda.current_stream() == current
    x, w = (each.detach().cpu().requires_grad_() for each in (a, b))
    ((x * w).exp() * (x + w).sin()).sum().backward()
    for mine, wanted in ((a, x), (b, w)):
        weft.testing.assert_close(mine.grad.cpu(), wanted.grad)


def test_a_backward_pass_waits_for_the_streams_between_which_cotangents_go(hold):
    side = weft.cuda.Stream()
    a = weft.full((50,), 2.0, device="cuda", requires_grad=True)
    current = weft.cuda.current_stream()
    side.wait_stream(current)
    for held, other in ((side, current), (current, side)):  # which waits for the gradient; for the cotangent
        y = _on(side, lambda: a * a)
        current.wait_stream(side)
        loss = (y * 3).sum()
        weft.cuda.synchronize()
        a.grad = None
        with hold(held) as go_on:
            loss.backward()
            assert not other.query()
            go_on()
            assert a.grad.tolist() == [12] * 50


def test_branches_of_a_backward_pass_do_not_wait_for_each_other(hold):
    """Neither branch needs anything of the other, so one of them runs while the other is held."""
    first, second = weft.cuda.Stream(), weft.cuda.Stream()
    a, b = (weft.ones(50, device="cuda", requires_grad=True) for _ in range(2))
    current, marks = weft.cuda.current_stream(), []
    for each in (first, second):
        each.wait_stream(current)
    y, z = _on(first, lambda: a * 2), _on(second, lambda: b * 3)
    for each in (first, second):
        current.wait_stream(each)
    weft.cuda.synchronize()
    a.register_hook(lambda ct: marks.append(weft.cuda.current_stream().record_event()))
    with hold(second):  # its nodes are newer, so they come first
        weft.autograd.backward([y, z], [weft.ones(50, device="cuda") for _ in range(2)])
        marks[0].synchronize()
        assert not second.query()
    assert a.grad.tolist() == [2] * 50 and b.grad.tolist() == [3] * 50


def test_a_gradient_of_two_streams_is_a_sum_of_both(hold):
    first, second = weft.cuda.Stream(), weft.cuda.Stream()
    a = weft.ones(50, device="cuda", requires_grad=True)
    current = weft.cuda.current_stream()
    for held in (first, second):
        for each in (first, second):
            each.wait_stream(current)
        y, z = _on(first, lambda: a * 2), _on(second, lambda: a * 3)
        for each in (first, second):
            current.wait_stream(each)
        weft.cuda.synchronize()
        a.grad = None
        with hold(held) as go_on:
            (y + z).sum().backward()
            threading.Timer(0.05, go_on).start()
            assert a.grad.tolist() == [5] * 50


def test_memory_of_cotangents_is_kept_for_the_stream_that_reads_them(hold):
    first, second = weft.cuda.Stream(), weft.cuda.Stream()
    a = weft.ones(5000, device="cuda", requires_grad=True)
    current = weft.cuda.current_stream()
    second.wait_stream(current)
    y = _on(second, lambda: a * 2)
    first.wait_stream(second)
    z = _on(first, lambda: y * 3)
    current.wait_stream(first)
    loss = z.sum()
    weft.cuda.synchronize()
    with hold(second):
        loss.backward()  # the cotangent of y is made on the first stream and read on the second
        others = _on(first, lambda: [weft.full((5000,), 7.0, device="cuda") for _ in range(10)])
        first.synchronize()
    assert a.grad.tolist() == [6] * 5000 and all(each[0].item() == 7 for each in others)


def test_memory_of_gradients_is_kept_for_the_stream_that_calls_backward(hold):
    side = weft.cuda.Stream()
    a = weft.ones(5000, device="cuda", requires_grad=True)
    current = weft.cuda.current_stream()
    side.wait_stream(current)
    y = _on(side, lambda: a * 2)
    current.wait_stream(side)
    y.sum().backward()
    weft.cuda.synchronize()
    with hold(current):
        used = a.grad * 10
        a.grad = None
        others = _on(side, lambda: [weft.full((5000,), 7.0, device="cuda") for _ in range(10)])
        side.synchronize()
    assert used.tolist() == [20] * 5000 and all(each[0].item() == 7 for each in others)


def test_streams_of_old_nodes_are_forgotten(hold, monkeypatch):
    """Their work is complete before the current stream goes on."""
    monkeypatch.setattr(stream_order, "MOST_INTERVALS", 4)
    monkeypatch.setattr(stream_order, "_intervals", [])
    side, a, seen = weft.cuda.Stream(), weft.zeros(50, device="cuda", requires_grad=True), []
    side.wait_stream(weft.cuda.current_stream())
    y = _on(side, lambda: (a * 2).exp())
    y.register_hook(lambda ct: seen.append(weft.cuda.current_stream()))
    for _ in range(6):
        z = a * 3
        _on(side, lambda z=z: z * 2)
    assert len(stream_order._intervals) <= 4
    with hold(side) as go_on:
        timer = threading.Timer(0.05, go_on)
        timer.start()
        y.backward(weft.ones(50, device="cuda"))
        assert side.query() and a.grad.tolist() == [2] * 50
    assert seen == [weft.cuda.default_stream()]


def test_backward_on_another_stream_than_the_operations(hold):
    side = weft.cuda.Stream()
    a = weft.ones(50, device="cuda", requires_grad=True)
    y = (a * 2).sum()
    weft.cuda.synchronize()
    seen = []
    a.register_hook(lambda ct: seen.append(weft.cuda.current_stream()))
    with hold(weft.cuda.current_stream()) as go_on, weft.cuda.stream(side):
        y.backward()
        assert not side.query()
        go_on()
        assert a.grad.tolist() == [2] * 50
    assert seen == [weft.cuda.default_stream()]


def test_backward_in_another_thread_waits_for_the_streams_of_the_operations(hold):
    side = weft.cuda.Stream()
    a = weft.zeros(50, device="cuda", requires_grad=True)
    ones = weft.ones(50, device="cuda")
    weft.cuda.synchronize()
    with hold(side) as go_on:
        y = _on(side, lambda: (a * 2).exp())  # whose derivative reads the result
        thread = threading.Thread(target=y.backward, args=(ones,))
        thread.start(), thread.join(60)
        assert not any(weft.cuda.current_stream().query() for _ in range(200))
        go_on()
        weft.cuda.synchronize()
        assert a.grad.tolist() == [2] * 50


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
    assert weft.Stream().native_handle() != 0 and not weft.Stream().is_capturing()
    assert weft.cuda.default_stream().native_handle() == 0
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
    assert (
        stream.__cuda_stream__() == (0, stream.cuda_stream)
        and stream._as_parameter_.value == stream.cuda_stream
    )
    assert weft.cuda.default_stream().__cuda_stream__() == (0, 0)
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
