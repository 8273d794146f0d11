"""Deferred work: elementwise results on large tensors are promised, and computed when somebody needs the bytes.

A promise belongs to a storage without memory (`core/promised.py`). When somebody asks for the address of the storage, the
promise is kept: the promises that it reads, and that have not been kept, run with it as one kernel (`fusion.py`). A promise
whose storage is still alive is one more result of that kernel. A promise whose storage is gone is a value inside of the kernel,
which is never written to memory. A promise that nobody reads before its storage is gone is never computed.

Errors are raised at the call, because a plan is deferred only if its kernel cannot raise. A storage that code outside weft can
write to is never read late: an operation that reads it runs at once.
"""

from __future__ import annotations

import collections
import ctypes
import functools
import itertools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from sys import getrefcount
from time import perf_counter
from types import BuiltinFunctionType
from typing import Any, NamedTuple

from ..core import streams
from ..core.locks import new_lock
from ..core.promised import Promised, Watched, keeper, new_promised, promise_of
from ..core.restoring import Restoring
from ..core.settings import refuse_setting
from ..core.spec import Spec
from ..core.storage import FOREIGN, Storage
from . import fusion, habits
from .background import has_threads
from .fusion import Elementwise, Step, elementwise, is_refused, kernel_of, packed, refuse
from .host import builtin

# Elements. The results of smaller operations are computed at once, because a promise and its share of keeping a chain cost 5 us,
# and values of this size stay in the cache between two operations: a chain of three on 10^5 floats takes 28 us in one kernel and
# 30 us in three, on 10^6 floats 127 and 205 us (AMD Zen 4, 2 threads). WEFT_DEFER sets another number.
LEAST_ELEMENTS = 1 << 17
if chosen := os.environ.get("WEFT_DEFER"):
    if not chosen.isdecimal():
        refuse_setting(f"WEFT_DEFER must be the least number of elements of deferred results, not {chosen!r}")
    LEAST_ELEMENTS = max(1, int(chosen))
if os.environ.get("WEFT_EAGER") == "1":
    LEAST_ELEMENTS = sys.maxsize
# Operations in one kernel. Longer chains are cut, because the time to compile a kernel grows faster than its length.
MOST_STEPS = 48
# Nodes of the expressions in one kernel.
MOST_NODES = 2000
# Nodes of the chain in the kernel of a reduction, which contains the chain ten times: for vectors, for single elements, ...
MOST_REDUCED = 300
# Nodes. A longer chain is stored when it is reduced, if it was needed again after it had been reduced without being stored.
CHEAP_NODES = 40
# Promises that wait at the same time. More than that are usually results that nobody will read soon.
MOST_PROMISES = 256
# Promises keep their operands alive although the program may have deleted them: at most as many bytes as the largest deferred result of the
# device (`Backend.most_deferred`). On the CPU this is what the allocator keeps for later at most, so that deferral at most doubles what
# weft holds beyond the program's tensors.

_has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()  # a storage changes its class without a lock
_lock = new_lock()


class _Eager(threading.local):
    active = False


_eager = _Eager()


class Promise:
    """An elementwise operation that has not run.

    number: the place in the order of the calls.
    stream: the stream that gets the work; None for the current one, as long as no thread has chosen another than the default stream.
    sources: for each tensor a storage with memory, or another promise. Empty after the promise has been kept.
    offsets: the byte offset of each tensor in its storage. numbers: the numbers, as the kernel takes them.
    storage: a weak reference to the storage of the result.
    reduction: the key of the kernel that has reduced the result without storing it, or None.
    steps, nodes, nbytes: how much the promise and all that it waits for add to a kernel, at most.
    """

    # fmt: off
    __slots__ = (
        "plan", "number", "sources", "offsets", "numbers", "storage", "steps", "nodes", "nbytes", "reduction", "stream", "__weakref__",
    )
    # fmt: on

    plan: Any
    number: int
    sources: tuple[Any, ...]
    offsets: tuple[int, ...]
    numbers: Sequence
    storage: Any
    steps: int
    nodes: int
    nbytes: int
    reduction: Any
    stream: Any


