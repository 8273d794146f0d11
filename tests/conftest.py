import faulthandler
import functools
import gc
import importlib.util
import logging
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import several_ranks
from expected import marked
from hypothesis import Phase, settings
from hypothesis.internal.conjecture import providers

from weft.core.dispatch import watchers
from weft.engine import tiers


class _SkipWithoutOracle:
    """A finder for a platform that PyTorch has no wheel for: what imports it is skipped, a module of tests or a single test."""

    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            pytest.skip("PyTorch, the oracle of this test, is not installed", allow_module_level=True)


if importlib.util.find_spec("torch") is None:
    sys.meta_path.insert(0, _SkipWithoutOracle())

# Runs are repeatable; HYPOTHESIS_PROFILE=explore looks for new examples instead. With "unshrunk" a failure is reported
# as it was found, for tests/mutants.py, which only asks whether there is one.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.register_profile(
    "unshrunk", derandomize=True, deadline=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

# Hypothesis also draws the numbers and texts that it reads in the sources of the modules which happen to be loaded. Without them a test
# draws the same alone as after others, and no process reads 1600 sources first (20 s of 60 before the first test, AMD Zen 1).
if settings.get_current_profile_name() != "explore":
    providers._get_local_constants = lambda: providers._local_constants

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would the programs that they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]

# PyTorch's threads sleep while they wait for each other. By default they spin, and with two processes of tests on two cores the
# training of examples/train_digits.py then takes PyTorch 103 s instead of 28 s (AMD Zen 4, load 6). weft does not read this variable.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# The reports of pytest show weft's own frames, which the user of weft would not see (weft/compat/reports.py).
os.environ.setdefault("WEFT_TRACEBACK", "1")

# The processes that tests start find compiled bytecode. Without it `import weft` takes 0.9 s instead of 0.3 (AMD Zen 4).
# tests/mutants.py changes a file twice within a second, which Python does not notice, so it must not have bytecode.
if os.environ.get("HYPOTHESIS_PROFILE") != "unshrunk":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


# Tests with threads, processes, forks or locks, which can hang: each has a time limit of its own.
CAN_HANG = (
    "/autograd/test_modes.py", "/core/test_locks.py", "/engine/test_gemm.py", "/engine/test_host.py",
    "/engine/test_memory.py", "/engine/test_tiers.py", "/engine/test_workers.py", "/families/test_library.py", "/interop/test_pickling.py",
    "/multiprocessing/test_sharing.py", "/ops/test_random.py", "/serialization/test_save.py", "/test_overrides.py",
    "/test_safety.py", "/test_training.py", "/utils/data/test_dataloader.py", "/utils/data/test_parallel.py",
)  # fmt: skip
TIME_LIMIT = 300  # seconds; alone the slowest takes 20, under the fence on a busy machine several times that


# Most kernels of the tests are called a few times, so a thread that compiles each once more with all of LLVM's passes would take up to half
# of the processor's time (tests/ops/reductions 70 s with it and 38 without, tests/autograd 102 and 89, AMD Zen 3). The thread only takes kernels with many calls here, and the
# tests run the baseline code of the others, whose bits are the same. With TESTED_CODE=optimized all kernels are compiled with the passes
# before their first call: `make test` runs some tests so.
if os.environ.get("TESTED_CODE") == "optimized":
    tiers.in_background = lambda: True
else:
    tiers.QUIET_S = math.inf


@pytest.fixture(autouse=True, scope="session")
def _folder_of_all_workers(tmp_path_factory):
    if "PYTEST_XDIST_WORKER" in os.environ:
        several_ranks.shared_folder = tmp_path_factory.getbasetemp().parent


@pytest.fixture(autouse=True, scope="module")
def _little_is_left():
    """`tiers.finish()` compiles what the tests of one file have asked for, and garbage collection looks through what they left.

    A watcher that is left would let the calls of other files take longer ways.
    """
    yield
    tiers._pending.clear()
    _freeze()
    assert watchers == []


def pytest_collection_finish():
    _freeze()


def _freeze():
    """Exempt what lives, such as the modules of PyTorch and all tests, from garbage collection, which would look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _time_limit(request):
    """Raise TimeoutError in a test that hangs; if it hangs where no signal is handled, end the process."""
    if not request.path.as_posix().endswith(CAN_HANG):
        yield
        return

    def late(signum, frame):
        raise TimeoutError(f"the test takes more than {TIME_LIMIT} s")

    has_alarm = hasattr(signal, "SIGALRM")  # not on Windows
    outer = signal.signal(signal.SIGALRM, late) if has_alarm else None
    if has_alarm:
        signal.alarm(TIME_LIMIT)
    faulthandler.dump_traceback_later(TIME_LIMIT + 60, exit=True)
    try:
        yield
    finally:
        if has_alarm:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, outer)
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def _expected(request):
    """What a test says of calls that PyTorch refuses; see tests/expected.py."""
    with marked(request.node):
        yield


@pytest.fixture
def logged():
    """The messages that all loggers give from INFO on, in a list that grows."""

    class Kept(logging.Handler):
        def emit(self, record):
            messages.append(self.format(record))  # with the traceback, if there is one

    messages: list[str] = []
    root, kept = logging.getLogger(), Kept(logging.INFO)
    before = root.level
    root.addHandler(kept)
    root.setLevel(logging.INFO)
    yield messages
    root.setLevel(before)
    root.removeHandler(kept)


@pytest.fixture
def run(tmp_path):
    """Runs `python *arguments` in an empty folder, with weft importable; gives the finished process."""

    def run(*arguments, input="", **environment):
        python_path = os.pathsep.join(filter(None, [str(ROOT), environment.pop("PYTHONPATH", "")]))
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "WEFT_TRACEBACK": "", **environment, "PYTHONPATH": python_path},
            input=input,
            capture_output=True,
            text=True,
            timeout=600,
        )

    return run


@functools.cache
def _opencl_devices():
    """How many devices OpenCL has here. The driver stays out of this process."""
    code = "from weft.devices._gpu.opencl import device_count; print(device_count())"
    return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT).stdout)


@pytest.fixture
def run_on_opencl(run):
    """As `run`, for programs that need a device of OpenCL and must succeed; gives what they printed."""
    if not _opencl_devices():
        pytest.skip("no OpenCL driver: on Linux x86-64 intel-opencl-rt brings one")

    def run_successfully(*arguments, **environment):
        done = run(*arguments, **environment)
        assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
        return done.stdout

    return run_successfully


@pytest.fixture
def run_weft(run):
    """The same for `weft *arguments`."""
    return lambda *arguments, **options: run("-m", "weft", *arguments, **options)
