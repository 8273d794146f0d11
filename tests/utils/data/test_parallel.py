"""Worker processes: what they are told, how they fail, and that nothing of them is left."""

import contextlib
import gc
import glob
import multiprocessing
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
import torch

import weft
from weft.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info, parallel
from weft.utils.data._utils import transport

SHARED_MEMORY = Path("/dev/shm")


class Images(Dataset):
    """Large enough to travel through shared memory."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return weft.full((200, 200), float(index)), index


class Shard(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        return iter(range(worker.id, 7, worker.num_workers))


@contextlib.contextmanager
def without_waiting():
    """Nothing in here waits until its patience with workers is at an end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "PATIENCE", 200.0)
        patch.setattr(parallel, "CHECK_INTERVAL", 200.0)
        start = time.monotonic()
        yield
        assert time.monotonic() - start < 100


class Failing(Dataset):
    def __init__(self, action):
        self.action = action

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return self.action() if index == 1 else index


class NeedsTwo(Exception):
    def __init__(self, first, second):
        super().__init__(first, second)


def fail_with_key_error():
    raise KeyError("missing")


def fail_with_value_error():
    raise ValueError("bad value")


def fail_with_two():
    raise NeedsTwo(1, 2)


def fail_locally():
    class Local(Exception):
        pass

    raise Local("unknown to others")


def left_behind():
    """Children of this process, folders in shared memory."""
    gc.collect()
    folders = list(SHARED_MEMORY.glob(f"weft-{os.getpid()}-*"))
    return multiprocessing.active_children(), folders


def open_descriptors():
    """What the open descriptors of this process lead to: `pipe:[4021]`, `/dev/shm/...`."""
    targets = set()
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that lists them
            targets.add(os.readlink(f"/proc/self/fd/{descriptor}"))
    return targets


def assert_none_stays_open(before):
    """Other threads of this process open files for moments, so these get some seconds to close them."""
    deadline = time.monotonic() + 5
    while len(new := open_descriptors() - before) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(new) <= 1, new  # multiprocessing keeps one open after its first use


@pytest.fixture(autouse=True)
def nothing_is_left():
    children, folders = left_behind()
    descriptors = open_descriptors()
    yield
    still, left = left_behind()
    assert set(still) <= set(children) and left == folders  # processes of other tests may end meanwhile
    assert_none_stays_open(descriptors)


EVERY_WAY = """
import multiprocessing
import weft
from weft.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __len__(self):
        return 5
    def __getitem__(self, index):
        return weft.full((200, 200), float(index)), index

if __name__ == "__main__":
    for method in multiprocessing.get_all_start_methods():
        for images, indices in DataLoader(Images(), 3, num_workers=1, multiprocessing_context=method):
            assert images.shape == (len(indices), 200, 200)
            assert (images == indices.reshape(-1, 1, 1)).all()
            print(method, indices.tolist())
"""


def test_every_way_to_start_processes(run, tmp_path):
    (tmp_path / "script.py").write_text(EVERY_WAY)  # started processes import it
    finished = run("script.py")
    assert finished.stderr == ""
    batches = ("[0, 1, 2]", "[3, 4]")
    methods = multiprocessing.get_all_start_methods()
    assert finished.stdout.splitlines() == [f"{method} {batch}" for method in methods for batch in batches]


def test_context_objects():
    context = multiprocessing.get_context("fork")
    loader = DataLoader(range(3), num_workers=1, multiprocessing_context=context)
    assert loader.multiprocessing_context is context
    assert [batch.item() for batch in loader] == [0, 1, 2]


def test_seeds_for_numpy():
    from weft.utils.data._utils.seeds import numpy_seed

    for base_seed in (0, 1, 2**32 - 1, 2**32, 2**63 - 1, 8339553013425946375):
        for worker_id in (0, 1, 77):
            expected = torch.utils.data._utils.worker._generate_state(base_seed, worker_id)
            assert numpy_seed(base_seed, worker_id) == expected


def test_each_worker_iterates_over_its_shard():
    assert list(DataLoader(Shard(), None, num_workers=2)) == list(range(7))
    assert [batch.tolist() for batch in DataLoader(Shard(), 2, num_workers=2)] == [
        [0, 2],
        [1, 3],
        [4, 6],
        [5],
    ]