_waiting: dict[int, weakref.ref[Promise]] = {}  # by the number of the promise, in the order of the calls
_numbers = itertools.count()
# How often promises were made or kept. While a thread holds the lock, its signal handlers and finalizers may do this, too.
# Between two steps that call no function, no handler runs: what was true when `_turn` was read is true if `_turn` is the same.
_turn = 0
observers: list[Any] = []  # `explain.py` adds one, which is told of new promises and of what ran
_held = 0  # bytes of the operands of promises that wait; too large while promises die unread


def is_deferred(result: Spec) -> bool:
    """Whether a result with this spec may be computed later.

    A result of more than `most_deferred` bytes is computed at once, so that the call itself raises if there is no memory for it.
    """
    return (
        LEAST_ELEMENTS <= result.numel
        and result.nbytes <= result.device.backend.most_deferred
        and result.is_dense
        and _has_gil
    )


def deferrable(
    name: str, result: Spec, operands: Sequence[Spec], params: Sequence, parts: tuple
) -> Elementwise | None:
    """What fused kernels must know of a plan whose kernel cannot raise; None if its results are computed at once."""
    if not is_deferred(result):
        return None
    for each in operands:
        if each.device is not result.device or not _follows(each, result):
            return None
    found = elementwise(name, result, operands, params, parts)
    return found if found.nodes < MOST_NODES else None


def _follows(operand: Spec, result: Spec) -> bool:
    """Whether the operand lies in memory as the result does, or is broadcast, along the dimension that runs fastest."""
    missing = len(result.shape) - len(operand.shape)
    return all(
        expected != 1 or own == 1 or stride in (0, 1)
        for own, stride, expected in zip(operand.shape, operand.stride, result.stride[missing:], strict=True)
    )


def promised(plan: Any, tensors: Sequence[Any], numbers: Sequence) -> Storage:
    """A storage for the result of a plan; usually a promise computes its bytes later."""
    with _lock:
        while True:
            if _eager.active or _runs_at_once(plan, tensors):
                return _run_at_once(plan, tensors, numbers)
            found = _promised(plan, tensors, numbers)
            if found is not None:
                return found


def _runs_at_once(plan: Any, tensors: Sequence[Any]) -> bool:
    """Whether waiting would save nothing: no operand waits, and the results of the plan are usually read alone."""
    habit = plan.habit
    return (
        habit is not None
        and not any(type(each._storage) is Promised for each in tensors)
        and habit.take_turn()
    )


def _promised(plan: Any, tensors: Sequence[Any], numbers: Sequence) -> Storage | None:
    """As `promised`; None if another promise has been kept meanwhile, so that the sources are others now."""
    global _held, _turn
    sources: list[Any] = []
    steps, nodes, nbytes = 1, plan.deferred.nodes, 0
    for tensor in tensors:
        storage = tensor._storage
        source: Any = storage
        if type(storage) is Promised:
            source = promise_of(storage)
            if source is None or not _fits(source, tensor, plan):
                storage.ptr  # noqa: B018 (computes the bytes, and maybe those of another tensor)
                return None
            steps += source.steps
            nodes += source.nodes
        elif type(storage) not in (Storage, Watched) or storage.exposed:
            return _run_at_once(plan, tensors, numbers)
        else:
            nbytes += storage.nbytes_
        sources.append(source)
    if steps > MOST_STEPS or nodes > MOST_NODES:
        # A promise with several readers has been counted several times.
        steps, nodes = _size(plan, sources)
    if steps > MOST_STEPS or nodes > MOST_NODES:
        for tensor in tensors:
            tensor._storage.ptr  # noqa: B018
        return None
    promise = Promise()
    promise.plan, promise.sources, promise.numbers = plan, tuple(sources), numbers
    promise.offsets = tuple([tensor._byte_offset for tensor in tensors])
    promise.steps, promise.nodes, promise.nbytes = steps, nodes, nbytes
    promise.reduction, promise.number = None, next(_numbers)
    promise.stream = streams.current_stream(plan.spec.device) if streams.chosen.count else None
    result = new_promised(promise, plan.spec)
    promise.storage = weakref.ref(result)
    # From now on, `_forget` replaces the sources that are kept.
    _waiting[promise.number] = weakref.ref(promise)
    _turn += 1
    for source in sources:
        if type(source) is Promise:
            if not source.sources:  # a signal handler asked for its bytes meanwhile
                return None
        elif source.__class__ is Promised or source.exposed:  # by a signal handler or another thread
            return None
        elif source.__class__ is Storage:
            source.__class__ = Watched
    if observers:
        observers[-1].promised(promise)
    _held += nbytes
    most = plan.spec.device.backend.most_deferred
    if _held > most or len(_waiting) > MOST_PROMISES:
        _keep_bounds(most)
    return result


