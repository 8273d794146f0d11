"""The tape: what a function does to memory, recorded while it runs on copies of its tensors.

A watcher (`core/dispatch.py`) sees each call of an op, and writes the launches of the call on the tape. Everything else that
touches memory would make the tape incomplete. So while a tape is recorded, each storage on it is a `TapedStorage`, whose
address only the ops on the tape can read. Code that reads it elsewhere (`item`, `tolist`, NumPy, a kernel whose op is not known here)
raises Unsupported, and the function is not compiled.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..autograd.replays import Refused, launches_of, launches_of_graph
from ..core.device import CPU
from ..core.dispatch import PLAIN, unwatch, watch
from ..core.dtype import uint8
from ..core.generator import default_generator
from ..core.recording import needs_recording
from ..core.spec import contiguous_spec
from ..core.storage import Storage
from ..core.tensor import Tensor, address
from ..core.warn import issued
from ..families.kernel_graph import KernelGraph
from ..families.launches import OBJECT, OF_INPUT, OF_NUMBER, OF_RESULT, Launches
from ..families.map import COPY, Map, _apart, _unaliased, kernel_arguments, keyed
from ..families.product import Product
from ..families.view import View
from ..ops.creation.random_filling import drawers

# Launches of one record. A longer one gains little more, and its first call takes seconds.
MOST_STEPS = 20000


class Unsupported(Exception):
    """The function does something that a record cannot repeat; the message says what."""


class GraphBreak(Unsupported):
    """The same where PyTorch's compiler breaks the graph, too, so that `fullgraph=True` raises an error."""


class Ref(NamedTuple):
    """An address: `offset` bytes behind the first byte of storage number `storage` of the tape."""

    storage: int
    offset: int


class Step(NamedTuple):
    """One launch: `entry(*arguments)`."""

    entry: Callable
    arguments: tuple[Any, ...]  # a Ref for each address, else what the entry gets
    keepalive: Any  # the plan, which may know the machine code behind the entry


_ptr: Any = Storage.__dict__["ptr"]


class TapedStorage(Storage):
    """A storage on the tape that this thread records."""

    __slots__ = ()

    @property
    def ptr(self) -> int:  # type: ignore[override]
        tape = recording.tape
        if tape is not None and not tape.inside:
            last = f"; the last operation that cannot be recorded is {tape.unknown}" if tape.unknown else ""
            raise tape.fail(f"code that cannot be recorded reads the memory of a tensor{last}")
        return _ptr.__get__(self)

    def __del__(self) -> None:
        tape = recording.tape
        if tape is not None:
            tape.number_of.pop(id(self), None)  # another object may get the id
        self.bin.append(_ptr.__get__(self))


def _state() -> bytes:
    return bytes(default_generator.state_bytes())


class _Recording(threading.local):
    tape: Tape | None = None


recording = _Recording()


