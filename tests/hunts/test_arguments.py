"""A short part of the hunt for wrong arguments: nothing is found, on either side of the fence."""

import subprocess
import sys
from pathlib import Path

import pytest

HUNT = Path(__file__).with_name("arguments.py")


@pytest.mark.parametrize("fence, seed, mutants", [("after", 1, 300), ("before", 2, 150)])
def test_nothing_is_found(fence, seed, mutants):
    # Several mutants of each call, because PyTorch needs most of the time to make the calls.
    options = f"--fence {fence} --seed {seed} --mutants {mutants} --samples 2 --changes 4".split()
    hunt = subprocess.run([sys.executable, HUNT, *options], capture_output=True, text=True, timeout=900)
    assert hunt.returncode == 0, hunt.stdout[-5000:] + hunt.stderr[-2000:]
    assert hunt.stdout.splitlines()[-1].startswith(f"{mutants} mutants")
