"""Sending tensors to other processes: weft moves them to shared memory and sends the file descriptor.

This applies to everything that pickles with multiprocessing: queues, pipes, pools, arguments of spawned processes, and
`concurrent.futures`. If a storage arrives twice, the receiver creates one Storage.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from types import ModuleType
from typing import Any
from weakref import WeakValueDictionary

from ..core.device import CPU
from ..core.shared import SharedMemory
from ..core.storage import Storage, foreign
from ..core.tensor import Tensor
from ..core.when_imported import when_imported

# How long an exiting process waits for others to receive its descriptors, which are closed when it ends.
PATIENCE = 5.0  # seconds

# (device, inode) of the file -> Storage
_known: WeakValueDictionary[tuple[int, int], Storage] = WeakValueDictionary()


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def reduce_storage(storage: Storage) -> tuple:
    """The reduce function of multiprocessing for a Storage: move it to shared memory and send the descriptor.

    Raises: NotImplementedError for memory of a device.
    """
    if not storage.nbytes_ or not storage.device.backend.has_memory:
        return storage.__reduce__()
    if storage.device is not CPU:
        raise NotImplementedError(
            f"a tensor on {storage.device} cannot be sent to another process: weft shares no memory of devices. Send x.cpu()"
        )
    from multiprocessing.reduction import DupFd

    storage.share_memory_()
    fd = storage.owner.fd
    _known[_identity(fd)] = storage
    return _received, (DupFd(fd), storage.nbytes_)


def _received(sent: Any, nbytes: int) -> Storage:
    fd = sent.detach()
    identity = _identity(fd)
    storage = _known.get(identity)
    if storage is not None:
        os.close(fd)
        return storage
    memory = SharedMemory(nbytes, fd)
    storage = _known[identity] = foreign(memory.address, nbytes, memory)
    return storage


def reduce_tensor(tensor: Tensor) -> Any:
    """The reduce function of multiprocessing for a tensor, whose storage is shared.

    Raises: RuntimeError for tensors with a grad_fn, because a graph cannot be sent.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    return tensor.__reduce_ex__(4)


def _join_multiprocessing(reduction: ModuleType) -> None:
    from multiprocessing import util

    for kind in (Storage, *Storage.states):  # picklers look for the very class of an object
        reduction.ForkingPickler.register(kind, reduce_storage)
    reduction.ForkingPickler.register(Tensor, reduce_tensor)
    _wait_at_exit()
    util.register_after_fork(_wait_at_exit, lambda _: _wait_at_exit())


def _wait_at_exit() -> None:
    from multiprocessing import util

    # After queues have stopped their threads (priority 10), before the socket for descriptors is closed (0).
    util.Finalize(None, _wait_until_taken, exitpriority=5)


def _wait_until_taken() -> None:
    from multiprocessing import parent_process
    from multiprocessing.resource_sharer import _resource_sharer  # type: ignore[attr-defined]

    _outlive_children(_resource_sharer)
    if parent_process() is None:  # only child processes receive its tensors
        return
    deadline = time.monotonic() + PATIENCE
    while _resource_sharer._cache or _queues_are_sending():
        if time.monotonic() >= deadline:
            return
        time.sleep(0.005)
    _resource_sharer.stop(PATIENCE)  # a request for the last descriptor may still be in progress


def _outlive_children(sharer: Any) -> None:
    """Keep the socket for descriptors open until Python has joined the children of this process, which may still need it.

    Joining the children here, before Python stops its managers, could deadlock.
    """
    from multiprocessing import util

    unlink = sharer._listener and sharer._listener._listener._unlink
    if unlink is not None:
        unlink.cancel()
        util.Finalize(None, _unlink, (sharer._address,), exitpriority=-1)


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _queues_are_sending() -> bool:
    return any(thread.name == "QueueFeederThread" for thread in threading.enumerate())


when_imported("multiprocessing.reduction", _join_multiprocessing)
