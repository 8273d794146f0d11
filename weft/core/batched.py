"""BatchedTensor: a sample of a batch. Its spec is the spec of one sample, and its storage holds the whole batch."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable
from typing import Any

from .dtype import uint8
from .grad_mode import mode
from .overrides import disabled
from .plans import PlanCache
from .restoring import Restoring
from .spec import Spec, make_spec
from .storage import FOREIGN, Storage
from .tensor import Tensor, empty, make, view_of

# ---- Levels ----------------------------------------------------------------------------------------------------------

_numbers = itertools.count(1)


class Level:
    """One call of `vmap`: how many samples there are, and what random functions do."""

    __slots__ = ("number", "size", "randomness")

    def __init__(self, size: int, randomness: str = "error"):
        self.number = next(_numbers)  # inner levels have larger ones
        self.size = size
        self.randomness = randomness


class _Open(threading.local):
    def __init__(self) -> None:
        self.stack: tuple[Level, ...] = ()


open_levels = _Open()


# Asked first when a `torch.autograd.Function` is applied: (function, args, kwargs) -> result or PLAIN. Empty outside of vmap.
function_hooks: list[Callable[[Any, tuple, dict[str, Any]], Any]] = []


class suspended(Restoring):  # noqa: N801 (used like a function)
    """Inside, code works on whole batches, and the tensors that it makes do not belong to the level."""

    __slots__ = ("level", "outer")

    def __init__(self, level: Level):
        self.level = level

    def __enter__(self) -> None:
        outer = self.outer = open_levels.stack
        open_levels.stack = outer[: outer.index(self.level)] if self.level in outer else outer

    def _restore(self) -> None:
        open_levels.stack = self.outer


class resumed(Restoring):  # noqa: N801
    """Code that works on samples, within a rule, which works on batches."""

    __slots__ = ("level", "outer")

    def __init__(self, level: Level):
        self.level = level

    def __enter__(self) -> None:
        outer = self.outer = open_levels.stack
        open_levels.stack = (*outer, self.level)

    def _restore(self) -> None:
        open_levels.stack = self.outer


# ---- Samples ---------------------------------------------------------------------------------------------------------

_new = object.__new__


class VmapError(RuntimeError):
    """An error that users see as a RuntimeError, as in PyTorch; weft catches its subclasses by their class."""

    def __init_subclass__(cls) -> None:
        cls.__name__ = cls.__qualname__ = RuntimeError.__name__
        cls.__module__ = RuntimeError.__module__

    def __reduce__(self) -> tuple:
        return RuntimeError, self.args


class NoBatchingRule(VmapError):
    """Code that has no batching rule asked for the memory of a sample."""


class DataDependent(NoBatchingRule):
    """A function asked for the value of a sample, which differs from sample to sample."""


class BatchedStorage(Storage):
    """The memory of a batch, seen as the storage of one sample.

    `value` is the tensor beneath. If `step` is a number, it is the whole batch, with the batch dim first: an element of
    a sample lies `step` bytes behind that of the sample before it. If `step` is None, all samples are the same, and
    `value` is that constant. Kernels cannot read a batch as if it was a sample, because `ptr` raises. `value` takes part in
    what surrounds the call of `vmap`, for example in autograd.
    """

    __slots__ = ("value", "sample", "step", "level", "fresh")

    value: Tensor
    sample: Spec  # the metadata of a sample of `value`
    step: int | None
    level: Level
    fresh: bool  # whether a constant was made within the level: then it becomes a batch when samples are written into it

    def __init__(self, value: Tensor, sample: Spec, step: int | None, level: Level, fresh: bool = False):
        self.value, self.sample, self.step, self.level, self.fresh = value, sample, step, level, fresh
        memory = value._storage
        self.device, self.bin, self.owner = memory.device, FOREIGN, None
        # The bytes that every sample has: the last sample begins (size - 1) * step bytes behind the first one. The checks
        # of bounds of `as_strided` and of copies of whole storages rely on this.
        self.nbytes_ = memory.nbytes_ - max(level.size - 1, 0) * (step or 0)
        self.exposed = True  # so that autograd never takes over the memory of a sample

    def __del__(self):
        pass

    @property
    def ptr(self) -> int:  # type: ignore[override]
        if self.step is None:
            return self.value._storage.ptr
        raise NoBatchingRule(
            "vmap: this operation reads the memory of a sample, for which it has no batching rule"
        )

    @property
    def version(self) -> Any:  # type: ignore[override]
        return self.value._storage.version

    @version.setter
    def version(self, number: Any) -> None:
        self.value._storage.version = number

    def detached(self) -> Storage:
        """The same memory, detached from autograd around the level."""
        if not takes_part(self.value):
            return self
        return BatchedStorage(self.value.detach(), self.sample, self.step, self.level, self.fresh)

    def become_batch(self) -> None:
        """Give each sample its own copy of a fresh constant."""
        size, value = self.level.size, self.value
        if value._autograd is None:
            room = (
                -(-self.nbytes_ // 16) * 16
            )  # so that elements of any dtype lie a whole number of them apart
            old = make(value._storage, 0, _bytes_spec(1, self.nbytes_, 0, self.device))
            with suspended(self.level):
                new = empty(_bytes_spec(size, room, room, self.device))
            part = make(new._storage, 0, _bytes_spec(size, self.nbytes_, room, self.device))
            part.copy_(old)
            self.step = room
            self.value = make(new._storage, value._byte_offset, batch_of[self.sample, room, size])
        elif self.sample.is_contiguous:
            self.value = value.expand(size, *value.shape).clone()
            self.step = self.value.spec.stride[0] * self.sample.dtype.itemsize
        else:
            raise NoBatchingRule("vmap: a recorded constant that is not contiguous is written to")


def _bytes_spec(rows: int, columns: int, step: int, device: Any) -> Spec:
    return make_spec((rows, columns), (step, 1), uint8, device)


class BatchedTensor(Tensor):
    """One sample of a batch, inside of a function that `vmap` maps.

    All that a tensor has is that of the sample. Operations ask `physical` for the batch.
    """

    __slots__ = ()
    __torch_function__ = disabled

    def __repr__(self, **options: Any) -> str:
        storage: Any = self._storage
        kind = "constant" if storage.step is None else "bdim=0"
        value = repr(physical(self, storage.level)).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={number_of(storage.level)}, {kind}, value=\n    {value})"


def number_of(level: Level) -> int:
    """The number of an open level, 0 for a closed one. The outermost `vmap` is 1."""
    stack = open_levels.stack
    return stack.index(level) + 1 if level in stack else 0


BatchedStorage.new_tensor = staticmethod(functools.partial(_new, BatchedTensor))


def wrap(value: Tensor, level: Level) -> Tensor:
    """The samples of a batch; the batch dim is the first one of `value`."""
    sample, step = samples_of[(value.spec,)]
    tensor: Tensor = _new(BatchedTensor)
    tensor._storage = BatchedStorage(value, sample, step, level)
    tensor._byte_offset = value._byte_offset
    tensor.spec = sample
    tensor._autograd = tensor._base = None
    return tensor


def within(tensor: Tensor) -> Tensor:
    """The tensor as an object of the innermost level, because other tensors take part in autograd there than outside."""
    stack = open_levels.stack
    if not stack:
        return tensor
    storage = tensor._storage
    return (
        tensor if type(storage) is BatchedStorage and storage.level is stack[-1] else lift(tensor, stack[-1])
    )


def is_recorded_around(value: Any) -> bool:
    """Whether a value is a sample of a batch that takes part in autograd around the call of `vmap`."""
    return isinstance(value, Tensor) and takes_part_around(value._storage)


def takes_part_around(storage: Storage) -> bool:
    """Whether a tensor on this storage takes part in autograd around its level."""
    return type(storage) is BatchedStorage and takes_part(storage.value)


def lift(value: Tensor, level: Level, fresh: bool = False) -> Tensor:
    """A tensor that is the same for all samples, as an object that can take part in autograd within the level."""
    return make(BatchedStorage(value, value.spec, None, level, fresh), value._byte_offset, value.spec)


def fresh(result: Tensor) -> Tensor:
    """A new result of an op, as one that samples of every open level can be written into. It is the same for all of them so far."""
    storage: Any = result._storage
    inner = open_levels.stack
    if inner and type(storage) is BatchedStorage:
        with suspended(storage.level):
            storage.value = fresh(storage.value)
        inner = inner[number_of(storage.level) :]
    for level in inner:
        result = lift(result, level, fresh=True)
    return result


@PlanCache
def samples_of(batch: Spec) -> tuple[Spec, int]:
    """The metadata of a sample, and how many bytes the samples lie apart."""
    sample = make_spec(batch.shape[1:], batch.stride[1:], batch.dtype, batch.device, batch.conj, batch.neg)
    return sample, batch.stride[0] * batch.dtype.itemsize


@PlanCache
def batch_of(sample: Spec, step: int, size: int) -> Spec:
    """The metadata of a batch whose samples lie `step` bytes apart."""
    stride, remainder = divmod(step, sample.dtype.itemsize)
    if remainder:
        raise NoBatchingRule(f"vmap: samples of {sample.dtype} do not lie a whole number of elements apart")
    return make_spec(
        (size, *sample.shape), (stride, *sample.stride), sample.dtype, sample.device, sample.conj, sample.neg
    )


def batched_at(tensor: Any, level: Level) -> bool:
    """Whether the samples of a level differ in this tensor."""
    storage = tensor._storage
    return type(storage) is BatchedStorage and storage.level is level and storage.step is not None


def physical(tensor: Tensor, level: Level) -> Tensor:
    """The tensor beneath: the batch, with the batch dim first, or the tensor that is the same for all samples."""
    storage = tensor._storage
    if type(storage) is not BatchedStorage or storage.level is not level:
        return tensor
    value = storage.value
    if tensor.spec is storage.sample and tensor._byte_offset == value._byte_offset:
        return value
    spec = tensor.spec if storage.step is None else batch_of[tensor.spec, storage.step, level.size]
    if mode.enabled and takes_part(value):
        return recorded_region(value, spec, tensor._byte_offset - value._byte_offset)
    # A view, because a recorded write into a part must reach the grad_fn of `value`.
    return view_of(value, tensor._byte_offset, spec)


# Set by `batching/views.py`: makes a recorded view of a tensor from metadata and an offset in bytes.
recorded_region: Callable[[Tensor, Spec, int], Tensor]


def set_recorded_region(function: Callable[[Tensor, Spec, int], Tensor]) -> None:
    global recorded_region
    recorded_region = function


def takes_part(value: Tensor) -> bool:
    """Whether a tensor takes part in autograd at any level."""
    while value._autograd is None:
        storage = value._storage
        if type(storage) is not BatchedStorage:
            return False
        value = storage.value
    return True


def beneath(tensor: Tensor) -> Tensor:
    """All samples of all levels: for checks of values, which an error stands for if one sample fails them."""
    while type(tensor._storage) is BatchedStorage:
        tensor = physical(tensor, tensor._storage.level)
    return tensor


def is_sample(tensor: Tensor) -> bool:
    """Whether a tensor has more than one value at each place, because it stands for several samples."""
    storage = tensor._storage
    while type(storage) is BatchedStorage:
        if storage.step is not None:
            return True
        storage = storage.value._storage
    return False


def as_batch(tensor: Tensor, level: Level) -> Tensor:
    """The batch, with the batch dim first; a tensor that is the same for all samples is expanded."""
    value = physical(tensor, level)
    return value if batched_at(tensor, level) else value.expand(level.size, *value.shape)
