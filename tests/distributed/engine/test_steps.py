import ctypes
import os
import subprocess
import threading
import time

import pytest

import weft
from weft.core.tensor import address
from weft.distributed import ReduceOp
from weft.distributed.engine.reductions import fold, loop
from weft.distributed.engine.segment import Segment, number_at
from weft.distributed.engine.steps import AWAIT, DONE, PULL, SAME, Argument, Steps


def test_copies_and_reductions():
    a, b, c, out = weft.arange(5.0), weft.full((5,), 2.0), weft.full((5,), 3.0), weft.zeros(5)
    steps = Steps()
    fold(steps, loop(ReduceOp.SUM, weft.float32), address(out), [address(each) for each in (a, b, c)], 5)
    steps.copy(address(b), address(out), 8)
    assert steps.carry_out() == DONE
    assert out.tolist() == [5, 6, 7, 8, 9] and b.tolist() == [5, 6, 2, 2, 2]


def test_the_same_steps_with_other_arguments():
    steps = Steps(arguments=2)
    steps.copy(Argument(1) + 8, Argument(0), 16)
    for dtype in (weft.int64, weft.float64):
        a, b = weft.tensor([1, 2, 3], dtype=dtype), weft.zeros(3, dtype=dtype)
        assert steps.start(address(a), address(b)) == DONE
        assert b.tolist() == [0, 1, 2]
    with pytest.raises(TypeError):
        steps.start(address(a))
    with pytest.raises(TypeError):
        steps.start(address(a), "b")


def test_the_memory_of_another_process():
    """Here it is the same process, and one that has ended."""
    a, b, place = weft.arange(5.0), weft.zeros(5), ctypes.c_int64()
    ended = subprocess.Popen(["true"])
    ended.wait()
    for process, outcome in ((os.getpid(), DONE), (ended.pid, PULL)):
        steps = Steps()
        steps.store(ctypes.addressof(place), address(a) + 4)
        steps.pull(address(b), ctypes.addressof(place), 16, process)
        assert steps.carry_out() == outcome
    assert b.tolist() == [1, 2, 3, 4, 0]


def test_it_stops_where_others_are_missing_and_goes_on():
    segment = Segment(2)
    steps = Steps()
    steps.arrive(segment.arrived(0), 3)
    steps.wait(segment.arrived(0), 2, 3)
    steps.ring(segment.bell(0))
    assert steps.carry_out() == AWAIT and number_at(segment.arrived(0)) == 3
    other = Steps()
    other.arrive(segment.arrived(1), 4)
    other.carry_out()
    assert steps.carry_out() == DONE and number_at(segment.bell(0)) == 1


def test_it_stops_where_bytes_differ():
    a, b = weft.tensor([1, 2]), weft.tensor([1, 3])
    steps = Steps()
    steps.same(address(a), address(b), 8)
    steps.same(address(a), address(b), 16)
    assert steps.carry_out() == SAME


def test_a_sleeping_rank_is_woken():
    segment, woken = Segment(2), []

    def sleep():
        steps = Steps()
        steps.wait(segment.arrived(1), 1, 1)
        begin = time.monotonic()
        while steps.carry_out() != DONE:
            pass
        woken.append(time.monotonic() - begin)

    thread = threading.Thread(target=sleep)
    thread.start()
    time.sleep(0.12)
    steps = Steps()
    steps.arrive(segment.arrived(1), 1)
    steps.carry_out()
    thread.join(5)
    assert woken and 0.1 < woken[0] < 3