@pytest.mark.parametrize(
    ("action", "error", "name"),
    [
        (fail_with_key_error, KeyError, "KeyError"),
        (fail_with_value_error, ValueError, "ValueError"),
        (fail_with_two, RuntimeError, "NeedsTwo"),
        (fail_locally, RuntimeError, "RuntimeError"),
    ],
)
def test_exceptions_are_raised_here(action, error, name):
    iterator = iter(DataLoader(Failing(action), num_workers=1))
    assert next(iterator).item() == 0
    with pytest.raises(error) as caught:
        next(iterator)
    message = str(caught.value)
    assert message.startswith(
        f"Caught {name} in DataLoader worker process 0.\nOriginal Traceback (most recent"
    )
    assert f"in {action.__name__}" in message  # the worker's own traceback
    assert next(iterator).item() == 2  # the worker lives


def test_a_failing_start_is_reported():
    def fail(worker_id):
        raise ValueError(f"cannot start {worker_id}")

    with pytest.raises(
        ValueError, match="(?s)Caught ValueError in DataLoader worker process 0.*cannot start 0"
    ):
        next(iter(DataLoader(range(3), num_workers=1, worker_init_fn=fail)))


def test_what_cannot_be_pickled_is_reported():
    with pytest.raises(Exception, match="(?s)in DataLoader worker process 0.*lambda"):
        list(DataLoader([lambda: 1], None, num_workers=1))
    recorded = weft.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        list(DataLoader([0], None, num_workers=1, collate_fn=lambda index: recorded * 2))


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (lambda: os._exit(3), "exited unexpectedly with exit code 3"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "is killed by signal: Killed"),
    ],
)
def test_a_dead_worker_is_noticed_at_once(action, reason):
    answered = multiprocessing.Event()  # else the second worker may die before the first has answered
    iterator = iter(DataLoader(Failing(lambda: (answered.wait(), action())), num_workers=2))
    assert next(iterator).item() == 0
    answered.set()
    died = pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly")
    with without_waiting(), died as caught:
        next(iterator)
    assert re.search(reason, str(caught.value.__cause__))
    assert list(iterator) == []


def test_a_slow_worker_runs_into_the_timeout(monkeypatch):
    monkeypatch.setattr(parallel, "PATIENCE", 0.1)
    iterator = iter(DataLoader(Failing(lambda: time.sleep(100)), num_workers=1))
    assert next(iterator).item() == 0
    iterator._timeout = 0.2  # from here on: the first answer may take its time
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.2 seconds"):
        next(iterator)


def test_a_pass_can_be_broken_off():
    with without_waiting():
        for _ in range(3):
            for _images, _ in DataLoader(Images(), 2, num_workers=2):
                break


def test_large_batches_without_shared_memory(monkeypatch):
    monkeypatch.setattr(parallel, "new_folder", lambda: None)
    assert [images[:, 0, 0].tolist() for images, _ in DataLoader(Images(), 6, num_workers=2)] == [
        [0, 1, 2, 3, 4, 5],
        [6, 7, 8, 9, 10, 11],
    ]
    with without_waiting():
        next(iter(DataLoader(Images(), 1, num_workers=2)))  # the other answers fill the pipes


def test_two_loaders_side_by_side():
    first = iter(DataLoader(Images(), 1, num_workers=1))
    second = iter(DataLoader(Images(), 1, num_workers=1))
    for _ in range(3):
        assert next(first)[1].item() == next(second)[1].item()
    with without_waiting():
        del first  # its worker must end, though the other one was forked later
        gc.collect()
    assert next(second)[1].item() == 3


def test_persistent_workers_are_the_same_ones():
    loader = DataLoader(
        [0] * 4, None, num_workers=2, persistent_workers=True, collate_fn=lambda _: os.getpid()
    )
    first = list(loader)
    assert list(loader) == first and len(set(first)) == 2
    next(iter(loader))  # broken off
    assert list(loader) == first
    fresh = DataLoader([0], None, num_workers=1, collate_fn=lambda _: os.getpid())
    assert list(fresh) != list(fresh)


def test_persistent_workers_are_replaced_when_one_is_dead():
    loader = DataLoader(Failing(lambda: os._exit(1)), None, num_workers=1, persistent_workers=True, timeout=5)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="exited unexpectedly"):
            list(loader)


def test_out_of_order_nobody_waits_for_a_slow_one(tmp_path):
    def delayed(index):
        while index == 0 and not (tmp_path / "go on").exists():
            time.sleep(0.01)
        return index

    iterator = iter(DataLoader(range(8), None, num_workers=2, in_order=False, collate_fn=delayed))
    first = next(iterator)
    assert first != 0
    (tmp_path / "go on").touch()
    assert sorted([first, *iterator]) == list(range(8))


