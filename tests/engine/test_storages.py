"""Storages give their block back, whatever the kind of their bin and whenever a signal arrives."""

import gc
import subprocess
import sys

import pytest

import weft
from weft.core.device import CPU
from weft.core.storage import FOREIGN, Storage, foreign
from weft.engine import memory

unfenced = pytest.mark.skipif(bool(memory.FENCE), reason="the fence gives no block twice, in Python code")


@unfenced
def test_blocks_come_from_their_bin_and_return_to_it():
    weft.empty(1000)
    bin = memory.bin_for(4000)
    free = len(bin)
    t = weft.empty(1000)
    assert len(bin) == free - 1 and t._storage.bin is bin
    address = t.data_ptr()
    del t
    gc.collect()
    assert len(bin) == free and bin[-1] == address


@unfenced
def test_an_empty_bin_grows():
    bin = memory.bin_for(34 * 1024)
    used = bin.total - len(bin)  # by tensors that live longer than a test
    held = [weft.empty(34 * 256) for _ in range(100)]
    assert bin.total - len(bin) == used + 100
    del held
    assert bin.total - len(bin) == used


def test_a_bin_of_a_class_of_its_own_is_asked():
    class Noting(memory.Bin):
        __slots__ = ("noted",)

        def append(self, address):
            self.noted = address

    bin = Noting(64)
    Storage(12345, 64, CPU, bin)
    assert bin.noted == 12345 and not bin


def test_foreign_memory_is_forgotten():
    foreign(12345, 64, None)
    assert len(FOREIGN) == 0


def test_a_storage_that_was_never_made_has_nothing_to_give_back():
    weft.ones(2) + 1  # machine code is in place
    Storage.__new__(Storage)


def test_an_interrupt_while_memory_is_given_back_reaches_the_program():
    class Interrupted(memory.Bin):
        __slots__ = ()

        def append(self, address):
            list.append(self, address)
            raise KeyboardInterrupt

    bin = Interrupted(64)
    storage = Storage(12345, 64, CPU, bin)
    weft.ones(2) + 1  # machine code is in place
    with pytest.raises(KeyboardInterrupt):
        del storage
        for _ in range(1000):
            pass
    assert bin == [12345]


def test_other_errors_of_finalizers_are_reported_as_python_does():
    class Broken(memory.Bin):
        __slots__ = ()

        def append(self, address):
            raise ValueError("broken")

    reports = []
    before, sys.unraisablehook = sys.unraisablehook, reports.append
    try:
        Storage(12345, 64, CPU, Broken(64))
    finally:
        sys.unraisablehook = before
    assert [report.exc_type for report in reports] == [ValueError]


def test_the_bound_is_kept_by_frees(monkeypatch):
    weft.ones(2) + 1
    memory.release_cached(0)
    monkeypatch.setattr(memory, "CACHE_LIMIT", 10 << 20)
    monkeypatch.setattr(memory.room, "value", 0)
    for _ in range(3):
        held = [weft.empty(1 << 20) for _ in range(4)]
        del held
        assert memory.cached_large_bytes() <= 10 << 20


STORM = """
import gc, signal, sys
import weft as torch

delivered = caught = 0
def handler(*_):
    global delivered
    delivered += 1
    raise KeyboardInterrupt
unraisable = []
sys.unraisablehook = unraisable.append

def allocated():
    gc.collect()
    return torch.cpu.memory_stats()["allocated_bytes.all.current"]

a, b = torch.rand(16), torch.rand(40_000)
for t in (a, b):
    (t + t) * t
before = allocated()
def work(turn):  # a function: Python 3.13 may raise at the end of a loop outside the `try` around it
    signal.setitimer(signal.ITIMER_REAL, 0.0003 + turn % 17 * 1e-5)
    while delivered == turn:
        (a + a) * a
        (b + b) * b
        torch.empty(100)

signal.signal(signal.SIGALRM, handler)
for turn in range(1000):
    try:
        work(turn)
    except KeyboardInterrupt:
        caught += 1
assert not unraisable, unraisable
assert (delivered, caught) == (1000, 1000), (delivered, caught)
assert allocated() == before, (allocated(), before)
"""


@unfenced
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no setitimer")
def test_no_interrupt_is_swallowed_and_no_block_lost():
    run = subprocess.run([sys.executable, "-c", STORM], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
