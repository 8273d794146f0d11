import functools
import traceback

import pytest

import weft
from weft.core.tracebacks import hide_in


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.delenv("WEFT_TRACEBACK", raising=False)


def functions(error):
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def caught(call):
    try:
        call()
    except RuntimeError as error:
        return error
    raise AssertionError("no error")


def mismatch(*ignored):
    return weft.ones(2) + weft.ones(3)


def test_frames_of_the_user_stay():
    layer = weft.nn.Linear(2, 2)
    layer.register_forward_pre_hook(mismatch)
    error = caught(lambda: layer(weft.ones(2)))
    assert len(functions(error)) > 5
    hide_in(error)
    assert functions(error) == ["caught", "<lambda>", "mismatch"]


def test_functions_of_the_library_that_weft_calls_go():
    def in_context():
        with weft.nn.utils.parametrize.cached():  # contextlib calls a generator of weft
            mismatch()

    error = caught(in_context)
    hide_in(error)
    assert functions(error) == ["caught", "in_context", "mismatch"]


def test_functions_of_the_library_that_the_user_calls_stay():
    @functools.singledispatch
    def dispatched(x):
        mismatch()

    error = caught(lambda: dispatched(1))
    hide_in(error)
    assert functions(error) == ["caught", "<lambda>", "wrapper", "dispatched", "mismatch"]


def test_errors_that_an_error_refers_to():
    def call():
        try:
            mismatch()
        except RuntimeError as error:
            raise RuntimeError("outer") from error

    group = ExceptionGroup("several", [caught(call)])
    hide_in(group)
    outer = group.exceptions[0]
    assert functions(outer) == ["caught", "call"]
    assert functions(outer.__cause__) == ["call", "mismatch"]


def test_an_error_that_refers_to_itself():
    error = caught(mismatch)
    error.__context__ = RuntimeError("other")
    error.__context__.__context__ = error
    hide_in(error)
    assert functions(error) == ["caught", "mismatch"]


def test_code_that_weft_writes_at_run_time_goes():
    layer = weft.nn.Linear(3, 4)
    for size in range(3, 30):  # calls of which templates and recorders are made
        layer(weft.ones(size, 3, requires_grad=True)).sum().backward()
    error = caught(lambda: layer(weft.ones(2, 5, requires_grad=True)))
    hide_in(error)
    assert functions(error) == ["caught", "<lambda>"]


def test_all_frames_if_the_user_wants_them(monkeypatch):
    monkeypatch.setenv("WEFT_TRACEBACK", "1")
    error = caught(mismatch)
    before = functions(error)
    hide_in(error)
    assert functions(error) == before and len(before) > 3


def test_an_error_with_frames_of_weft_only_keeps_them():
    error = caught(mismatch)
    error.__traceback__ = error.__traceback__.tb_next.tb_next
    before = functions(error)
    hide_in(error)
    assert functions(error) == before != []
