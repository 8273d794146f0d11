"""weft.cpu.memory: what the allocator of the processor holds, and who allocated it. The names are those of `torch.cuda.memory`."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from weft.accelerator._memory import memory_block, memory_segment
from weft.accelerator._memory_history import History, history_for
from weft.core.device import CPU
from weft.core.dispatch import PLAIN, unwatch, watch
from weft.core.plans import planned_anew
from weft.core.storage import Storage
from weft.engine import defer, memory
from weft.engine.memory import memory_stats, reset_peak_memory_stats

__all__ = [
    "empty_cache", "max_memory_allocated", "memory_allocated", "memory_reserved", "memory_snapshot", "memory_stats",
    "reset_peak_memory_stats",
]  # fmt: skip


def memory_allocated() -> int:
    """Return the bytes of the blocks that tensors hold. A block has the size of its class, so it may be larger than its tensor.

    >>> import weft as torch
    >>> before = torch.cpu.memory.memory_allocated()
    >>> x = torch.ones(1000, 1000)
    >>> torch.cpu.memory.memory_allocated() - before >= x.nbytes
    True
    """
    return memory_stats()["allocated_bytes.all.current"]


def max_memory_allocated() -> int:
    """Return the most bytes that tensors have held since the last `reset_peak_memory_stats`."""
    return memory_stats()["allocated_bytes.all.peak"]


def memory_reserved() -> int:
    """Return the bytes that the allocator has taken from the system: those of tensors, and free blocks for the next tensors."""
    return memory_stats()["reserved_bytes.all.current"]


def empty_cache() -> None:
    """Give large blocks that no tensor holds back to the system."""
    memory.release_cached(0)


# ---- Who allocates -----------------------------------------------------------------------------------------------------


class _Recording:
    """Has each storage that is made meanwhile return its block to a bin that tells the history."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.blocks: dict[int, int] = {}  # bytes of the blocks in use, by address
        self._stack = ExitStack()

    def start(self) -> None:
        """Let storages of the CPU be made by this recording."""
        backend = CPU.backend
        with ExitStack() as stack:
            stack.enter_context(planned_anew())  # because plans have the functions that allocate
            watch(_pass, plain=True)
            stack.callback(unwatch, _pass)
            for name, function in (
                ("allocator", self._allocator),
                ("allocate", self._allocate),
                ("adopt", self._adopt),
            ):
                vars(backend)[name] = function
                stack.callback(vars(backend).pop, name)
            self._stack = stack.pop_all()

    def stop(self) -> None:
        """Let storages be made as before. Those that are alive still tell when they end."""
        self._stack.close()

    def _allocator(self, nbytes: int) -> Callable[[], Storage]:
        allocate = type(CPU.backend).allocator(CPU.backend, nbytes)
        return lambda: self._noted(allocate())

    def _allocate(self, nbytes: int) -> Storage:
        return self._allocator(nbytes)()

    def _adopt(self, array: Any, nbytes: int) -> Storage:
        return self._noted(type(CPU.backend).adopt(CPU.backend, array, nbytes))

    def _noted(self, storage: Storage) -> Storage:
        if storage.nbytes_:
            self.blocks[storage.ptr] = storage.nbytes_
            self.history.note("alloc", storage.ptr, storage.nbytes_, 0)
            storage.bin = _Bin(self, storage.bin, storage.nbytes_)
        return storage


class _Bin:
    """Where a recorded block goes when its storage ends: to its own bin."""

    __slots__ = ("recording", "bin", "nbytes")

    def __init__(self, recording: _Recording, bin: Any, nbytes: int) -> None:
        self.recording, self.bin, self.nbytes = recording, bin, nbytes

    @property
    def size(self) -> int:
        return self.bin.size

    def append(self, address: int) -> None:
        """Tell the history, and return the block."""
        if self.recording.blocks.pop(address, None) is not None:
            for action in ("free_requested", "free_completed"):
                self.recording.history.note(action, address, self.nbytes, 0)
        self.bin.append(address)


def _pass(op: Any, method: str, args: tuple, static: dict[str, Any]) -> Any:
    """A watcher of ops that lets all calls pass. While it is there, machine code does not allocate by itself."""
    return PLAIN


_recording: _Recording | None = None


def _record_memory_history(
    enabled: str | bool | None = "all",
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int = sys.maxsize,
    device: Any = None,
    clear_history: bool = False,
    **options: Any,
) -> None:
    """Record who allocates memory of the CPU from now on: "state" for the blocks in use, "all" for all events as well, None for nothing.

    As `torch.cuda.memory._record_memory_history` does for a GPU. Each call begins anew. Blocks that are in use before are not known, and neither
    is memory that a kernel needs only while it runs. Large results are deferred: their memory is allocated by the call that needs them. Calls
    take longer meanwhile, because machine code does not make them.

    Args:
        enabled: "all", "state" or None; True and False are "all" and None.
        context: None leaves out the lines of the program.
        stacks: changes nothing, because no frames of C++ are recorded.
        max_entries: how many events are kept, the last ones.

    Raises: ValueError for another word.

    >>> import weft as torch
    >>> torch.cpu.memory._record_memory_history()
    >>> x = torch.ones(3, 4) + 1
    >>> events = torch.cpu.memory._snapshot()["device_traces"][0]
    >>> torch.cpu.memory._record_memory_history(enabled=None)
    >>> [(event["action"], event["size"]) for event in events]
    [('alloc', 48), ('alloc', 48), ('free_requested', 48), ('free_completed', 48)]
    """
    global _recording
    history = history_for(enabled, context, max_entries, lambda stream: 0)
    if _recording is not None:
        _recording.stop()
        _recording = None
    if history is not None:
        defer.keep_all()
        _recording = _Recording(history)
        _recording.start()


def memory_snapshot() -> list[dict[str, Any]]:
    """Return the blocks that were allocated since `_record_memory_history` and are in use, each as a segment in PyTorch's form."""
    if _recording is None:
        return []
    frames = _recording.history.frames
    return [
        memory_segment(
            address, nbytes, [memory_block((address, nbytes, False), frames)], is_small=nbytes <= memory.SMALL
        )
        for address, nbytes in sorted(_recording.blocks.items())
    ]


def _snapshot(device: Any = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """Return the segments of `memory_snapshot`, and all events since `_record_memory_history`."""
    events = None if _recording is None else _recording.history.events
    return {
        "segments": memory_snapshot(),
        "device_traces": [list(events or ())],
        "allocator_settings": {"backend": "native"},
        "external_annotations": [],
    }


def _dump_snapshot(filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False) -> None:
    """Write `_snapshot()` as a pickle, which pytorch.org/memory_viz draws."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)
