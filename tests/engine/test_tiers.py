"""Baseline code computes the same bits as optimized code, and a thread replaces it."""

import ctypes
import errno
import os
import re
import subprocess
import sys
import threading
import time

import llvmlite.binding as llvm
import pytest

from weft.engine import host, tiers
from weft.engine.background import Background
from weft.engine.diskcache import DiskCache

TIME_LIMIT = 280  # seconds for a process of its own; alone the slowest takes 5, and tests/conftest.py ends a test after 300
VALUE = "define i64 @value() {{ ret i64 {} }}"
_numbers = iter(range(1000, 10**6))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    cache = DiskCache(tmp_path, "salt")
    monkeypatch.setattr(host, "disk_cache", lambda: cache)
    monkeypatch.setattr(tiers, "_pending", {})
    return cache


@pytest.fixture
def busy(monkeypatch):
    """The program asks for new kernels all the time, so the thread does not start."""
    monkeypatch.setattr(tiers, "QUIET_S", 1e9)
    monkeypatch.setattr(tiers, "LONGEST_S", 1e9)
    optimizer = Background("test")
    monkeypatch.setattr(tiers, "_optimizer", optimizer)
    yield
    optimizer._stop()


def module():
    """(IR, what the function in it returns)"""
    number = next(_numbers)
    return VALUE.format(number), number


def run(address):
    return ctypes.CFUNCTYPE(ctypes.c_int64)(address)()


def test_a_new_function_is_compiled_without_passes_and_then_replaced(cache, busy, monkeypatch):
    ir, number = module()
    tiers_of_calls = []
    emitted = host._emitted
    monkeypatch.setattr(
        host, "_emitted", lambda ir, tier: (tiers_of_calls.append(tier), emitted(ir, tier))[1]
    )
    (stub,) = tiers.compile_ir(ir, "value")
    assert run(stub) == number and host.OPTIMIZED not in tiers_of_calls
    slot = tiers._pending[stub].slots[0]
    baseline = ctypes.c_size_t.from_address(slot).value
    tiers.optimize_now(stub, 12345)
    assert run(stub) == number and tiers_of_calls[-1] is host.OPTIMIZED
    assert ctypes.c_size_t.from_address(slot).value != baseline and stub not in tiers._pending
    tiers.optimize_now(stub)
    assert tiers_of_calls.count(host.OPTIMIZED) == 1
    assert host.cached(ir, host.OPTIMIZED)
    assert tiers.compile_ir(ir, "value") != (stub,)  # the optimized code itself, without a stub


def test_baseline_code_is_kept_for_short_programs(cache, busy, monkeypatch):
    ir, number = module()
    tiers.compile_ir(ir, "value")
    if not tiers._free:  # more stubs have to be compiled now and then
        tiers._make_stubs()
    monkeypatch.setattr(host, "_emitted", lambda *_: pytest.fail("compiled again"))
    assert run(tiers.compile_ir(ir, "value")[0]) == number


def test_a_thread_replaces_the_code_when_no_kernels_are_asked_for(cache, monkeypatch):
    monkeypatch.setattr(tiers, "QUIET_S", 0.01)
    ir, number = module()
    (stub,) = tiers.compile_ir(ir, "value")
    # On a busy machine the thread takes seconds. tests/conftest.py ends a test that hangs.
    while stub in tiers._pending:
        assert run(stub) == number and tiers._optimizer._thread.is_alive()
        time.sleep(0.001)
    assert run(stub) == number


def test_kernels_that_are_hot_are_optimized_while_the_program_asks_for_more(cache, busy, monkeypatch):
    monkeypatch.setattr(tiers, "LONGEST_S", 0.01)
    modules = [module() for _ in range(8)]
    stubs = [tiers.compile_ir(ir, "value")[0] for ir, _ in modules]
    for k, stub in enumerate(stubs):
        for _ in range(tiers.HOT - 1 + k % 2):
            assert run(stub) == modules[k][1]
    assert [tiers._calls(tiers._pending[stub]) for stub in stubs[::2]] == [tiers.HOT - 1] * 4
    for _ in range(500):
        if len(tiers._pending) == 4:
            break
        threading.Event().wait(0.01)
    assert list(tiers._pending) == stubs[::2]
    assert [run(stub) for stub in stubs] == [number for _, number in modules]


ARGUMENTS = "i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f, i64 %g, i64 %h, i64 %i"


