import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from expected import draws
from hypothesis import Phase, settings

# Runs are repeatable; HYPOTHESIS_PROFILE=explore looks for new examples instead. With "unshrunk" a failure is reported
# as it was found, for tests/mutants.py, which only asks whether there is one.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.register_profile(
    "unshrunk", derandomize=True, deadline=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _draws(request):
    """Tests with the mark `may_raise` draw arguments that PyTorch may refuse, but not too many of them."""
    mark = request.node.get_closest_marker("may_raise")
    with draws(**mark.kwargs) if mark is not None else contextlib.nullcontext():
        yield


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
