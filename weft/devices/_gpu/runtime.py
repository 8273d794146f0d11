"""What a GPU's driver does for weft: memory by raw address, copies, and launches of kernels on queues, each of which does its work in order."""

from __future__ import annotations

import ctypes
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from ...core.qscheme import AcceleratorError
from ...core.templates import add_atoms
from ...core.warn import user_level
from ...engine.kernel import Launch
from ..base import Mark
from .target import Target


class LazyKernel:
    """A kernel of a device. It is compiled when it runs for the first time: of launches that run as a chain, only the kernel of the chain is."""

    __slots__ = ("_make", "word", "compile")

    def __init__(self, make: Callable[[], int]):
        self._make = make
        self.word = ctypes.c_int64()  # the driver's kernel, 0 as long as there is none
        self.compile = self._compile  # machine code calls this object

    def _compile(self) -> None:
        if not self.word.value:
            self.word.value = self._make()

    def kernel(self) -> int:
        """Return the driver's kernel."""
        self._compile()
        return self.word.value


class Runtime(ABC):
    """One device of a driver. Launches and copies are work of the queue of the current stream of the thread, see `queue`.

    A queue does its work in the order in which it is given. `read` and `write` wait for their queue, and `synchronize` for all of them. Queues are named
    by the driver's handles; 0 is the default queue.
    """

    target: Target
    name: str
    capability: tuple[int, int]  # NVIDIA's number for what the device can do, or AMD's; (0, 0) for others
    architecture: str = ""  # of a GPU of AMD, with features that are on or off: "gfx90a:sramecc+:xnack-"
    multiprocessors: int
    threads_per_multiprocessor: int  # that can be resident at once
    warp_size: int  # threads that run in step
    cache_size: int  # bytes of the cache before the memory
    total_memory: int  # bytes
    blas: Any = None  # a library of matrix products, see `cublas.py`
    # How kernels of `fragments.py` multiply: by "tensor cores", or through "memory" of the group, which is for tests. None: there are no such kernels.
    small_products: str | None = None
    before_work: Callable[[], None] | None = None  # see `call_before_work`
    is_recording = False
    sync_debug_mode = 0  # of all devices: 1 warns of transfers that wait, 2 refuses them

    def __init__(self) -> None:
        self._loaded: dict[tuple, LazyKernel] = {}
        self.queue: Callable[[], int] = lambda: 0  # returns the queue of the current stream of this thread

    def load(self, write: Callable[[Target, Any], str], kernel: Any) -> LazyKernel:
        """What `launch` takes for the kernel whose IR `write(target, kernel)` is. It is written and compiled once, for all sizes."""
        key = write, kernel
        found = self._loaded.get(key)
        if found is None:
            found = self._loaded[key] = LazyKernel(lambda: self._compiled(write(self.target, kernel)))
        return found

    @abstractmethod
    def _compiled(self, ir: str) -> int:
        """Return the kernel of a module."""

    def call_before_work(self, function: Callable[[], None] | None) -> None:
        """Have each launch call a function first, until this is called with None."""
        self.before_work = function

    def profile(self, on: bool) -> None:  # noqa: B027 (not every driver has a profiler)
        """Let the driver's profiler begin or end. Without one nothing happens."""

    # ---- Recording, see `capture.py`

    @abstractmethod
    def begin_recording(self) -> None:
        """From now on, note launches and copies within the device instead of doing them."""

    @abstractmethod
    def end_recording(self) -> Callable[[], object]:
        """Return a function that does what was noted. It may be called again and again."""

    def before_transfer(self) -> None:
        """Called before bytes go from or to the host, which waits for the device.

        Raises: AcceleratorError while work is recorded, RuntimeError if `torch.cuda.set_sync_debug_mode` says so.
        """
        self.refuse_recording()
        if self.sync_debug_mode == 1:
            warnings.warn("called a synchronizing CUDA operation", UserWarning, stacklevel=user_level())
        elif self.sync_debug_mode == 2:
            raise RuntimeError("called a synchronizing CUDA operation")

    def refuse_recording(self) -> None:
        """Called before the host waits for the device.

        Raises: AcceleratorError while work is recorded, because it is not done.
        """
        if self.is_recording:
            raise AcceleratorError(
                "CUDA error: operation not permitted when stream is capturing: the host cannot wait for values or give "
                "others while work is captured. Move .item(), .cpu(), transfers from the host and operations that "
                "are computed on the host out of the capture."
            )

    @abstractmethod
    def allocate(self, nbytes: int) -> int:
        """Return the address of new memory, aligned to 256 bytes.

        Raises: MemoryError if there is not so much.
        """

    @abstractmethod
    def release(self, address: int) -> None:
        """Free memory that no work uses any more."""

    @abstractmethod
    def allocate_host(self, nbytes: int) -> int:
        """The address of new memory of the host that the driver copies from without a detour, and that kernels can use at the same address.

        Raises: MemoryError if there is not so much.
        """

    @abstractmethod
    def release_host(self, address: int) -> None:
        """Free what `allocate_host` returned."""

    def host_word(self) -> ctypes.c_int64:
        """A new word of the host, of value 0, which is never freed."""
        word = ctypes.c_int64.from_address(self.allocate_host(8))
        word.value = 0
        return word

    @abstractmethod
    def read(self, address: int, nbytes: int) -> bytes:
        """Copy bytes to the host, after all work of the queue."""

    @abstractmethod
    def write(self, address: int, content: Any) -> None:
        """Copy the bytes of a buffer from the host, after all work of the queue. The copy is complete when the call returns."""

    @abstractmethod
    def send(self, target: int, source: int, nbytes: int) -> None:
        """Copy from pinned memory of the host, which does not change until the copy is done. The host does not wait for it."""

    @abstractmethod
    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy within the device; the ranges do not overlap."""

    def can_access(self, other: Runtime) -> bool:
        """Whether this device reads the memory of another one without the host."""
        return False

    def copy_from(self, other: Runtime, target: int, source: int, nbytes: int) -> bool:
        """Copy from an address of another device to one of this device, in the order of the work of both. False: the driver has no such copies."""
        if other is not self:
            return False
        self.copy(target, source, nbytes)
        return True

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until the work of all queues is done.

        Raises: RuntimeError if a kernel failed.
        """

    # ---- Queues

    @abstractmethod
    def new_queue(self, priority: int) -> int:
        """A new queue, which lasts as long as the process."""

    def priorities(self) -> tuple[int, int]:
        """The least and the greatest priority of queues. Lower numbers are greater priorities."""
        return 0, 0

    def turn(self) -> None:  # noqa: B027 (drivers whose launches ask `queue` each time have nothing to do)
        """Called when `queue` returns another queue for this thread than before."""

    @abstractmethod
    def mark(self, queue: int) -> Mark:
        """A point after all work that a queue was given before."""

    @abstractmethod
    def wait(self, queue: int, mark: Mark) -> None:
        """Let work that a queue is given from now on wait for a mark."""

    @abstractmethod
    def is_idle(self, queue: int) -> bool:
        """Whether the work of a queue is done."""

    @abstractmethod
    def finish(self, queue: int) -> None:
        """Wait until the work of a queue is done.

        Raises: RuntimeError if a kernel failed.
        """

    @abstractmethod
    def free_memory(self) -> int:
        """Bytes that can be allocated."""

    @abstractmethod
    def launch(self, code: LazyKernel, groups: int, letters: str, words: Sequence[int]) -> Launch:
        """A launch of so many groups. Its entry is called with arguments of these kinds, then `meta` and `count`.

        The kernel gets the arguments and then `words`. Letters are p for an address, else those of `param_letters`.
        """

    @abstractmethod
    def chain(
        self,
        code: LazyKernel,
        groups: int,
        letters: Sequence[str],
        words: Sequence[Sequence[int]],
        last: Sequence[int],
    ) -> Launch:
        """A launch whose entry is called with the arguments of several stages, and nothing else.

        The kernel gets the arguments of each stage, of these kinds, followed by the words of the stage, and at the end `last`.
        """


# The launches of plans hold them.
add_atoms(Runtime)
add_atoms(LazyKernel)
