"""Ctrl-C at every place where CPython may deliver one: `python tests/hunts/interruptions.py --help`.

CPython runs signal handlers when a Python function begins, after each call, and when a loop jumps back. This program
carries out a piece of work once for each such place in weft's code, raises KeyboardInterrupt there, and looks whether
everything is as it should be: all modes as before, no block of memory lost, the next kernel compiles, the next training
step computes what it would have computed, a file is the old one or the new one. The pieces of work are a training step,
the compilation of kernels with an empty cache, saving over a file, and loading.

`--storm SECONDS` sends real signals at random moments to child processes instead, for as long.
"""

from __future__ import annotations

import argparse
import dis
import functools
import gc
import io
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WEFT = str(ROOT / "weft")


@functools.cache
def _handlers(code: Any) -> list[Any]:
    return dis._parse_exception_table(code)  # type: ignore[attr-defined]  # there is no public function


def _handler(code: Any, offset: int) -> int | None:
    """Where an exception goes that an instruction raises; None: to the caller."""
    return next((each.target for each in _handlers(code) if each.start <= offset < each.end), None)


class Interrupter:
    """Counts the places where a signal handler may run, and raises at one of them.

    After a call that has returned means: when the next instruction begins, if the same handler serves both. (CPython
    raises as from the call; of calls at the end of a `try` or `with` block, that is no place that can be had here.)
    Only frames of weft count.
    """

    def __init__(self, at: int = -1):
        self.at, self.places = at, 0
        self.where = ""
        self._after_call: dict[int, int] = {}  # frame -> where its call is

    def _visit(self, frame: Any) -> None:
        place, self.places = self.places, self.places + 1
        if place == self.at:
            self.where = f"{Path(frame.f_code.co_filename).relative_to(ROOT)}:{frame.f_lineno} ({frame.f_code.co_name})"
            sys.settrace(None)
            raise KeyboardInterrupt

    def _global(self, frame: Any, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(WEFT):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if (
            dis.opname[frame.f_code.co_code[frame.f_lasti]] == "RESUME"
        ):  # not a generator that is being closed
            self._visit(frame)
        return self._local

    def _local(self, frame: Any, event: str, argument: Any) -> Any:
        if event == "opcode":
            called = self._after_call.pop(id(frame), None)
            if called is not None and _handler(frame.f_code, called) == _handler(frame.f_code, frame.f_lasti):
                self._visit(frame)
            name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if name.startswith(("CALL", "JUMP_BACKWARD")) and "NO_INTERRUPT" not in name:
                self._after_call[id(frame)] = frame.f_lasti
        elif event in ("return", "exception"):
            self._after_call.pop(id(frame), None)
        return self._local

    def __enter__(self) -> Interrupter:
        sys.settrace(self._global)
        return self

    def __exit__(self, *exception: Any) -> None:
        sys.settrace(None)


def modes() -> dict[str, Any]:
    from weft.autograd import anomaly, saved
    from weft.autograd.hooks import running
    from weft.core import autocast, device, grad_mode, overrides
    from weft.core.dtype import get_default_dtype
    from weft.engine import blas, workers
    from weft.serialization import options

    mode, state = grad_mode.mode, autocast.state
    return {
        "grad mode": (mode.enabled, mode.inference, mode.reverse),
        "autocast": (state.enabled, state.dtypes, len(autocast.open_contexts)),
        "inference modes": len(grad_mode.open_inference),
        "forward levels": list(grad_mode.open_levels),
        "overrides": overrides.switch.on,
        "device": device._default,
        "dtype": get_default_dtype(),
        "anomaly": (anomaly.tracing, anomaly.checking),
        "hooks": (len(saved.hooks.stack), saved.hooked),
        "backward": running.now,
        "skip_data": options.local.skip_data,
        "threads": workers.get_num_threads(),
        "pool": int(workers._pool[workers.BUSY]),
        "BLAS": (blas.ONE_THREAD.inside, [library.get_threads() for library in blas._libraries()]),
    }


def allocated() -> int:
    import weft

    gc.collect()
    return weft.cpu.memory_stats()["allocated_bytes.all.current"]


# ---- Pieces of work: each has `run`, and `check` raises AssertionError if what is left is wrong ----------------------


class TrainingStep:
    """Forward, backward and a step of Adam; what is touched half way is set back by hand before the next step."""

    def __init__(self) -> None:
        import weft as torch

        self.torch = torch
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(8, 16),
            torch.nn.GELU(),
            torch.nn.LayerNorm(16),
            torch.nn.Dropout(0.1),
            torch.nn.Linear(16, 3),
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-2)
        self.x, self.y = torch.randn(32, 8), torch.randint(0, 3, (32,))
        for _ in range(3):
            self.run()
        self.state = self._state()
        self.expected = self._expected()

    def _state(self) -> bytes:
        file = io.BytesIO()
        self.torch.save(
            (self.model.state_dict(), self.optimizer.state_dict(), self.torch.get_rng_state()), file
        )
        return file.getvalue()

    def _back(self) -> None:
        model, optimizer, numbers = self.torch.load(io.BytesIO(self.state))
        self.model.load_state_dict(model)
        self.optimizer.load_state_dict(optimizer)
        self.torch.set_rng_state(numbers)

    def _expected(self) -> list:
        self._back()
        loss = self.run()
        found = [loss, *(p.detach().flatten().tolist() for p in self.model.parameters())]
        self._back()
        return found

    def run(self) -> float:
        self.optimizer.zero_grad()
        loss = self.torch.nn.functional.cross_entropy(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def check(self) -> None:
        assert self._expected() == self.expected, "the next step differs"
        self.optimizer.zero_grad()


class Compilation:
    """Two kernels that no cache has, simple ones: most places would be in the code that writes down expressions."""

    def __init__(self) -> None:
        import weft as torch
        from weft.core.plans import _caches
        from weft.engine import host, kernel, tiers

        self.torch, self.host, self.kernel, self.caches = torch, host, kernel, _caches
        self.tiers = tiers
        self.folder = tempfile.mkdtemp()
        self.cache = host.disk_cache()
        self.cache.directory = Path(self.folder)
        self.values = torch.tensor([[1.5, 2.0], [0.5, 3.0]], dtype=torch.float64)
        self.expected = self._compute()
        self._forget()

    def _forget(self) -> None:
        for cache in list(self.caches.values()):
            cache.clear()
        self.kernel.compiled.cache_clear()
        self.kernel.compiled_reduction.cache_clear()
        self.tiers._linked.clear()
        self.cache._opened = None
        for each in Path(self.folder).iterdir():
            each.unlink()

    def _compute(self) -> list:
        return [self.torch.maximum(self.values, self.values.t()).tolist(), self.values.amax(0).tolist()]

    def run(self) -> list:
        return self._compute()

    def check(self) -> None:
        assert self._compute() == self.expected, "kernels compute something else"
        self.tiers.finish()  # another thread writes files, too
        left = [each.name for each in Path(self.folder).iterdir() if each.name.startswith("tmp")]
        assert not left, f"files are left behind: {left}"
        self._forget()

    def close(self) -> None:
        shutil.rmtree(self.folder)


class Saving:
    """torch.save over a file that is there."""

    def __init__(self) -> None:
        import weft as torch

        self.torch = torch
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "state.pt"
        self.old, self.new = (
            {"a": torch.zeros(500), "b": 1},
            {"a": torch.ones(700).reshape(2, 350).t(), "b": 2},
        )
        self._back()
        self.run()
        self._back()

    def _back(self) -> None:
        self.torch.save(self.old, self.path)

    def run(self) -> None:
        self.torch.save(self.new, self.path)

    def check(self) -> None:
        found = self.torch.load(self.path)
        wanted = self.old if found["b"] == 1 else self.new
        assert self.torch.equal(found["a"], wanted["a"]), "the file is neither the old one nor the new one"
        assert os.listdir(self.folder) == ["state.pt"], f"files are left behind: {os.listdir(self.folder)}"
        self._back()

    def close(self) -> None:
        shutil.rmtree(self.folder)


class Loading(Saving):
    def run(self) -> None:
        self.torch.load(self.path)


WORK: dict[str, Callable[[], Any]] = {
    "training": TrainingStep,
    "compilation": Compilation,
    "saving": Saving,
    "loading": Loading,
}


def hunt(name: str, limit: int | None = None, seed: int = 0) -> tuple[int, list[str]]:
    """How many places were tried, of those that the work has, and what was wrong after them."""
    work = WORK[name]()
    with Interrupter() as counter:
        work.run()
    work.check()
    places = list(range(counter.places))
    if limit is not None and limit < len(places):
        places = sorted(random.Random(seed).sample(places, limit))
    findings: list[str] = []
    unraisable: list[str] = []
    sys.unraisablehook = lambda report: unraisable.append(f"{report.exc_type.__name__} in {report.object!r}")
    for place in places:
        before, bytes_before = modes(), allocated()
        interrupter = Interrupter(place)
        try:
            with interrupter:
                work.run()
        except KeyboardInterrupt:
            pass
        problems = [
            f"{key}: {was} is now {now}"
            for (key, was), now in zip(before.items(), modes().values())
            if was != now
        ]
        for key, was in before.items():
            if key == "grad mode":
                from weft.core.grad_mode import mode

                mode.enabled, mode.inference, mode.reverse = was  # so that one finding is no other's cause
        try:
            work.check()
        except Exception as error:
            problems.append(f"{type(error).__name__}: {error}")
        lost = allocated() - bytes_before
        if lost > 0 and name != "training":  # an interrupted step may leave gradients; `check` drops them
            problems.append(f"{lost} bytes are lost")
        problems += unraisable
        unraisable.clear()
        findings += [f"{name} at {interrupter.where}: {each}" for each in problems]
    if hasattr(work, "close"):
        work.close()
    return len(places), findings


# ---- Real signals ------------------------------------------------------------------------------------------------

STORM = """
import random, signal, sys, threading, time
sys.path.insert(0, {folder!r})
import interruptions
delivered = caught = 0
def handler(*_):
    global delivered
    delivered += 1
    raise KeyboardInterrupt
work = interruptions.WORK[{name!r}]()
draw = random.Random({seed})
started = time.perf_counter(); work.run(); work.check()
longest = {longest} or 3 * (time.perf_counter() - started)
before, signals = interruptions.modes(), 0
def work_until_a_signal():  # a function: Python 3.13 may raise at the end of a loop outside the `try` around it
    signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, longest))
    while delivered == signals:
        work.run()
        if {name!r} == "compilation":
            work._forget()
signal.signal(signal.SIGALRM, handler)
end = time.monotonic() + {seconds}
while time.monotonic() < end:
    try:
        work_until_a_signal()
    except KeyboardInterrupt:
        caught += 1
    signals += 1
    assert delivered == signals, "more signals than turns"
    assert caught == signals, f"signal {{signals}} was swallowed"
    assert interruptions.modes() == before, (before, interruptions.modes())
    work.check()
def other_thread():
    import weft as torch
    torch.tensor([0.5, 0.25], dtype=torch.float64).erfinv()
thread = threading.Thread(target=other_thread, daemon=True); thread.start(); thread.join(60)
assert not thread.is_alive(), "another thread cannot compile"
print(signals)
import os
os._exit(0)
"""


def storm(name: str, seconds: float, seed: int = 0) -> tuple[int, str]:
    """How many signals a child process got in so many seconds, and what was wrong."""
    program = STORM.format(
        folder=str(Path(__file__).parent), name=name, seed=seed, seconds=seconds, longest=0
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=seconds + 240,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    count = int(run.stdout.split()[-1]) if run.returncode == 0 else 0
    return count, run.stderr[-2000:] if run.returncode or "Exception ignored" in run.stderr else ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--work", choices=WORK, action="append", help="only this piece of work; may be repeated"
    )
    parser.add_argument(
        "--limit", type=int, help="so many places of each piece of work, drawn at random; all by default"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--storm", type=float, metavar="SECONDS", help="real signals, for so long for each piece of work"
    )
    options = parser.parse_args()
    wrong = 0
    for name in options.work or WORK:
        start = time.monotonic()
        if options.storm:
            count, problem = storm(name, options.storm, options.seed)
            findings = [problem] if problem else []
        else:
            count, findings = hunt(name, options.limit, options.seed)
        kind = "signals" if options.storm else "places"
        print(
            f"{name}: {count} {kind}, {len(findings)} findings, {time.monotonic() - start:.0f} s", flush=True
        )
        for each in findings:
            print(f"  {each}", flush=True)
        wrong += len(findings)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