def test_stubs_leave_all_arguments_where_they_are(cache, busy):
    terms = "\n".join(
        f"%m{k} = mul i64 %{name}, {10**k}\n%s{k} = add i64 %s{k - 1}, %m{k}"
        for k, name in enumerate("abcdefghi")
    ).replace("%s-1", "0")
    ir = f"define i64 @digits({ARGUMENTS}) {{\n{terms}\nret i64 %s8\n}}\n"
    (stub,) = tiers.compile_ir(ir, "digits")
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 9)(stub)
    assert function(*range(1, 10)) == 987654321
    tiers.optimize_now(stub)
    assert function(*range(1, 10)) == 987654321


def test_there_are_as_many_stubs_as_needed(cache, busy):
    pairs = [module() for _ in range(tiers._STUBS + 10)]
    stubs = [tiers.compile_ir(ir, "value")[0] for ir, _ in pairs]
    assert len(set(stubs)) == len(stubs)
    assert [run(stub) for stub in stubs] == [number for _, number in pairs]
    tiers.optimize_now(*stubs)
    assert [run(stub) for stub in stubs] == [number for _, number in pairs]


def test_without_a_thread_code_is_optimized_at_once(cache, monkeypatch):
    def fail(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(tiers, "_optimizer", Background("test"))
    monkeypatch.setattr(threading.Thread, "start", fail)
    ir, number = module()
    (address,) = tiers.compile_ir(ir, "value")
    assert run(address) == number and address not in tiers._pending and host.cached(ir, host.OPTIMIZED)


def test_baseline_code_stays_if_it_cannot_be_optimized(cache, busy, monkeypatch):
    ir, number = module()
    (stub,) = tiers.compile_ir(ir, "value")

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(host, "_emitted", fail)
    monkeypatch.setattr(tiers, "QUIET_S", 0)
    tiers._optimize_one()
    assert run(stub) == number and stub not in tiers._pending


def test_baseline_code_stays_on_a_disk_that_is_full(cache, busy, monkeypatch):
    ir, number = module()
    (stub,) = tiers.compile_ir(ir, "value")

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "write", fail)
        tiers.optimize_now(stub)
    assert run(stub) == number and stub not in tiers._pending
    assert host.cached(ir, host.OPTIMIZED) is None
    if not tiers._free:  # more stubs have to be compiled now and then
        tiers._make_stubs()
    monkeypatch.setattr(host, "_emitted", lambda *_: pytest.fail("compiled again"))
    assert run(tiers.compile_ir(ir, "value")[0]) == number


# ---- The same bits -----------------------------------------------------------------------------------------------------

BITS = """
import weft as torch
from weft.engine import tiers
tiers.QUIET_S = tiers.LONGEST_S = 1e9
torch.manual_seed(0)
F = torch.nn.functional
x, y = torch.randn(67, 33) * 3, torch.randn(67, 33)
x[0, :4] = torch.tensor([0.0, -0.0, float("inf"), float("nan")])
k, c = torch.arange(67), x > 0.5
image, weight = torch.randn(2, 3, 9, 9), torch.randn(4, 3, 3, 3)
operations = [
    lambda: x * y + 1, lambda: x / y, lambda: x.exp(), lambda: x.sin(), lambda: x.tanh(), lambda: F.gelu(x), lambda: x.erf(),
    lambda: x.abs() ** y, lambda: x // y, lambda: x % y, lambda: k // 7, lambda: x.to(torch.bfloat16) * y.to(torch.bfloat16),
    lambda: x.half().float(), lambda: x[1:].sum(), lambda: x[1:].sum(0), lambda: x[1:].sum(1), lambda: x[1:].var(1),
    lambda: x.amax(1), lambda: torch.maximum(x, y), lambda: x.argmax(1), lambda: x.cumsum(1), lambda: F.softmax(x[1:], 1),
    lambda: F.layer_norm(y, (33,)), lambda: x[k], lambda: x[c], lambda: x.t() @ y, lambda: F.conv2d(image, weight),
    lambda: F.max_pool2d(image, 2), lambda: x.sort()[1], lambda: torch.complex(x, y).exp(), lambda: x.double().log1p(),
]
def bits():
    # NaNs have no bits that IEEE 754 prescribes.
    return [(result if not result.is_floating_point() else result.nan_to_num(nan=7.5)).contiguous().flatten().view(torch.uint8)
            .tolist() for result in (each() for each in operations)]
first = bits()
assert len(tiers._pending) > 30, len(tiers._pending)
tiers.optimize_now(*tiers._pending.copy())
assert not tiers._pending
for number, (a, b) in enumerate(zip(first, bits(), strict=True)):
    assert a == b, number
"""


