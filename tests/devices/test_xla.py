"""XLA's devices: the tests of `xla/`, and those that every device has to pass, on the processor. They run in processes of their own."""

import importlib.util
import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
@pytest.mark.parametrize("name", ["xla", "test_calls.py", "test_op_table.py", "test_properties.py"])
def test_on_xla(name, run):
    path = os.environ.get("PYTHONPATH", "")  # where JAX may be
    variables = {"TESTED_DEVICE": "xla:0", "TESTED_STEP": "4", "PYTHONPATH": path}
    if name != "xla":
        # Each launch runs at once, so that an index out of range raises its error in the call, as on the CPU.
        variables["XLA_USE_EAGER_DEBUG_MODE"] = "1"
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", FOLDER / name, **variables)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
