"""Compiled functions refuse arguments that they cannot read; an exception while compiling leaves nothing broken."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from weft.engine import host, workers
from weft.engine.kernel import compile_loop, compile_row

# A loop that notes that it ran.
NOTE = """
define internal void @loop(ptr %ops, ptr %meta, i64 %start, i64 %n) {
%out = load ptr, ptr %ops
store i64 1, ptr %out
ret void
}
"""
ROW = "define void @row(ptr %ops, ptr %strides, i64 %n) {\n%out = load ptr, ptr %ops\nstore i64 1, ptr %out\nret void\n}\n"


@pytest.fixture
def ran():
    return np.zeros(1, np.int64)


@pytest.fixture
def entry():
    """(address of a note, address, integer, float32, float64, address of meta, count)"""
    return compile_loop(NOTE, 2, "ifd").entry


def test_arguments_are_read(entry, ran):
    assert entry(ran.ctypes.data, 0, 5, 1.5, 2, 0, 1) == ran.ctypes.data
    assert ran[0] == 1


@pytest.mark.parametrize(
    "position, value, error",
    [
        *((position, value, TypeError) for position in (1, 2, 5, 6) for value in (1.0, 0.0, None, "1", 1j)),
        *((position, value, TypeError) for position in (3, 4) for value in (None, "1", 1j)),
        *((position, 2**70, OverflowError) for position in (1, 5, 6)),
        *((position, 10**400, OverflowError) for position in (3, 4)),
    ],
)
def test_the_loop_does_not_run_on_arguments_that_cannot_be_read(entry, ran, position, value, error):
    arguments = [ran.ctypes.data, 0, 5, 1.5, 2.5, 0, 1]
    arguments[position] = value
    with pytest.raises(error):
        entry(*arguments)
    assert ran[0] == 0


@pytest.mark.parametrize("count", [0, 1, 6, 8])
def test_the_number_of_arguments_is_checked(entry, ran, count):
    with pytest.raises(TypeError):
        entry(*[ran.ctypes.data, 0, 5, 1.5, 2.5, 0, 1, 0][:count])
    assert ran[0] == 0


@pytest.mark.parametrize("bad", [1.0, None, 2**70])
def test_kernels_of_rows_and_shared_ones_check_too(ran, bad):
    code = compile_row(ROW, 1, "i")
    shared = host.builtin(code.share, "kernel", b"\0" * 40)
    for function in (code.entry, shared):
        with pytest.raises((TypeError, OverflowError)):
            function(ran.ctypes.data, 1, bad, 1)
    assert ran[0] == 0


@pytest.mark.parametrize("bad", [1.0, None, 2**70])
def test_work_for_the_threads_is_checked(bad):
    run = workers._native().run
    with pytest.raises((TypeError, OverflowError)):
        run(workers._pool.ctypes.data, bad, 0, 0, 4, True)
    with pytest.raises(TypeError):
        run(workers._pool.ctypes.data, 0, 0, 0, 4)


# ---- Exceptions while compiling ----------------------------------------------------------------------------------

INTERRUPTED = """
import threading
import weft as torch
from weft.engine import host
torch.rand(3) + 1
original = host.{name}
def interrupted(*arguments):
    if threading.current_thread() is not threading.main_thread():
        return original(*arguments)
    host.{name} = original
    if {after}:
        original(*arguments)
    raise KeyboardInterrupt
host.{name} = interrupted
try:
    torch.ones(3).lgamma()
    raise SystemExit("not interrupted")
except KeyboardInterrupt:
    pass
assert torch.ones(3).lgamma().tolist() == [0.0] * 3
for function in (torch.sin, torch.exp, torch.tanh, torch.erfinv):
    function(torch.rand(3, 4, 5))
"""


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("name", ["keepalive", "link", "_emitted", "_dispose"])
def test_an_exception_while_compiling_leaves_nothing_broken(tmp_path, name, after):
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(name=name, after=after)],
        env={**os.environ, "WEFT_CACHE_DIR": str(tmp_path / "kernels")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr


def test_object_code_that_cannot_be_loaded_leaves_nothing_broken():
    with pytest.raises(RuntimeError, match="14 bytes"):
        host.link(b"no object code", ("f",))
    assert host.compile_ir("define i64 @seven() {\nret i64 7\n}\n", "seven")[0]


def test_llvmlite_is_free_for_other_threads_after_an_interrupt(monkeypatch):
    def interrupted(*arguments):
        host._llvm_lock.acquire()
        raise KeyboardInterrupt

    monkeypatch.setattr(host, "_emitted", interrupted)
    with pytest.raises(KeyboardInterrupt):
        host.compile_ir("; a module that no cache has\ndefine void @g() {\nret void\n}\n; %f", "g")

    def take():
        with host._llvm_lock:
            pass

    other = threading.Thread(target=take, daemon=True)
    other.start()
    other.join(10)
    assert not other.is_alive()


def test_a_signal_handler_that_compiles_leaves_the_lock_of_llvmlite_to_whom_it_interrupts():
    with host._llvm_lock:
        host.compile_ir("define i64 @eight() {\nret i64 8\n}\n", "eight")
        assert host._llvm_lock._is_owned()


FORKING = """
import os, signal, threading, time
import weft as torch
shapes = iter(range(1, 10**9))
def compile_and_compute():
    while True:
        n = next(shapes)
        torch.host.compile_ir(f"define i64 @f() {{ ret i64 {n} }}", "f")
        (torch.zeros(3_000_000 + n) + 1).sum()
        torch.rand(5)
import weft.engine.host
torch.host = weft.engine.host
torch.set_num_threads(2)
for _ in range(2):
    threading.Thread(target=compile_and_compute, daemon=True).start()
for turn in range(6):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        torch.host.compile_ir(f"define i64 @g() {{ ret i64 {turn} }}", "g")
        torch.rand(3, dtype=torch.float64).t() + (torch.zeros(3_000_000) + 1).sum()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_children_work_though_other_threads_compile_allocate_and_share(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", FORKING],
        env={**os.environ, "WEFT_CACHE_DIR": str(tmp_path / "kernels")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_long_wait_for_the_compiler_is_announced_once_on_a_terminal(monkeypatch, capsys, is_terminal):
    monkeypatch.setattr(host, "_compiling_s", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    for seconds in (0.9, 0.2, 2.0):
        host.announce(seconds)
    assert capsys.readouterr().err.count("weft: compiling kernels") == is_terminal


@pytest.mark.parametrize("stream", [None, object(), "closed"])
def test_the_announcement_needs_no_stderr(monkeypatch, tmp_path, stream):
    if stream == "closed":
        stream = open(tmp_path / "file", "w")  # noqa: SIM115
        stream.close()
    monkeypatch.setattr(host, "_compiling_s", 0.0)
    monkeypatch.setattr(sys, "stderr", stream)
    host.announce(2.0)
    assert host._compiling_s == 2.0


def test_time_that_other_threads_compile_is_not_announced(monkeypatch):
    monkeypatch.setattr(host, "_compiling_s", 0.0)
    thread = threading.Thread(target=host.announce, args=(2.0,))
    thread.start()
    thread.join()
    assert host._compiling_s == 0.0
