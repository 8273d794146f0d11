import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import weft
from weft.engine import workers
from weft.engine.memory import FENCE
from weft.ops.linalg.matmul import MM

BIG = 2_000_000  # large enough that the loops are shared


@pytest.fixture
def threads():
    before = weft.get_num_threads()
    yield weft.set_num_threads
    weft.set_num_threads(before)


@pytest.mark.parametrize("wrong", [0, -1])
def test_at_least_one_thread(wrong):
    with pytest.raises(RuntimeError, match="positive"):
        weft.set_num_threads(wrong)


@pytest.mark.parametrize("wrong", ["2", 2.0, None, True])
def test_threads_are_counted_in_ints(wrong):
    with pytest.raises(TypeError, match="expects an int"):
        weft.set_num_threads(wrong)


def test_affinity_limits_the_default():
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system has no affinity")
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); import weft; print(weft.get_num_threads())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "1"


def test_every_number_of_threads_computes_the_same(threads):
    x = weft.arange(BIG, dtype=weft.float32)
    want = None
    for count in (1, 2, 3, 7):
        threads(count)
        got = (x * 3 + 1).sum().item()
        want = got if want is None else want
        assert got == want


def test_python_threads_may_compute_at_once(threads):
    threads(2)
    failures = []

    def work(seed):
        x = weft.full((BIG // 2,), float(seed))
        for _ in range(10):
            if (x + 1).sum().item() != (seed + 1) * (BIG // 2):
                failures.append(seed)

    running = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not failures


def _child(queue):
    x = weft.ones(BIG)
    queue.put((x + x).sum().item())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_have_workers_of_their_own(threads, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    threads(2)
    (weft.ones(BIG) + 1).sum()  # the parent's workers exist
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    assert queue.get(timeout=300) == 2 * BIG
    child.join()


@pytest.mark.skipif(bool(FENCE), reason="the fence frees memory in Python, where finalizers swallow Ctrl-C")
def test_ctrl_c_arrives_between_kernels():
    code = (
        "import signal, weft\nsignal.alarm(120)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # processes in the background ignore it
        "x = weft.ones(4_000_000)\nturn = 0\n"
        "try:\n    while True:\n        x, turn = x * 1.0, turn + 1\n        if turn == 20: print('ready', flush=True)\n"
        "except KeyboardInterrupt:\n    print(x.sum().item())"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=300)
    assert (child.returncode, out) == (0, "4000000.0\n")


def test_a_quota_is_respected(monkeypatch):
    monkeypatch.setattr(workers, "_cgroup_quota", lambda: 1.0)
    assert workers.available_cpus() == 1


def test_jobs_come_while_workers_park_and_wake(threads):
    threads(3)
    x = weft.ones(BIG // 2)
    x += 1  # the workers are there
    for pause in range(300):
        end = time.perf_counter() + pause * 1e-6  # around the 100 us after which they park
        while time.perf_counter() < end:
            pass
        x += 1
    assert (x == 302).all()


def test_no_more_threads_than_the_system_gives(threads, monkeypatch):
    def refuse():
        raise RuntimeError("can't start new thread")

    threads(len(workers._workers) + 2)
    monkeypatch.setattr(workers, "_Worker", refuse)
    assert (weft.ones(BIG) + 1).sum() == 2 * BIG
    assert weft.get_num_threads() == len(workers._workers) + 1


def test_ctrl_c_while_workers_are_hired():
    code = (
        "import weft\nfrom weft.engine import workers\nweft.set_num_threads(99)\n"
        "def press(): raise KeyboardInterrupt\n"
        "workers._Worker = press\n"
        "try:\n    x = weft.ones(2_000_000) + 1\n    for _ in range(1000): pass\n"
        "except KeyboardInterrupt:\n    print('interrupted')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


def test_a_process_ends_while_its_workers_look_for_jobs():
    code = "import weft\nx = weft.ones(2_000_000)\nfor _ in range(50): x += 1"
    for _ in range(5):
        assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_plans_are_made_again_for_another_number_of_threads(threads):
    """A product that was planned for one thread is cut for two once there are two."""
    x = weft.rand(300, 300)
    tasks = []
    for count in (1, 2, 1):
        threads(count)
        weft.mm(x, x)
        tasks.append(MM.plans[x.spec, x.spec].count)
    assert tasks == [1, 2, 1]


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OMP_NUM_THREADS": "1"},
        {"OMP_NUM_THREADS": " 1 ,4"},
        {"OMP_NUM_THREADS": "+1"},
        {"OMP_NUM_THREADS": "1000"},
        {"OMP_NUM_THREADS": "none"},
        {"OMP_NUM_THREADS": "0"},
        {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "1"},
        {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "many"},
    ],
    ids=str,
)
def test_the_environment_limits_the_threads(variables):
    pytest.importorskip("torch")
    inherited = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    code = "import weft; ours = weft.get_num_threads(); import torch; print(ours, torch.get_num_threads())"
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, env=inherited | variables, capture_output=True, text=True, check=True)
    ours, theirs = done.stdout.split()
    assert ours == theirs


def test_one_thread_of_the_environment_starts_no_worker():
    code = (
        "import threading, weft\n"
        "x = weft.ones(4_000_000) * 2.0\n"
        "y = (weft.ones(600, 600) @ weft.ones(600, 600)).sum()\n"
        "print(x.sum().item(), y.item(), [t.name for t in threading.enumerate() if 'worker' in t.name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "8000000.0 216000000.0 []\n"
