"""Fused kernels: one kernel for several elementwise plans, some of which read the results of others.

The stored value of a result takes the place of the load in the expressions of its readers. The value is rounded to its dtype
there, so it equals what the reader would have loaded from memory, and the bits do not change.

A kernel takes milliseconds to compile. So a chain of plans that is seen for the first time runs plan by plan. When it is seen
again, a thread compiles the kernel, while the program continues plan by plan until the kernel is ready.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.device import CPU
from ..core.iteration import broadcast_stride, loop_dims
from ..core.spec import Spec
from .expr import Expr, load, param, postorder, substitute
from .kernel import Launch
from .loops import Result

# Chains with a kernel, or that were seen. A kernel and its key take about 10 KiB.
MOST_KERNELS = 1024


class Elementwise(NamedTuple):
    """What a fused kernel must know of a plan."""

    name: str
    result: Spec
    operands: tuple[Spec, ...]  # of the tensors, without the numbers
    params: tuple  # the dtypes of the numbers, as the kernel of the plan takes them
    parts: tuple[Expr, ...]  # what the kernel of the plan stores
    nodes: int  # of the expressions of `parts`


def elementwise(
    name: str, result: Spec, operands: Sequence[Spec], params: Sequence, parts: tuple
) -> Elementwise:
    return Elementwise(name, result, tuple(operands), tuple(params), parts, len(postorder(parts)))


# A step of a chain: (plan, wiring, stored). `wiring` has an entry for each tensor: the number of an operand of the kernel, or ~k
# for the result of step k. `stored` is True if the kernel stores the result.
Step = tuple[Any, tuple[int, ...], bool]


def fused(steps: Sequence[Step]) -> Launch:
    """The kernel of a chain: call `entry(stored results..., operands..., numbers of all steps..., meta, count)`."""
    computed: list[tuple[Expr, ...]] = []
    results: list[tuple[Spec, tuple[Expr, ...]]] = []
    operands: dict[int, Spec] = {}
    params: list = []
    for plan, wiring, stored in steps:
        step = plan.deferred

        def leaf(expr: Expr, wiring: tuple = wiring, first: int = len(params)) -> Expr:
            if expr.op == "param":
                return param(first + expr.value, expr.dtype)
            index, part = expr.value if type(expr.value) is tuple else (expr.value, None)
            if wiring[index] < 0:
                return computed[~wiring[index]][part or 0]
            return load(wiring[index] if part is None else (wiring[index], part), expr.dtype)  # type: ignore[arg-type]

        parts = substitute(step.parts, leaf)
        computed.append(parts)
        params += step.params
        for number, spec in zip(wiring, step.operands, strict=True):
            if number >= 0:
                operands[number] = spec
        if stored:
            results.append((step.result, parts))
    shape = results[0][0].shape
    specs = [operands[number] for number in range(len(operands))]
    rows = [spec.byte_stride for spec, _ in results]
    rows += [tuple(step * each.dtype.itemsize for step in broadcast_stride(each, shape)) for each in specs]
    sizes, strides = loop_dims(shape, tuple(rows))
    stored_parts = [Result(parts) for _, parts in results]
    return CPU.backend.prepare(stored_parts, [each.dtype for each in specs], params, sizes, strides)


# ---- Kernels of chains that were seen before ----------------------------------------------------------------------------

_SEEN, _COMPILING, _IMPOSSIBLE = "seen", "compiling", "impossible"
_kernels: dict[tuple[Step, ...], Any] = {}
_jobs: queue.SimpleQueue = queue.SimpleQueue()
_compiler: list[threading.Thread] = []
# Whether another thread compiles. Tests turn it off: then a chain has its kernel when it is seen for the first time.
in_background = os.environ.get("WEFT_FUSE") != "now"


def kernel_of(steps: tuple[Step, ...]) -> Launch | None:
    """The kernel of a chain, or None if the chain must run plan by plan, because there is no kernel yet."""
    found = _kernels.get(steps)
    if type(found) is Launch:
        return found
    if not in_background:
        if len(_kernels) >= MOST_KERNELS:
            _kernels.clear()
        found = _kernels[steps] = fused(steps)
        return found
    if found is None:
        if len(_kernels) >= MOST_KERNELS:
            _kernels.clear()
        _kernels[steps] = _SEEN
    elif found is _SEEN:
        _kernels[steps] = _COMPILING
        if not _compiler:
            _compiler.append(threading.Thread(target=_compile, name="weft-compiler", daemon=True))
            _compiler[0].start()
        _jobs.put(steps)
    return None


def _compile() -> None:
    while (steps := _jobs.get()) is not None:
        try:
            kernel: Any = fused(steps)
        except Exception:  # the chain continues to run plan by plan, which raises what there is to raise
            kernel = _IMPOSSIBLE
        _kernels[steps] = kernel


def _stop() -> None:
    """Wait for the compiler, because LLVM must not run while the interpreter ends."""
    if _compiler:
        while not _jobs.empty():
            _jobs.get_nowait()
        _jobs.put(None)
        _compiler.pop().join()


def _after_fork() -> None:
    global _jobs
    _jobs = queue.SimpleQueue()
    _compiler.clear()  # threads do not survive a fork
    for steps, found in list(_kernels.items()):
        if found is _COMPILING:
            _kernels[steps] = _SEEN


atexit.register(_stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