def _size(plan: Any, sources: Sequence[Any]) -> tuple[int, int]:
    """Return the steps and nodes of the kernel for a plan with these sources."""
    order: list[_Work] = []
    seen: set[int] = set()
    for source in sources:
        if type(source) is Promise and id(source) not in seen:
            _visit(source, seen, order)
    return 1 + len(order), plan.deferred.nodes + sum(each.plan.deferred.nodes for each in order)


def _fits(source: Promise, tensor: Any, plan: Any) -> bool:
    """Whether a kernel for `plan` can compute the elements of `tensor`, which a promise computes otherwise."""
    spec = tensor.spec
    return source.plan.spec is spec and spec.shape == plan.spec.shape and not tensor._byte_offset


_exhaust = collections.deque[None](maxlen=0).extend


@functools.lru_cache(maxsize=1024)
def _exhauster(name: str) -> Callable[[Iterator], None]:
    """As `_exhaust`, with the name of a kernel: profilers show what Python calls, and not what that calls in turn."""
    # PyObject_Vectorcall(self, args, nargs, kwnames) has the arguments of a builtin function with keywords.
    address = ctypes.cast(ctypes.pythonapi.PyObject_Vectorcall, ctypes.c_void_p).value
    assert address is not None
    return builtin(address, name, _exhaust, keywords=True)


_gone: Any = weakref.ref(Promise())  # refers to nothing


def rewritten(plan: Any, target: Any, tensors: Sequence[Any], numbers: Sequence) -> bool:
    """Promise the new content of a tensor that a plan writes over; False if the caller has to write at once.

    The old content becomes that of another storage, which the promises that wait for it read from now on. If nobody but the new
    promise reads it, the new content takes its memory (`_donor`).
    """
    global _turn
    storage = target._storage
    with _lock:
        # Try a second time if other promises have been kept meanwhile, to stay within the bounds, say.
        for _ in range(2):
            turn = _turn
            if _eager.active or not _may_wait(plan, storage, target, tensors):
                return False
            result = _promised(plan, tensors, numbers)
            promise = promise_of(result) if type(result) is Promised else None
            if result is None or promise is None or _turn != turn + 1:
                continue
            work = itertools.starmap(setattr, _exchange(storage, result, promise))
            if _turn == turn + 1:
                _exhaust(work)  # at once, because no signal handler runs inside of it
                _turn += 1
                return True
    return False