class Tape:
    """The launches of one run, and the storages that they touch. A context: inside, the run of this thread is recorded."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.sizes: list[int] = []  # bytes of each storage
        self._added: list[weakref.ref[Storage]] = []
        self.number_of: dict[int, int] = {}  # by the id, as long as the storage lives
        self.given: dict[int, Storage] = {}  # copies of storages that existed before the run
        self.made: set[int] = set()  # storages that ops made
        # Storages that appeared with content that no op on the tape computed, such as those of `torch.tensor([1, 2])`. The
        # content follows from what Python saw, which the guards of the record cover.
        self.constants: dict[int, Storage] = {}
        self.written: set[int] = set()
        self.state = self._first_state = (
            _state()
        )  # of the random numbers, after the last draw that the tape has seen
        self.draws = False
        self._others_draw = False  # whether another thread has drawn random numbers meanwhile
        self.follows_indices = False  # whether kernels count bad indices
        self.failure: Unsupported | None = None
        self.inside = False
        self.skipped: Any = None  # the op and the method that ask the watchers again, when they are run
        self.unknown = ""  # the last op whose launches are not known
        self._thread = threading.get_ident()

    def __enter__(self) -> Tape:
        self._watcher, self._drawer = self._watch, self._draw
        drawers.append(self._drawer)
        recording.tape = self
        issued.refuse = self._refuse_warning
        watch(self._watcher, plain=True)
        return self

    def __exit__(self, *args: Any) -> None:
        self._give_back_draws()
        drawers.remove(self._drawer)
        unwatch(self._watcher)
        recording.tape = issued.refuse = None
        for reference in self._added:
            storage = reference()
            if storage is not None:
                storage.__class__ = Storage  # type: ignore[assignment]

    def fail(self, reason: str) -> Unsupported:
        """The error for this reason. The tape keeps the first, in case that the error is caught on its way."""
        if self.failure is None:
            self.failure = Unsupported(reason)
        return self.failure

    def _refuse_warning(self) -> NoReturn:
        raise self.fail("a warning is issued")

    def check(self) -> None:
        """Raises: Unsupported if the recording has failed."""
        if self.failure is not None:
            raise self.failure

    # -- storages ------------------------------------------------------------------------------------------------------

    def add(self, storage: Storage) -> int:
        """The number of a storage that the tape does not have yet."""
        if type(storage) is not Storage:
            raise self.fail("the memory of a tensor is of an unusual kind")
        number = self.number_of[id(storage)] = len(self.sizes)
        self.sizes.append(storage.nbytes_)
        self._added.append(weakref.ref(storage))
        storage.__class__ = TapedStorage  # type: ignore[assignment]
        return number

    def number(self, storage: Storage) -> int:
        """The number of a storage; one that no op on the tape has made is a constant."""
        found = self.number_of.get(id(storage))
        if found is None:
            if storage.owner is not None or storage.exposed or storage.device is not CPU:
                raise self.fail(
                    "an operation reads memory that other code may write to, or that is not the CPU's"
                )
            found = self.add(storage)
            self.constants[found] = storage
        return found

    def _result(self, storage: Storage) -> int:
        found = self.number_of.get(id(storage))
        if found is None:
            found = self.add(storage)
            self.made.add(found)
        return found

    def _address(self, tensor: Tensor, offset: int = 0) -> Ref:
        return Ref(self.number(tensor._storage), tensor._byte_offset + offset)

    def _target(self, tensor: Tensor) -> Ref:
        """The address of a tensor that the next step writes to."""
        place = self._address(tensor)
        if place.storage in self.constants:
            self.renew(place.storage)
        self.written.add(place.storage)
        return place

    def address(self, number: int) -> int:
        """The address of a constant."""
        return _ptr.__get__(self.constants[number])

    def renew(self, number: int) -> None:
        """Let each call of the record begin with a copy of a constant, which it will write to or return."""
        constant = self.constants.pop(number)
        self.inside = True
        try:
            content = constant.clone()
        finally:
            self.inside = False
        source = self.add(content)
        self.constants[source] = content
        self.made.add(number)
        if constant.nbytes_:
            spec = contiguous_spec((constant.nbytes_,), uint8)
            plan = COPY.write_plans[spec, spec]
            step = Step(plan.entry, (Ref(number, 0), Ref(source, 0), plan.meta, plan.count), plan.keepalive)
            self.steps.insert(0, step)

    # -- ops -----------------------------------------------------------------------------------------------------------

    def _watch(self, op: Any, method: str, args: tuple, static: dict[str, Any]) -> Any:
        if threading.get_ident() != self._thread or recording.tape is not self:
            return PLAIN
        if self.inside:
            if self.skipped == (op, method):
                self.skipped = None
                return PLAIN
            raise self.fail(f"{op.name} is called within another operation")
        self.check()
        if len(self.steps) > MOST_STEPS:
            raise self.fail(f"more than {MOST_STEPS} kernels are launched")
        try:
            return _record(op, self, method, args, static)
        except Refused:
            if not isinstance(op, View):  # a view launches nothing
                self.unknown = op.name
            return PLAIN  # it may call ops that are known; if it touches memory itself, the recording fails there

    def _draw(
        self,
        distribution: str,
        generator: Any,
        target: Tensor,
        count: int,
        dtype: Any,
        parameters: dict[str, Any],
    ) -> None:
        """Fill a tensor with random numbers; see `ops/creation/random_filling.py`."""
        backend, storage = target.spec.device.backend, target._storage
        if threading.get_ident() != self._thread or recording.tape is not self:
            self._others_draw = self._others_draw or generator is default_generator
            backend.fill(distribution, generator, address(target), count, dtype, **parameters)
            return
        if generator is not default_generator or backend is not CPU.backend:
            raise self.fail("random numbers are drawn from another generator than the default one")
        self.check_draws()
        if id(storage) in self.number_of or storage.nbytes_ != target.spec.nbytes:
            place = self._target(target)
        else:
            place = Ref(self._result(storage), target._byte_offset)

        def entry(start: int) -> None:
            backend.fill(distribution, generator, start, count, dtype, **parameters)

        entry(_ptr.__get__(storage) + target._byte_offset)
        self.steps.append(Step(entry, (place,), None))
        self.state, self.draws = _state(), True

    def _give_back_draws(self) -> None:
        """Rewind the random numbers, because the call that is recorded will draw them.

        If another thread has drawn meanwhile, they stay: rewinding would give its numbers out twice.
        """
        with default_generator.lock:
            if not self._others_draw and _state() != self._first_state:
                default_generator.load_state_bytes(np.frombuffer(self._first_state, np.uint8))

    def check_draws(self) -> None:
        """Raises: Unsupported if random numbers were drawn that the tape has not seen."""
        if _state() != self.state:
            raise self.fail("random numbers are drawn in an unusual way")

    def run(self, op: Any, method: str, args: tuple, static: dict[str, Any]) -> Any:
        """Run an op whose launches are known."""
        self.inside, self.skipped = True, (op, method) if method != "run" else None
        try:
            return getattr(op, method)(*args, **static)
        finally:
            self.inside, self.skipped = False, None


# ---- What ops launch -----------------------------------------------------------------------------------------------------


@functools.singledispatch
def _record(op: Any, tape: Tape, method: str, args: tuple, static: dict[str, Any]) -> Any:
    """Run `op.method(*args, **static)`, and write its launches on the tape."""
    if method != "run":
        raise Refused
    return _run(op, tape, args, static)


def _run(op: Any, tape: Tape, args: tuple, static: dict[str, Any]) -> Any:
    tape.inside = True
    try:
        launches = launches_of(op, args, static)
    finally:
        tape.inside = False
    return _launched(op, tape, launches, args, static)


def _launched(
    op: Any, tape: Tape, launches: Launches, args: tuple, static: dict[str, Any], numbers: Sequence[Any] = ()
) -> Any:
    """Run an op that makes these launches."""
    for k in launches.written:
        tape._target(args[0][k])
    result = tape.run(op, "run", args, static)
    results = result if isinstance(result, tuple) else (result,)
    if len(results) != len(launches.allocators):
        raise tape.fail(f"{op.name} has results of an unusual kind")
    tape.follows_indices |= launches.faults != 0
    places = [Ref(tape._result(each._storage), each._byte_offset) for each in results]
    scratch = None
    if launches.scratch is not None:
        scratch = Ref(tape._result(launches.scratch()), 0)
    for entry, arguments in launches.steps:
        given: list[Any] = []
        for kind, value, offset in arguments:
            if kind == OBJECT:
                given.append(value)
            elif kind == OF_INPUT:
                given.append(tape._address(value, offset))
            elif kind == OF_NUMBER:
                given.append(numbers[value])
            else:
                base: Any = places[value] if kind == OF_RESULT else scratch
                given.append(Ref(base.storage, base.offset + offset))
        tape.steps.append(Step(entry, tuple(given), launches.keepalive))
    return result


@_record.register
def _(op: View, tape: Tape, method: str, args: tuple, static: dict[str, Any]) -> Any:
    raise Refused  # a view launches nothing


@_record.register
def _(op: KernelGraph, tape: Tape, method: str, args: tuple, static: dict[str, Any]) -> Any:
    if op.derivative is None and needs_recording(args[0]):
        raise Refused  # it calls other ops
    given = {**dict(zip(("inputs", "static", "numbers"), args)), **static}
    inputs, statics, numbers = args[0], given.get("static", ()), given.get("numbers", ())
    launches = launches_of_graph(op, inputs, statics)
    return _launched(op, tape, launches, (inputs, statics, numbers), {}, numbers)


@_record.register
def _(op: Product, tape: Tape, method: str, args: tuple, static: dict[str, Any]) -> Any:
    if method == "run":
        return _run(op, tape, args, static)
    target, a, b = args
    plan = op.plans[a.spec, b.spec]
    if method != "write" or target.spec is not plan.spec or plan.entry is None:
        raise Refused
    given = tape._target(target), tape._address(a), tape._address(b), plan.meta, plan.count
    result = tape.run(op, method, args, static)
    tape.steps.append(Step(plan.entry, given, plan.keepalive))
    return result


@_record.register
def _(op: Map, tape: Tape, method: str, args: tuple, static: dict[str, Any]) -> Any:
    if method == "run":
        return _run(op, tape, args, static)
    if method not in ("write", "inplace") or not op.is_kernel or type(op).write is not Map.write:
        raise Refused
    target, others = args[0], args[1:]
    if method == "inplace":
        values, key = keyed(op.name, others)
        if not all(_apart(value, target) for value in values):
            raise Refused
        plan, operands = op.inplace_plans[(target.spec, *key)], (target, *values)
    else:
        if needs_recording((target, *others)):
            raise Refused
        values, key = keyed(op.name, [_unaliased(op.name, each, target) for each in others])
        plan, operands = op.write_plans[(target.spec, *key)], tuple(values)
        args = (target, *values)
    tensors = [each for each in operands if isinstance(each, Tensor)]
    place = tape._target(target)
    tape.inside = True
    try:
        numbers = kernel_arguments(operands, plan)[len(tensors) :]
    finally:
        tape.inside = False
    result = tape.run(op, method, args, static)
    given = (place, *map(tape._address, tensors), *numbers, plan.meta, plan.count)
    tape.steps.append(Step(plan.entry, given, plan.keepalive))
    return result


def tensors_in(values: Sequence[Any]) -> list[Tensor]:
    """The tensors in nested tuples, lists and dictionaries."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found += tensors_in(value)
        elif isinstance(value, dict):
            found += tensors_in(list(value.values()))
    return found
