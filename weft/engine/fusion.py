"""Fused kernels: one kernel for several elementwise plans, some of which read the results of others.

The stored value of a result takes the place of the load in the expressions of its readers. The value is rounded to its dtype
there, so it equals what the reader would have loaded from memory, and the bits do not change.

A kernel takes milliseconds to compile. So a chain of plans that is seen for the first time runs plan by plan, unless its results
are so large that this takes longer than to compile. When the chain is seen again, a thread compiles the kernel, while the program
continues plan by plan until the kernel is ready.
"""

from __future__ import annotations

import ctypes
import functools
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.dtype import DType
from ..core.iteration import broadcast_stride, loop_dims
from ..core.kernel_names import joined, planning
from ..core.size import Size
from ..core.spec import Spec, contiguous_spec
from .background import Background
from .expr import Expr, const, load, param, postorder, substitute
from .kernel import Launch
from .loops import Result

# Bytes of the results of all steps. The kernel of a longer chain is compiled when the chain is seen for the first time, because the
# plans would take longer: 3 plans on 10^7 floats (114 MiB) take 19 ms, their kernel takes 19 to 25 ms to compile and 8 to run. For 9 plans
# (343 MiB) it is 71, 36 and 10 ms (processor time, AMD Zen 4). Besides, the intermediate results need no memory.
MOST_UNFUSED = 1 << 27
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


class Chain(NamedTuple):
    """Holds the expressions of a chain of plans."""

    parts: list[tuple[Expr, ...]]  # what each step computes: the stored parts of an element
    operands: list[Spec]
    params: list  # the dtypes of the numbers of all steps


def composed(steps: Sequence[Step], number: Callable[[int, DType], Expr] = param) -> Chain:
    """The chain with the stored value of a result in place of each load of it. `number(k, dtype)` is number `k` of the chain."""
    parts: list[tuple[Expr, ...]] = []
    operands: dict[int, Spec] = {}
    params: list = []
    for plan, wiring, _ in steps:
        step: Elementwise = plan.deferred
        parts.append(substitute(step.parts, functools.partial(_leaf, parts, wiring, len(params), number)))
        params += step.params
        for place, spec in zip(wiring, step.operands, strict=True):
            if place >= 0:
                operands[place] = spec
    return Chain(parts, [operands[place] for place in range(len(operands))], params)


def _leaf(parts: list, wiring: Sequence[int], first: int, number: Callable, expr: Expr) -> Expr:
    if expr.op == "param":
        return number(first + expr.value, expr.dtype)
    index, part = expr.value if type(expr.value) is tuple else (expr.value, None)
    place = wiring[index]
    if place < 0:
        return parts[~place][part or 0]
    return load(place if part is None else (place, part), expr.dtype)  # type: ignore[arg-type]


def reduced(steps: Sequence[Step], to_state: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], list[Spec]]:
    """Return the state of an element of the last step, and the operands: the chain's, then its numbers as tensors.

    Raises: NotImplementedError if the kernel of a reduction cannot compute the chain.
    """
    count = len({place for _, wiring, _ in steps for place in wiring if place >= 0})
    chain = composed(steps, lambda k, dtype: load(count + k, dtype))
    last = chain.parts[-1]

    def leaf(expr: Expr) -> Expr:
        if expr.value == "index":
            return expr
        return last[expr.value[1] if type(expr.value) is tuple else 0]

    state = substitute(to_state, leaf)
    if any(each.op == "slow_path" for each in postorder(state)):
        raise NotImplementedError("vectors have no slow path")
    return state, [*chain.operands, *(contiguous_spec((), dtype) for dtype in chain.params)]


def packed(numbers: Sequence[Any], steps: Sequence[Step]) -> Any:
    """Return the numbers of a chain in memory, eight bytes each."""
    dtypes = [dtype for plan, _, _ in steps for dtype in plan.deferred.params]
    words = [const(value, dtype).value for value, dtype in zip(numbers, dtypes, strict=True)]
    return _array_type(len(words))(*words)


