"""A short hunt with hostile numbers; the long one is `make hunt-numbers`."""

import os
import subprocess
import sys
from pathlib import Path

HUNT = Path(__file__).with_name("hostile_numbers.py")
ROOT = HUNT.parents[2]


def test_calls_with_hostile_numbers_end_as_in_pytorch():
    command = [sys.executable, HUNT, "--calls", "300", "--seed", "1000000"]
    hunt = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert hunt.returncode == 0, hunt.stdout[-5000:] + hunt.stderr[-5000:]