def _may_wait(plan: Any, storage: Storage, target: Any, tensors: Sequence[Any]) -> bool:
    """Whether the new content of all of a storage may be computed later.

    It is computed at once if recorded work of the device uses addresses. It is also computed at once if there are other operands and all have memory, because a promise would keep them alive, and save nothing.

    The same holds if the storage has memory and the program has threads. The memory of the new content may be another
    block (`_donor`), and a kernel of another thread that has the address already would read or write memory of other tensors then.
    """
    storages = [storage, *[each._storage for each in tensors]]
    return (
        not target._byte_offset
        and not plan.spec.device.backend.keeps_addresses
        and storage.nbytes_ == plan.spec.nbytes
        and storage.owner is None
        and type(storage.version) is int  # that of inference mode raises
        and (type(storage) is Promised or streams.is_of_current(storage))
        and all(type(each) in (Storage, Watched, Promised) and not each.exposed for each in storages)
        and (any(type(each) is Promised for each in storages) or all(each is storage for each in storages))
        and (type(storage) is Promised or storage.bin is not FOREIGN and not has_threads())
        and not any(
            type(source) is Promise and source.storage() is storage and type(storage) is not Promised
            for each in _living()
            for source in each.sources
        )
    )


def _exchange(storage: Storage, result: Storage, promise: Promise) -> list[tuple[Any, str, Any]]:
    """The assignments that make a promise for `result` that of the storage, whose memory becomes that of `result`."""
    before: Promise | None = promise_of(storage) if type(storage) is Promised else None
    changes: list[tuple[Any, str, Any]] = []
    if before is not None:
        changes.append((before, "storage", _gone))
    else:
        for each in _living():
            if any(source is storage for source in each.sources):
                sources = tuple([result if source is storage else source for source in each.sources])
                changes.append((each, "sources", sources))
        memory = [(result, "ptr", storage.ptr), (result, "bin", storage.bin), (storage, "bin", FOREIGN)]
        changes += [(result, "__class__", Watched), *memory]
    return [
        *changes,
        (storage, "__class__", Storage),
        (storage, "version", storage.version + 1),
        (storage, "ptr", promise),
        (storage, "__class__", Promised),
        (promise, "storage", weakref.ref(storage)),
    ]


def _run_at_once(plan: Any, tensors: Sequence[Any], numbers: Sequence) -> Storage:
    storage = plan.allocate()
    addresses = [tensor._storage.ptr + tensor._byte_offset for tensor in tensors]
    plan.entry(storage.ptr, *addresses, *numbers, plan.meta, plan.count)
    return storage


def _living() -> list[Promise]:
    """The promises that wait, in the order of the calls."""
    found: list[Promise] = []
    for number, reference in list(_waiting.items()):
        promise = reference()
        if promise is None:
            _waiting.pop(number, None)
        else:
            found.append(promise)
    return found


def _keep_bounds(most: int) -> None:
    """Keep the oldest promises until the others are within the bounds. most: bytes of their operands."""
    global _held
    waiting = _living()
    _held = sum(promise.nbytes for promise in waiting)
    for promise in waiting:
        if _held <= most // 2 and len(_waiting) <= MOST_PROMISES // 2:
            break
        if promise.sources:
            _keep_readers_of(promise)


# ---- Keeping promises ----------------------------------------------------------------------------------------------------


class _Work(NamedTuple):
    """A promise, and what it read when its chain was collected."""

    promise: Promise
    plan: Any
    sources: tuple[Any, ...]
    offsets: tuple[int, ...]
    numbers: Sequence


class _Late(Exception):  # noqa: N818 (no error)
    """A signal handler or a finalizer has made or kept promises since the chain was collected."""


def keep(
    promise: Promise, fuse: bool = True, chain_of: Callable[[Promise], list[_Work]] | None = None
) -> None:
    """Compute the bytes of a promise, and of all other promises with a living storage in its chain (`chain_of`)."""
    with _lock:
        storage = promise.storage()
        while storage is not None and promise.sources:
            try:
                _keep_once(promise, fuse, chain_of or _chain)
            except _Late:
                continue