@functools.cache
def _array_type(length: int) -> Any:
    """A class of arrays of words. ctypes forgets a class without objects, which is a reference cycle then."""
    return ctypes.c_uint64 * length


def fused(steps: Sequence[Step]) -> Launch:
    """The kernel of a chain: call `entry(stored results..., operands..., numbers of all steps..., meta, count)`."""
    chain = composed(steps)
    stored = [(plan.spec, parts) for (plan, _, kept), parts in zip(steps, chain.parts, strict=True) if kept]
    shape = stored[0][0].shape
    rows = [spec.byte_stride for spec, _ in stored]
    rows += [byte_strides(each, shape) for each in chain.operands]
    sizes, strides = loop_dims(shape, tuple(rows))
    results = [Result(parts) for _, parts in stored]
    backend = stored[0][0].device.backend
    with planning(name_of(steps)):
        return backend.prepare(results, [each.dtype for each in chain.operands], chain.params, sizes, strides)


def name_of(steps: Sequence[Step]) -> str:
    """The name of the kernel of a chain."""
    return joined([plan.deferred.name for plan, *_ in steps])


def byte_strides(operand: Spec, shape: Size) -> tuple[int, ...]:
    """The strides of an operand that is broadcast to a shape."""
    return tuple(step * operand.dtype.itemsize for step in broadcast_stride(operand, shape))


# ---- Kernels of chains that were seen before ----------------------------------------------------------------------------

_SEEN, _COMPILING, _REFUSED = "seen", "compiling", "refused"
_kernels: dict[tuple, Any] = {}
_compiler = Background("weft-compiler")
# Whether another thread compiles. Tests turn it off: then a chain has its kernel when it is seen for the first time.
in_background = os.environ.get("WEFT_FUSE") != "now"


def kernel_of(key: tuple, build: Callable[[], Any]) -> Any:
    """The kernel for a key, which `build` makes, or None if the chain must run plan by plan, because there is no kernel yet.

    The key of a chain consists of its steps, those of a reduction that ends a chain after the plan of the reduction.
    """
    found = _kernels.get(key)
    if type(found) is not str and found is not None:
        return found
    if found is None:
        if len(_kernels) >= MOST_KERNELS:
            _kernels.clear()
        if not in_background:
            _compile(key, build)
            return kernel_of(key, build)
        if sum([each[0].spec.nbytes for each in key if type(each) is tuple]) >= MOST_UNFUSED:
            _compile_safely(key, build)
            return kernel_of(key, build)
        _kernels[key] = _SEEN
    elif found is _SEEN and _compiler.start():
        try:
            _kernels[key] = _COMPILING
            _compiler.submit(functools.partial(_compile_safely, key, build))
        except BaseException:  # Ctrl-C: a kernel that nobody compiles would be waited for
            _kernels[key] = _SEEN
            raise
    return None


def refuse(key: tuple) -> None:
    """Let the chain of a key run without a kernel of its own from now on."""
    _kernels[key] = _REFUSED


def is_refused(key: tuple) -> bool:
    return _kernels.get(key) is _REFUSED


def _compile_safely(key: tuple, build: Callable[[], Any]) -> None:
    try:
        _compile(key, build)
    except Exception:  # of the system, for want of memory say; the chain continues to run plan by plan
        refuse(key)


def _compile(key: tuple, build: Callable[[], Any]) -> None:
    try:
        _kernels[key] = build()
    except NotImplementedError:
        refuse(key)


def known_chains() -> tuple[int, int]:
    """The numbers of chains that were seen, and of those that have a kernel or cannot have one."""
    found = tuple(_kernels.values())
    return len(found), sum(each is not _SEEN for each in found)


def wait() -> None:
    """Wait until all kernels are compiled that were asked for."""
    while any(found is _COMPILING for found in tuple(_kernels.values())):
        time.sleep(0.001)


def _after_fork() -> None:
    # The thread that compiles does not survive a fork, so a chain asks for its kernel again.
    for key, found in list(_kernels.items()):
        if found is _COMPILING:
            _kernels[key] = _SEEN


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
