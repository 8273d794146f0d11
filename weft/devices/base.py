"""The interface of a device: everything that the rest of weft asks of it.

A tensor's memory is addressed by an int. Only the device's own folder turns such an int into bytes, so an address may be a
pointer of this process, a pointer of a GPU, or a number that stands for a block. Adding to an address moves it by so many
bytes within its block, on every device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import device
from ..core.templates import add_atoms

if TYPE_CHECKING:
    from ..core.dtype import DType
    from ..core.generator import Generator
    from ..core.spec import Spec
    from ..core.storage import Storage
    from ..engine.chain import Chain
    from ..engine.kernel import IndexedLaunch, Indexing, Launch, ReduceLaunch
    from ..engine.loops import Result
    from ..engine.monoid import Monoid


class Mark(ABC):
    """A point in the work of a device."""

    @abstractmethod
    def is_done(self) -> bool:
        """Whether the work before it is complete."""

    @abstractmethod
    def wait(self) -> None:
        """Wait until the work before it is complete."""

    @abstractmethod
    def until(self, later: Mark) -> float:
        """The milliseconds from here to another mark of the device.

        Raises: RuntimeError if one of them is not complete.
        """


class Backend(ABC):
    """Allocates memory, moves bytes, prepares kernels and computes with an array library on one device.

    The `prepare` methods are called once for each plan. They return what a call launches, so they may compile.
    Strides are in bytes, outermost dimension first; there is one row of them for each result, then for each input.
    """

    has_memory: bool
    most_deferred = 0  # bytes of the largest elementwise result that may be computed later, in one kernel with what reads it
    # Whether deferred work must not move the content of a tensor to other memory, because recorded work uses the address.
    keeps_addresses = False
    capture: Any = None  # records the work that is given now, see `_gpu/capture.py`
    block_scale = 1  # how large the blocks are in which ops do their work, as a multiple of those that fit a processor's caches
    # By the name of a dtype: the type of ctypes for its numbers, and its `from_address`. Empty where the host has no pointers.
    c_types: Mapping[str, Any] = MappingProxyType({})
    readers: Mapping[str, Callable[[int], Any]] = MappingProxyType({})
    # Arrays are copies on the host, so an op that either arrays or several kernels can compute is computed by kernels. Then `extras` has
    # "ordered_rows", "search_rows", "occurrences" and "shuffle_runs".
    prefers_kernels = False
    faults: Sequence[int]  # faults[0] counts the launches that met an index out of range; it only grows

    # Draws the numbers of this device's tensors unless a call is given another one; None if the CPU's default generator does.
    default_generator: Generator | None = None

    # Kernels that this device has and others need not have, by name. An op that uses one composes other ops without it.
    extras: Mapping[str, Any] = MappingProxyType({})

    # ---- Memory ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def allocate(self, nbytes: int) -> Storage:
        """Allocate a Storage with uninitialised bytes, aligned to 64."""

    @abstractmethod
    def allocator(self, nbytes: int) -> Callable[[], Storage]:
        """A function that allocates `nbytes`, for plans that allocate the same size again and again."""

    def pinned(self, nbytes: int) -> Storage:
        """A new Storage in memory of the host from which this device copies fastest. Only accelerators have it."""
        raise NotImplementedError(f"{type(self).__name__} has no pinned memory")

    @abstractmethod
    def copy_bytes(self, target: int, source: int, nbytes: int) -> None:
        """Copy between two addresses of this device; the ranges may overlap."""

    def copy_from(self, source: Backend, target: int, address: int, nbytes: int) -> bool:
        """Copy from an address of another device to one of this device, without the host. False: this pair of devices cannot do so."""
        return False

    def send(self, target: int, owner: Any, address: int, nbytes: int) -> bool:
        """Copy from pinned memory of the host, which `owner` keeps alive, and do not wait for the copy. False: the device cannot do so now."""
        return False

    @abstractmethod
    def read(self, address: int, nbytes: int) -> bytes:
        """Copy bytes from this device to the host, after all work that writes them."""

    @abstractmethod
    def write(self, address: int, content: Any) -> None:
        """Copy bytes (a buffer) from the host to an address of this device."""

    def write_constant(self, storage: Storage, content: Any) -> None:
        """Fill a new Storage with values that do not depend on tensors, so that they are the same each time when recorded work is repeated."""
        self.write(storage.ptr, content)

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all work given to the device is done."""

    # ---- Streams -----------------------------------------------------------------------------------------------------
    # By their numbers; 0 is the default stream. `core/streams.py` knows which one is the current stream of a thread: it gets the launches and copies
    # of the thread, and `read` and `write` wait for it alone.

    has_events = False  # whether the device has streams, and the methods of this section

    def new_stream(self, priority: int) -> int:
        """The number of a stream with this priority; lower numbers go first."""
        raise NotImplementedError(f"{type(self).__name__} has no streams")

    def stream_handle(self, stream: int) -> int:
        """The driver's stream with a number; 0 for the default stream."""
        raise NotImplementedError(f"{type(self).__name__} has no streams")

    def mark(self, stream: int | None = None) -> Mark:
        """A point after all work given to a stream, or to the current one, so far."""
        raise NotImplementedError(f"{type(self).__name__} has no streams")

    def wait(self, stream: int, mark: Mark) -> None:
        """Let work that a stream is given from now on wait for a mark, of this device or another one. The host does not wait."""
        raise NotImplementedError(f"{type(self).__name__} has no streams")

    def is_idle(self, stream: int) -> bool:
        """Whether all work given to a stream is done."""
        raise NotImplementedError(f"{type(self).__name__} has no streams")

    def finish(self, stream: int) -> None:
        """Wait until all work given to a stream is done."""
        raise NotImplementedError(f"{type(self).__name__} has no streams")

    def give_deferred(self) -> None:
        """Give the current stream the work that was deferred, before this thread turns to another one."""
        raise NotImplementedError(f"{type(self).__name__} has no streams")

    def turn(self) -> None:
        """Called when the current stream of this thread is another one."""
        raise NotImplementedError(f"{type(self).__name__} has no streams")

    def record_use(self, storage: Storage, stream: int) -> None:
        """Give the memory of a storage to others only after the work that a stream has been given when the storage is deleted."""
        raise NotImplementedError(f"{type(self).__name__} has no streams")

    # ---- Kernels -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def prepare(
        self,
        results: Sequence[Result],
        operand_dtypes: Sequence[DType],
        params: Sequence[DType],
        sizes: Sequence[int],
        strides: Sequence[Sequence[int]],
    ) -> Launch:
        """A map over `sizes`, to be called with addresses and scalars."""

    @abstractmethod
    def prepare_reduction(
        self,
        monoid: Monoid,
        operand_dtypes: Sequence[DType],
        params: Sequence[DType],
        kept: tuple[Sequence[int], Sequence[Sequence[int]]],
        reduced: tuple[Sequence[int], Sequence[Sequence[int]]],
        outer: bool,
    ) -> ReduceLaunch:
        """A reduction, to be called with addresses and scalars.

        `kept` and `reduced` are (sizes, strides); `reduced` has rows for the inputs only. `outer`: the fastest dimension
        of the input is a kept one.
        """

    @abstractmethod
    def prepare_scan(
        self,
        monoid: Monoid,
        operand_dtypes: Sequence[DType],
        sizes: Sequence[int],
        strides: Sequence[Sequence[int]],
    ) -> Launch:
        """A scan along the last of `sizes`: after each element, `monoid.finish` of the state so far is stored."""

    @abstractmethod
    def prepare_indexed(
        self,
        results: Sequence[Result],
        operand_dtypes: Sequence[DType],
        sizes: Sequence[int],
        strides: Sequence[Sequence[int]],
        indexing: Indexing,
    ) -> IndexedLaunch:
        """A map whose operands are displaced by indices: gather and scatter. Without results it only checks the indices.

        For an index out of range the launch uses index 0 and counts a fault: nothing outside an operand is touched.
        """

    @abstractmethod
    def prepare_pack(
        self, nbytes: int, itemsize: int, spread: bool, sizes: Sequence[int], strides: Sequence[Sequence[int]]
    ) -> Callable[[int, int, int, int], int]:
        """Copy what a mask selects, in order, to consecutive places, or from there if `spread`: elements, or rows of `nbytes`.

        The function takes (target, source, mask, room) and returns how many elements the mask selects. If there are more
        than `room`, those beyond are not copied, but the packed operand must have room for one more.
        """

    @abstractmethod
    def product_operands(self, a: Spec, b: Spec) -> tuple[Spec, Spec]:
        """The specs that operands of a matrix product must be copied to, with the same dtype; their own if they need not."""

    @abstractmethod
    def prepare_product(self, a: Spec, b: Spec, result: Spec) -> Launch:
        """The matrix product of operands as `product_operands` wants them: call `entry(result, a, b, meta, count)`.

        The dtype of the result is theirs, or the one that they are computed in.
        """

    def chain(self) -> Chain | None:
        """A new chain of launches that run as one; None if the device runs each launch by itself."""
        return None

    @abstractmethod
    def fill(
        self,
        distribution: str,
        generator: Generator,
        address: int,
        count: int,
        dtype: DType,
        **parameters: Any,
    ) -> None:
        """Fill `count` consecutive elements with random numbers.

        `distribution` is the name of a function of `engine.distributions`, which defines the numbers for the CPU.
        """

    # ---- Arrays ------------------------------------------------------------------------------------------------------
    # Ops that have no kernel are computed by functions of NumPy and SciPy on arrays of the device.

    @property
    @abstractmethod
    def xp(self) -> Any:
        """Return the array namespace: NumPy, or a module with its interface whose arrays obey NumPy's dispatch protocol.

        Raises: NotImplementedError without memory.
        """

    @abstractmethod
    def inside(self) -> AbstractContextManager:
        """The context in which functions may compute on arrays of this device."""

    @abstractmethod
    def as_array(
        self,
        storage: Storage,
        shape: Sequence[int],
        dtype: np.dtype,
        start: int,
        strides: Sequence[int] | None,
    ) -> Any:
        """An array of `xp` on the memory of a storage, which it keeps alive; `start` and `strides` are in bytes.

        There is at least one element, and the caller ensures that all of them are in the storage.

        Raises: RuntimeError outside of `inside()`, if the host cannot reach this memory.
        """

    @abstractmethod
    def adopt(self, array: Any, nbytes: int) -> Storage:
        """A Storage with the memory of an array of `xp` that nobody else uses. `nbytes` count from its first element."""


# The annotations of `device` name this class. `typing.get_type_hints` looks names up in the module's namespace.
vars(device)["Backend"] = Backend
add_atoms(Backend)