def _keep_once(promise: Promise, fuse: bool, chain_of: Callable[[Promise], list[_Work]]) -> None:
    """As `keep`. Raises: _Late if the promise has to be kept again."""
    turn = _turn
    chain = chain_of(promise)
    # A storage with memory has been computed, but an exception came before its promise was forgotten.
    alive: list[Storage | None]
    alive = [each if type(each) is Promised else None for work in chain for each in (work.promise.storage(),)]
    if _turn != turn:
        raise _Late
    try:
        if alive[-1] is not None:
            _note_habits(chain)
            start = perf_counter()
            if promise.stream is None:
                kernels = _compute(chain, alive, turn, fuse)
            else:
                with streams.given_to(promise.stream):
                    kernels = _compute(chain, alive, turn, fuse)
            if observers:
                stored = [each is not None for each in alive]
                observers[-1].ran(chain, stored, None, kernels, perf_counter() - start)
    finally:
        _forget(chain)


def _compute(chain: list[_Work], alive: list[Storage | None], turn: int, fuse: bool) -> int:
    """Compute the results with a living storage. Returns how many kernels ran."""
    if len(chain) == 1:
        return _run_alone(chain, alive, turn)
    fused = fuse and _run(chain, alive, turn)
    return 1 if fused else _run_by_plans(chain, alive, turn)


def _note_habits(chain: list[_Work]) -> None:
    if len(chain) == 1:
        habits.note_alone(chain[0].plan)
    else:
        habits.note_fused(each.plan for each in chain)


def _chain(promise: Promise) -> list[_Work]:
    """The promise and all that it waits for, each after those that it reads."""
    order: list[_Work] = []
    _visit(promise, set(), order)
    return order


def _visit(promise: Promise, seen: set[int], order: list[_Work]) -> None:
    seen.add(id(promise))
    sources = promise.sources
    for source in sources:  # at most MOST_STEPS deep
        if type(source) is Promise and id(source) not in seen:
            _visit(source, seen, order)
    order.append(_Work(promise, promise.plan, sources, promise.offsets, promise.numbers))


def _chain_with_others(promise: Promise) -> list[_Work]:
    """The chain of a promise, preceded by those of earlier promises that share steps with it, if one kernel can compute them all.

    All of these promises are to be kept. In one kernel the steps that they share are computed once.
    """
    chain = _chain(promise)
    shape = promise.plan.spec.shape
    for other in _living() if len(_waiting) > len(chain) else ():
        own = {id(each.promise) for each in chain}
        if id(other) in own or other.storage() is None or other.plan.spec.shape != shape:
            continue
        found = _chain(other)
        if own.isdisjoint(id(each.promise) for each in found):
            continue
        seen = {id(each.promise) for each in found}
        both = found + [each for each in chain if id(each.promise) not in seen]
        if len(both) <= MOST_STEPS and sum(each.plan.deferred.nodes for each in both) <= MOST_NODES:
            chain = both
    return chain


class _Wired(NamedTuple):
    """A chain as `fusion.py` wants it, and the arguments of its kernel."""

    steps: tuple[Step, ...]
    addresses: list[int]
    numbers: list[Any]


def _wired(chain: list[_Work], stored: list[bool]) -> _Wired:
    steps: list[Step] = []
    addresses: list[int] = []
    step_of: dict[int, int] = {}  # by the id of the promise: ~k for step k
    place_of: dict[tuple, int] = {}
    for number, each in enumerate(chain):
        wiring = []
        for source, offset, spec in zip(each.sources, each.offsets, each.plan.deferred.operands, strict=True):
            place = step_of.get(id(source))
            if place is None:
                place = place_of.setdefault((id(source), offset, spec), len(addresses))
                if place == len(addresses):
                    addresses.append(source.ptr + offset)
            wiring.append(place)
        step_of[id(each.promise)] = ~number
        steps.append((each.plan, tuple(wiring), stored[number]))
    return _Wired(tuple(steps), addresses, [argument for each in chain for argument in each.numbers])


