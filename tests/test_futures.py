import threading

import pytest
from one_rank import same

import weft


def test_as_in_pytorch():
    def complete(library):
        future = library.futures.Future()
        before = future.done()
        following = future.then(lambda done: done.value() + 1)
        future.set_result(3)
        return (
            before,
            future.done(),
            future.wait(),
            following.wait(),
            library.futures.wait_all([future, following]),
        )

    def twice(library):
        future = library.futures.Future()
        future.set_result(1)
        future.set_result(1)

    def failed(library):
        future = library.futures.Future()
        future.set_exception(KeyError("x"))
        return future.wait()

    def failed_callback(library):
        future = library.futures.Future()
        following = future.then(lambda done: done.value())
        future.set_exception(KeyError("x"))
        return following.wait()

    for program in (
        complete,
        twice,
        failed,
        failed_callback,
        lambda library: library.futures.Future().value(),
    ):
        same(program)


def test_waiting_and_collecting():
    future = weft.futures.Future()
    collected = weft.futures.collect_all([future])
    seen = []
    future.add_done_callback(lambda done: seen.append(done.value()))
    threading.Timer(0.02, future.set_result, (5,)).start()
    assert future.wait() == 5 and collected.wait() == [future] and seen == [5]
    assert weft.futures.collect_all([]).wait() == []
    with pytest.raises(AssertionError):
        weft.futures.Future().set_exception(3)