def python(code, directory):
    environment = {**os.environ, "WEFT_CACHE_DIR": str(directory / "kernels")}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=TIME_LIMIT
    )


def test_both_tiers_compute_the_same_bits(tmp_path):
    run = python(BITS, tmp_path)
    assert run.returncode == 0, run.stderr


# ---- Background ------------------------------------------------------------------------------------------------------------

FORK = """
import os, signal, threading, time
from weft.engine.background import Background, in_background
jobs, started, go = Background("test"), threading.Event(), threading.Event()
def slow():
    started.set()
    go.wait()
done = []
assert jobs.start() and jobs.start()
jobs.submit(slow)
jobs.submit(lambda: done.append(in_background()))
started.wait()
child = os.fork()
go.set()
if child == 0:
    signal.alarm(20)
    jobs.start()  # runs what the parent had not finished, too
while not done:
    time.sleep(0.001)
assert done == [True] and not in_background()
if child == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_continues_the_jobs_of_its_parent(tmp_path):
    run = python(FORK, tmp_path)
    assert run.returncode == 0, run.stderr


def test_a_job_without_its_permit_is_done_with_the_next_one():
    """Ctrl-C came inside of `submit`, or a fork, after which there is a permit too many."""
    jobs, done = Background("test"), []
    jobs._jobs.append(lambda: done.append(1))
    assert jobs.start()
    waiter = threading.Thread(target=jobs.wait, daemon=True)
    waiter.start()
    waiter.join(20)
    assert not waiter.is_alive()
    jobs._ready.release()
    jobs.submit(lambda: done.append(2))
    jobs.wait()
    assert done == [1, 2]
    jobs._stop()


THREADS = """
import os, signal, sys, threading
from weft.engine.background import Background, has_threads
import weft
weft.set_num_threads(2)
weft.ones(10**7).sum()
def check():
    jobs = Background("test")
    jobs.start()
    assert not has_threads()
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    assert has_threads()
    stop.set()
    thread.join()
    while has_threads():
        pass
check()
stop = threading.Event()
threading.Thread(target=stop.wait).start()
child = os.fork()
stop.set()
if child == 0:
    signal.alarm(20)
    check()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_threads_of_the_program_are_told_from_those_of_weft(tmp_path):
    run = python(THREADS, tmp_path)
    assert run.returncode == 0, run.stderr


EXIT = """
import threading
from weft.engine.background import Background
jobs, begun = Background("test"), threading.Event()
def job():
    print("begun", flush=True)
    begun.set()
    jobs.stopped.wait()  # the process has begun to end
    print("finished", flush=True)
jobs.start()
jobs.submit(job)
jobs.submit(lambda: print("never", flush=True))
begun.wait()
"""


def test_a_process_finishes_the_current_job_only(tmp_path):
    run = python(EXIT, tmp_path)
    assert (run.returncode, run.stdout.split()) == (0, ["begun", "finished"]), run.stderr


@pytest.mark.parametrize(
    ("machine", "system", "triple", "registers"),
    [
        ("x86_64", "linux", "x86_64-linux-gnu", "rdi rsi rdx rcx r8 r9 edi esi edx ecx r8d r9d"),
        ("AMD64", "win32", "x86_64-pc-windows-msvc", "rcx rdx r8 r9 ecx edx r8d r9d rsp rsi rdi"),
        ("aarch64", "linux", "aarch64-linux-gnu", "x0 x1 x2 x3 x4 x5 x6 x7"),
        ("arm64", "darwin", "arm64-apple-macosx13.0", "x0 x1 x2 x3 x4 x5 x6 x7 x18"),
    ],
)
def test_stubs_leave_arguments_where_they_are(machine, system, triple, registers):
    """Functions with more arguments than a stub names find all of them: the others are on the stack."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple)
    module = llvm.parse_assembly(tiers.stub_ir(machine, system))
    module.triple = triple
    assembly = target.create_target_machine(opt=host.SIMPLIFIED.codegen, jit=True).emit_assembly(module)
    assert "counted:" in assembly
    assert not re.search(rf"\b({'|'.join(registers.split())})\b", assembly)