def _run(chain: list[_Work], alive: list[Storage | None], turn: int) -> bool:
    """Compute the results with a living storage by one kernel; False if there is no kernel."""
    steps, addresses, numbers = _wired(chain, [each is not None for each in alive])
    kernel = kernel_of(steps, functools.partial(fusion.fused, steps))
    if kernel is None:
        return False
    results: list[tuple[Any, Any]] = [
        (storage, each.plan.allocate())
        for each, storage in zip(chain[:-1], alive, strict=False)
        if storage is not None
    ]
    results.append((alive[-1], _donor(chain, kernel.entry) or chain[-1].plan.allocate()))
    written = [block.ptr for _, block in results]
    _launch(results, kernel.entry, (*written, *addresses, *numbers, kernel.meta, kernel.count), turn)
    return True


def _run_alone(chain: list[_Work], alive: list[Storage | None], turn: int) -> int:
    """Compute the result of a chain of one step. Returns 1, the number of kernels."""
    (work,) = chain
    plan = work.plan
    block = _donor(chain, plan.entry) or plan.allocate()
    addresses = [source.ptr + offset for source, offset in zip(work.sources, work.offsets, strict=True)]
    arguments = block.ptr, *addresses, *work.numbers, plan.meta, plan.count
    _launch([(alive[0], block)], plan.entry, arguments, turn)
    return 1


def _run_by_plans(chain: list[_Work], alive: list[Storage | None], turn: int) -> int:
    """Compute the results by a kernel for each step. Returns how many there were."""
    last = {id(source): number for number, each in enumerate(chain) for source in each.sources}
    donor = _donor(chain, chain[-1].plan.entry)
    made: dict[int, Storage] = {}
    for number, (each, storage) in enumerate(zip(chain, alive, strict=True)):
        plan = each.plan
        block = donor if number == len(chain) - 1 else None
        block = block or _spare(each, [source for source in each.sources if last[id(source)] == number], made)
        block = block or plan.allocate()
        addresses = [
            made.get(id(source), source).ptr + offset
            for source, offset in zip(each.sources, each.offsets, strict=True)
        ]
        arguments = block.ptr, *addresses, *each.numbers, plan.meta, plan.count
        _launch([] if storage is None else [(storage, block)], plan.entry, arguments, turn)
        made[id(each.promise)] = block if storage is None else storage
        for source in each.sources:
            if last[id(source)] == number:
                made.pop(id(source), None)  # returns the memory of a value that nobody needs any more
    return len(chain)


def _spare(work: _Work, ending: list[Any], made: dict[int, Storage]) -> Storage | None:
    """The memory of a value that nobody needs after this step, and whose elements lie as those of the result of the step."""
    if type(work.plan.entry) is BuiltinFunctionType:
        for source, spec in zip(work.sources, work.plan.deferred.operands, strict=True):
            if type(source) is Promise and spec is work.plan.spec and any(source is each for each in ending):
                if source.storage() is None:
                    return made.get(id(source))
    return None


def _launch(results: Sequence[tuple[Any, Any]], entry: Callable, arguments: Sequence, turn: int) -> None:
    """Run a kernel, and give its results, which are pairs (storage, block), the memory of their blocks.

    No signal handler and no finalizer runs between the last look at `_turn` and the memory of the last result, because all of this is
    one call of a C function. This matters if the kernel overwrites an operand: it must not run again, and nobody may compute
    other results from that operand.

    Raises: _Late if others have made or kept promises since `turn`, so that the operands may have changed.
    """
    owners: list[Any] = []
    values: list[Any] = []
    for storage, block in results:
        owners += storage, storage, storage, block
        # Other promises may wait for the storage, so it is Watched.
        values += Watched, block.ptr, block.bin, FOREIGN
    exhaust: Callable[[Iterator], None] = _exhaust
    launch: Iterator = itertools.starmap(entry, (arguments,))
    changes = map(setattr, owners, itertools.cycle(("__class__", "ptr", "bin", "bin")), values)
    if type(entry) is BuiltinFunctionType:
        launch = itertools.chain(launch, changes)
        exhaust = _exhauster(entry.__name__)
    if _turn != turn:
        raise _Late
    exhaust(launch)
    if _turn != turn:  # while Python code ran, which a kernel in several regions has
        raise _Late
    _exhaust(changes)


