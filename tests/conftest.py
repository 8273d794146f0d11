import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Runs are repeatable; HYPOTHESIS_PROFILE=explore looks for new examples instead.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def run(tmp_path):
    """Runs `python *arguments` in an empty folder, with weft importable; gives the finished process."""

    def run(*arguments, input="", **environment):
        python_path = os.pathsep.join(filter(None, [str(ROOT), environment.pop("PYTHONPATH", "")]))
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, **environment, "PYTHONPATH": python_path},
            input=input,
            capture_output=True,
            text=True,
            timeout=600,
        )

    return run


@pytest.fixture
def run_weft(run):
    """The same for `weft *arguments`."""
    return lambda *arguments, **options: run("-m", "weft", *arguments, **options)
