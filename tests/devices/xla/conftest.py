"""The tests of this folder need JAX. tests/devices/test_xla.py runs them in a process of their own, because JAX forbids forks."""

import os

import pytest

if not os.environ.get("TESTED_DEVICE", "").startswith("xla"):
    collect_ignore_glob = ["*.py"]


@pytest.fixture
def runner():
    """Counts what runs and what is compiled on the device."""
    import weft

    weft.zeros(1, device="xla").cpu()
    return weft.device("xla:0").backend.runner