def _donor(chain: list[_Work], entry: Callable) -> Storage | None:
    """An operand that nobody but the chain holds, and whose memory the last result of the chain may take over."""
    if type(entry) is not BuiltinFunctionType:
        return None
    read = [id(source) for each in chain for source in each.sources]
    for each in chain:
        for position in range(len(each.sources)):
            # The tuples of the chain hold the operand, and the call of `getrefcount`. A local variable would count in some versions
            # of Python: from 3.14 on, a call may borrow its reference.
            key = id(each.sources[position])
            if (
                getrefcount(each.sources[position]) == read.count(key) + 1
                and _lies_as_result(chain, key)
                and streams.is_of_current(each.sources[position])
            ):
                return None if _is_read_again(chain) else each.sources[position]
    return None


def _lies_as_result(chain: list[_Work], key: int) -> bool:
    """Whether the operand with this id is memory of weft in which all elements lie as those of the last result of the chain."""
    spec = chain[-1].plan.spec
    return all(
        type(source) is Watched
        and source.owner is None
        and source.nbytes_ == spec.nbytes
        and not offset
        and own.stride == spec.stride
        and own.shape == spec.shape
        and own.nbytes == spec.nbytes
        for each in chain
        for source, offset, own in zip(each.sources, each.offsets, each.plan.deferred.operands, strict=True)
        if id(source) == key
    )


def _is_read_again(chain: list[_Work]) -> bool:
    """Whether a promise outside of the chain waits for one of the chain, and so for its operands."""
    own = {id(each.promise) for each in chain}
    return any(id(source) in own for each in _living() if id(each) not in own for source in each.sources)


def _forget(chain: list[_Work]) -> None:
    """The promises in the chain whose storages have memory have been kept: those that wait for them read the storages now."""
    global _held, _turn
    kept: dict[int, Storage] = {}
    for each in chain:
        promise, storage = each.promise, each.promise.storage()
        if storage is not None and type(storage) is not Promised:
            kept[id(promise)] = storage
            if promise.reduction is not None and promise.nodes > CHEAP_NODES:
                refuse(promise.reduction)
    read = [source for each in chain for source in each.sources if type(source) is Watched]
    # Ctrl-C may end this function anywhere. So promises lose their sources only after nobody waits for them any more.
    _redirect(kept)
    _turn += 1
    for each in chain:
        promise = each.promise
        if id(promise) in kept and promise.sources:
            _held -= promise.nbytes
            _waiting.pop(promise.number, None)
            promise.sources = ()
    del chain[:], promise, each  # so that promises that nobody waits for are gone
    _release([*read, *kept.values()])


def _release(storages: list[Storage]) -> None:
    """Let those of the storages be ordinary that no promise reads any more."""
    turn = _turn
    still = {id(source) for promise in _living() for source in promise.sources}
    for storage in [each for each in storages if id(each) not in still and type(each) is Watched]:
        if _turn == turn:
            storage.__class__ = Storage  # type: ignore[assignment]


def _redirect(kept: dict[int, Storage]) -> None:
    """Let the promises that wait for these promises, which are given by their ids, read the storages instead."""
    global _held
    for promise in _living():
        if id(promise) in kept or not any(id(source) in kept for source in promise.sources):
            continue
        read = [storage for source in promise.sources if (storage := kept.get(id(source))) is not None]
        for storage in read:
            if storage.__class__ is Storage:
                storage.__class__ = Watched
        promise.sources = tuple([kept.get(id(source), source) for source in promise.sources])
        nbytes = sum(storage.nbytes_ for storage in read)
        promise.nbytes += nbytes
        _held += nbytes


