"""XLA's devices: the tests of `xla/`, and those that every device has to pass, on the processor. They run in processes of their own."""

import importlib.util
import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")


def run_tests(run, names, **variables):
    variables |= {
        "TESTED_DEVICE": "xla:0",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # where JAX may be
    }
    done = run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", *(FOLDER / name for name in names), **variables
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]


def test_own_tests(run):
    run_tests(run, ["xla"])


def test_those_of_every_device(run):
    # Each launch runs at once, so that an index out of range raises its error in the call, as on the CPU.
    names = ["test_calls.py", "test_op_table.py", "test_properties.py"]
    run_tests(run, names, XLA_USE_EAGER_DEBUG_MODE="1", TESTED_STEP="8")
