"""A child forked while another thread holds any of weft's locks works."""

import gc
import inspect
import os
import signal
import sys
import threading
import time

import pytest

import weft
from weft.autograd import hooks  # noqa: F401 (its locks are made when a hook is registered)
from weft.core import locks
from weft.core.generator import Generator, default_generator
from weft.engine import blas, code_memory, host, memory, tiers, workers

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

NAMED = {
    "compiler": host._compiler.lock,
    "linker": host._linking,
    "llvmlite": host._llvm_lock,
    "code memory": code_memory._lock,
    "stubs": tiers._making,
    "allocator": memory._lock,
    "workers": workers._hiring,
    "BLAS": blas.ONE_THREAD.lock,
    "random numbers": default_generator.lock,
}


def held_elsewhere(lock, seconds=0.05):
    """Another thread that holds `lock` for a while from now on."""
    taken = threading.Event()

    def hold():
        with lock:
            taken.set()
            time.sleep(seconds)

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    return holder


def exit_code_of_child(work):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def use_everything():
    host.compile_ir("define void @nothing() {\nret void\n}\n", "nothing")
    weft.zeros(memory.SLAB // 4 + 4096)  # a size that no free block has
    weft.set_num_threads(2)
    (weft.zeros(4_000_000) + weft.rand(1)).sum()
    weft.rand(200, 200) @ weft.rand(200, 200)


@pytest.mark.parametrize("name", NAMED)
def test_a_child_works_though_another_thread_held_the_lock(name):
    holder = held_elsewhere(NAMED[name])
    assert exit_code_of_child(use_everything) == 0
    holder.join()


def test_every_lock_is_known_to_forks():
    made = {ref() for ref in locks._locks}
    assert made.issuperset(NAMED.values())


def test_locks_of_objects_count_while_the_objects_live():
    gc.collect()
    before = len(locks._locks)
    generator = Generator()
    assert len(locks._locks) == before + 1
    del generator
    gc.collect()
    assert len(locks._locks) == before


def test_two_threads_may_fork_at_once():
    codes = []
    threads = [
        threading.Thread(target=lambda: codes.append(exit_code_of_child(use_everything))) for _ in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert codes == [0] * 4


def test_locks_that_threads_take_in_another_order_do_not_hang_a_fork():
    first, second = locks.new_lock(), locks.new_lock()
    stop = threading.Event()

    def take(one, other):
        while not stop.is_set():
            with one, other:
                pass

    def give_way(one, other):  # takes them in the other order, but never waits for the second
        while not stop.is_set():
            with one:
                if other.acquire(timeout=0.001):
                    other.release()

    threads = [
        threading.Thread(target=take, args=(first, second)),
        threading.Thread(target=give_way, args=(second, first)),
    ]
    for each in threads:
        each.start()
    try:
        assert [exit_code_of_child(lambda: None) for _ in range(20)] == [0] * 20
    finally:
        stop.set()
        for each in threads:
            each.join()


def test_an_interrupt_while_a_fork_waits_is_raised_after_it(run):
    """In a process of its own: a hook of another library that runs after forks would get the interrupt, and lose it."""
    folder = os.path.dirname(__file__)
    code = f"import sys; sys.path.insert(0, {folder!r}); import test_locks; test_locks.interrupt_a_waiting_fork()"
    # Python 3.12 and later warn of forks with threads, and ignore what is raised while Python code shows the warning.
    done = run("-W", "ignore::DeprecationWarning", "-c", code)
    assert done.returncode == 0, done.stderr


def interrupt_a_waiting_fork():
    main, taken = threading.get_ident(), threading.Event()
    lines, first = inspect.getsourcelines(locks._take_all)
    waits = first + next(number for number, line in enumerate(lines) if "with busy" in line)

    def place(frame):
        return frame.f_code, frame.f_lineno

    def hold_and_interrupt():
        with memory._lock:
            taken.set()
            while place(sys._current_frames()[main]) != (locks._take_all.__code__, waits):
                time.sleep(0.001)
            signal.pthread_kill(main, signal.SIGALRM)
            while not locks._interrupts:
                time.sleep(0.001)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell lets its background processes ignore it
    holder = threading.Thread(target=hold_and_interrupt)
    holder.start()
    taken.wait()
    children = []
    try:
        with pytest.raises(KeyboardInterrupt):
            children.append(exit_code_of_child(use_everything))
            time.sleep(1)
    finally:
        signal.signal(signal.SIGALRM, before)
    holder.join()
    while True:  # the child that `exit_code_of_child` could not wait for
        try:
            assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
        except ChildProcessError:
            break
    others = held_elsewhere(memory._lock, seconds=0)  # no lock has stayed with this thread
    others.join(10)
    assert not others.is_alive()