def reduced(plan: Any, tensor: Any, results: Sequence[int]) -> bool:
    """Reduce a tensor that waits in one kernel with its chain, and write the results to these addresses.

    `plan.fused(steps)` prepares the kernel, and `plan.numbers` are its own numbers. The tensor still waits afterwards.
    Returns whether this is done. If it is not, the caller reads the tensor.
    """
    with _lock:
        storage = tensor._storage
        promise = promise_of(storage) if type(storage) is Promised else None
        if promise is None or not _fits(promise, tensor, promise.plan) or promise.nodes > MOST_REDUCED:
            return False
        if promise.stream is not None and promise.stream != streams.current_stream(tensor.spec.device):
            return False
        turn = _turn
        chain = _chain(promise)
        if _turn != turn:
            return False
        steps, addresses, numbers = _wired(chain, [False] * len(chain))
        if numbers and not tensor.spec.device.backend.readers:
            return False  # the kernel reads the numbers by their addresses, which are the host's
        key = (plan, *steps)
        kernel = kernel_of(key, functools.partial(plan.fused, steps))
        if kernel is None:
            keep(promise, fuse=is_refused(key))
            return False
        room = packed(numbers, steps)
        first = ctypes.addressof(room)
        places = range(first, first + 8 * len(numbers), 8)
        start = perf_counter()
        arguments = *results, *addresses, *places, kernel.reduced, *plan.numbers, kernel.meta, kernel.count
        try:
            _launch([], kernel.entry, arguments, turn)
        except _Late:
            return False
        promise.reduction = key
        habits.note_fused(each.plan for each in chain)
        if observers:
            observers[-1].ran(chain, [False] * len(chain), plan.name, 1, perf_counter() - start)
        return True


def settle(storage: Storage) -> None:
    """Do all work that computes the bytes of a storage or reads them."""
    with _lock:
        if type(storage) is Promised:
            storage.ptr  # noqa: B018
        for reference in tuple(_waiting.values()):
            promise = reference()
            if promise is not None and any(_reads(source, storage) for source in promise.sources):
                _keep_readers_of(promise)
        if storage.__class__ is Watched:
            storage.__class__ = Storage  # type: ignore[assignment]


def _reads(source: Any, storage: Storage) -> bool:
    """Whether the reader of a source reads a storage with memory.

    The source may be the promise of the storage, if a signal handler or an exception came before the promise was forgotten.
    """
    return source is storage or type(source) is Promise and source.storage() is storage


def _keep_readers_of(promise: Promise) -> None:
    """Keep a promise, or if its storage is gone, the promises that wait for it."""
    if promise.storage() is not None:
        keep(promise)
        return
    for reference in tuple(_waiting.values()):
        reader = reference()
        if reader is not None and any(source is promise for source in reader.sources):
            _keep_readers_of(reader)


def keep_all() -> None:
    """Keep all promises whose storages are alive."""
    with _lock:
        # The latest first, because it takes along what it waits for.
        for reference in reversed(tuple(_waiting.values())):
            promise = reference()
            if promise is not None and promise.storage() is not None:
                keep(promise, chain_of=_chain_with_others)


keeper.keep, keeper.settle = keep, settle


class eager(Restoring):  # noqa: N801 (used like a function)
    """A context in which this thread computes every result at once, as with the environment variable WEFT_EAGER=1.

    >>> import weft as torch
    >>> with torch.eager():
    ...     torch.ones(3) + 1
    tensor([2., 2., 2.])
    """

    __slots__ = ("outer",)

    def __enter__(self) -> None:
        self.outer = _eager.active
        _eager.active = True

    def _restore(self) -> None:
        _eager.active = self.outer
