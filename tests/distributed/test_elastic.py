import json

import pytest

from weft.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record


@record
def divide(a, b=1):
    """A quotient."""
    return a / b


def test_record_keeps_the_function():
    assert divide(4, b=2) == 2 and divide.__name__ == "divide" and divide.__doc__ == "A quotient."
    with pytest.raises(ZeroDivisionError):
        divide(1, 0)


def test_record_writes_why_it_failed(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    with pytest.raises(ZeroDivisionError):
        divide(1, 0)
    written = json.loads((tmp_path / "error.json").read_text())["message"]
    assert written["message"] == "ZeroDivisionError: division by zero"
    assert "in divide" in written["extraInfo"]["py_callstack"]
    failure = ProcessFailure(0, 12, 1, str(tmp_path / "error.json"))
    error = ChildFailedError("train.py", {0: failure})
    assert error.get_first_failure() == (0, failure)
    assert "train.py FAILED" in str(error) and "division by zero" in str(error)


def test_signals_have_names(tmp_path):
    assert ProcessFailure(0, 12, -9, str(tmp_path / "missing")).signal_name() == "SIGKILL"
