import io
import threading

import pytest
import torch
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


def test_forked_calls_give_the_class_that_futures_derive_from():
    def program(library):
        forked = library.jit.fork(lambda x: x + 1, 2)
        future = library._C.Future([])
        following = future.then(lambda done: done.value() + 1)
        seen = []
        future.add_done_callback(lambda done: seen.append(done.value()))
        future.set_result(3)
        future.add_done_callback(lambda done: seen.append(done.value() + 10))
        failed = future.then(lambda done: 1 / 0)
        with pytest.raises(RuntimeError, match="error when running the callback: ZeroDivisionError"):
            failed.value()
        return (
            forked.value(),
            following.value(),
            seen,
            [type(each) is library._C.Future for each in (forked, following)],
            issubclass(library.futures.Future, library._C.Future),
        )

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


@pytest.mark.parametrize("lib", [torch, weft])
def test_errors_of_callbacks_and_of_parts(lib):
    done, failed = lib.futures.Future(), lib.futures.Future()
    done.set_result(3)
    failed.set_exception(ValueError("no"))
    for wait in (failed.wait, failed.value, lib.futures.collect_all([done, failed]).wait):
        with pytest.raises(ValueError, match="no"):
            wait()
    with pytest.raises(RuntimeError, match="error when running the callback: ZeroDivisionError"):
        done.then(lambda future: 1 / 0).wait()
    done.add_done_callback(lambda future: 1 / 0)  # only logged
    assert [each.value() for each in lib.futures.collect_all([done, done]).wait()] == [3, 3]
    assert lib.futures.collect_all([]).wait() == []
    for order in (1, -1):  # the error is that of the first in the list, not of the first in time
        parts = [lib.futures.Future() for _ in range(3)]
        together = lib.futures.collect_all(parts)
        for number in (0, 1, 2)[::order]:
            assert not together.done()
            if number < 2:
                parts[number].set_exception(ValueError(f"part {number}"))
            else:
                parts[number].set_result(1)
        assert together.done()
        with pytest.raises(ValueError, match="part 0"):
            together.value()
    with pytest.raises(RuntimeError, match="complete again"):
        done.set_result(4)
    with pytest.raises(AssertionError):
        lib.futures.Future().set_exception(3)
    with pytest.raises(ValueError, match="to have indices"):
        lib.futures.Future(devices=["cpu"])


def test_derived_futures_are_of_the_base_class():
    """Libraries ask for `type(future) is torch.Future`."""
    for library in (weft, torch):
        future = library.futures.Future()
        derived = [future.then(lambda done: done.value()), library.futures.collect_all([future])]
        assert type(future) is library.futures.Future
        assert [type(each) is library.Future for each in derived] == [True, True]
        future.set_result(1)
        assert derived[0].wait() == 1


@pytest.mark.parametrize("lib", [weft, torch])
def test_what_is_no_future_and_no_file(lib):
    for action in (
        lambda: lib.jit.wait(None),
        lambda: lib.futures.wait_all((None,)),
        lambda: lib.futures.collect_all((lib.futures.Future(), None)),
    ):
        with pytest.raises(RuntimeError, match="Future can't be None"):
            action()
    with pytest.raises(RuntimeError, match="Can not pickle torch.futures.Future"):
        lib.save(lib.futures.Future(), io.BytesIO())
