import pytest
from on_device import HERE

import weft


@pytest.fixture
def without_arrays(monkeypatch):
    """On devices that prefer kernels to arrays, an operation that uses an array raises an error."""
    backend = weft.device(HERE).backend
    if backend.prefers_kernels:
        monkeypatch.setattr(type(backend), "as_array", _refuse)


def _refuse(*args):
    raise AssertionError("an array on the host is used")
