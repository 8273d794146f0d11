"""A short run of each hunt in interruptions.py."""

import subprocess
import sys
from pathlib import Path

import pytest

from weft.engine import memory

pytestmark = pytest.mark.skipif(
    bool(memory.FENCE), reason="the allocator of the tests is Python code, which may be interrupted"
)
HUNT = Path(__file__).with_name("interruptions.py")


def hunt(*arguments):
    return subprocess.run(
        [sys.executable, str(HUNT), *arguments], capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize(
    "work, limit", [("training", 40), ("compilation", 40), ("saving", 40), ("loading", 40)]
)
def test_an_exception_anywhere_leaves_everything_in_order(work, limit):
    run = hunt("--work", work, "--limit", str(limit))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 findings" in run.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no setitimer")
@pytest.mark.parametrize("work", ["training", "saving"])
def test_signals_at_random_leave_everything_in_order(work):
    run = hunt("--work", work, "--storm", "4")
    assert run.returncode == 0, run.stdout + run.stderr