def test_out_of_order_a_slow_worker_collects_no_tasks(tmp_path):
    def delayed(index):
        while index == 0 and not (tmp_path / "go on").exists():
            time.sleep(0.01)
        return index

    iterator = iter(
        DataLoader(range(20), None, num_workers=2, in_order=False, collate_fn=delayed, timeout=10)
    )
    found = [next(iterator) for _ in range(18)]  # all but the two tasks that the slow worker got first
    (tmp_path / "go on").touch()
    assert sorted([*found, *iterator]) == list(range(20))


def test_out_of_order_the_answers_of_a_broken_pass_are_forgotten():
    loader = DataLoader(range(20), None, num_workers=2, in_order=False, persistent_workers=True)
    for _ in range(3):
        next(iter(loader))  # broken off
        assert sorted(loader) == list(range(20))


def test_a_forked_copy_of_an_iterator_leaves_the_workers_alone():
    iterator = iter(DataLoader(range(20), None, num_workers=2))
    assert next(iterator) == 0
    child = os.fork()
    if not child:
        del iterator
        gc.collect()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert list(iterator) == list(range(1, 20))


def test_a_fast_worker_cannot_overwhelm_us(tmp_path):
    def count(index):
        with open(tmp_path / "made", "ab") as file:
            file.write(b".")
        return index

    iterator = iter(DataLoader(range(100), None, num_workers=2, prefetch_factor=3, collate_fn=count))
    next(iterator)
    while (tmp_path / "made").stat().st_size < 7:
        time.sleep(0.01)
    time.sleep(0.1)
    assert (tmp_path / "made").stat().st_size == 7


def test_many_indices_and_many_batches():
    loader = DataLoader(range(300_000), 100_000, num_workers=1, prefetch_factor=3)
    assert [len(batch) for batch in loader] == [100_000] * 3
    loader = DataLoader(range(2000), None, num_workers=2, prefetch_factor=500)
    assert list(loader) == list(range(2000))


def test_batches_outlive_their_loader_and_need_no_descriptors():
    before = open_descriptors()
    batches = list(DataLoader(Images(), 1, num_workers=2))
    assert_none_stays_open(before)
    for images, index in batches:
        assert (images == index.item()).all()
        images.add_(1)
        assert (images == index.item() + 1).all()


SCRIPT = """
import os, sys, time
from weft.utils.data import DataLoader, Dataset
import weft

class Slow(Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, index):
        time.sleep(0.01)
        return weft.full((200, 200), float(index))

if __name__ == "__main__":
    loader = DataLoader(Slow(), num_workers=2, persistent_workers=True, multiprocessing_context="fork")
    iterator = iter(loader)
    next(iterator)
    print(*(worker.process.pid for worker in iterator._workers), iterator._folder, flush=True)
    {end}
"""


@pytest.mark.parametrize("end", ["pass", "sys.exit(3)", "raise ValueError('enough')", "os._exit(1)"])
def test_workers_end_with_the_program(run, end):
    finished = run("-c", SCRIPT.format(end=end))
    *pids, folder = finished.stdout.split()
    assert len(pids) == 2
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (any(map(runs, pids)) or glob.glob(f"{folder}*")):
        time.sleep(0.05)
    assert not any(map(runs, pids)) and not glob.glob(f"{folder}*")
    noise = [line for line in finished.stderr.splitlines() if "ValueError: enough" not in line]
    assert end.startswith("raise") or not noise


def test_a_folder_is_removed_while_workers_write_to_it():
    for _ in range(20):
        folder = transport.new_folder()

        def write(folder=folder):
            with contextlib.suppress(OSError):
                for number in range(100_000):  # or until the folder is gone
                    open(f"{folder}/{number}", "xb").close()

        writer = threading.Thread(target=write)
        writer.start()
        while not os.listdir(folder):
            pass
        transport.remove_folder(folder)
        writer.join(60)
        assert not writer.is_alive() and not glob.glob(f"{folder}*")


def runs(pid):
    state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True).stdout
    return bool(state) and not state.startswith("Z")


def test_programs_may_end_the_workers_themselves():
    """PyTorch's `_workers` are processes, which programs terminate and join."""
    iterator = iter(weft.utils.data.DataLoader(range(8), num_workers=2))
    next(iterator)
    workers = iterator._workers
    assert all(each.is_alive() and each.pid > 0 for each in workers)
    for each in workers:
        each.terminate()
        each.join(30)
    assert not any(each.is_alive() for each in workers)
