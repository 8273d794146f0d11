"""The process of a worker: it answers the tasks of a loader, one after the other."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, NamedTuple

from ....engine.workers import set_num_threads
from . import MP_STATUS_CHECK_INTERVAL, worker
from .errors import ExceptionWrapper
from .pipes import is_datapipe, share_datapipe
from .seeds import seed_worker
from .transport import pack, remove_folder


class Task(NamedTuple):
    """Fetch what `index` says; the answer bears the number."""

    number: int
    index: Any


RESUME = "resume"  # begin a new pass over the dataset
# Answers start with the number of their task. If nothing follows, the worker's items have come to an end.
NUMBER_BYTES = 8


class Job(NamedTuple):
    """What a worker is told when it starts."""

    dataset: Any
    is_iterable: bool
    make_fetcher: Callable[[], Any]  # called for each pass
    init_fn: Callable[[int], Any] | None
    worker_id: int
    num_workers: int
    base_seed: int
    folder: str | None  # for the large parts of the answers


class _Inbox:
    """The messages of the loader, read as they come, so that it never has to wait until it can send one."""

    def __init__(self, connection: Any, folder: str | None):
        self.connection = connection
        self.folder = folder
        self.parent = os.getppid()
        self.messages: SimpleQueue = SimpleQueue()
        self.closed = False
        threading.Thread(target=self._listen, name="weft-inbox", daemon=True).start()

    def _listen(self) -> None:
        try:
            while not self.closed:
                while not self.connection.poll(MP_STATUS_CHECK_INTERVAL):
                    if os.getppid() != self.parent:
                        raise EOFError  # the pipe has not ended, because another process has a copy of its other end
                message = self.connection.recv()
                self.closed = message is None
                self.messages.put(message)
        except (EOFError, OSError):  # the loader's process is dead, or it would have said None
            remove_folder(self.folder)
            os._exit(1)  # nobody is left to want what the main thread does

    def __iter__(self) -> Iterator[Any]:
        """Yield the messages until the loader wants no more, whatever it asked for before."""
        while (message := self.messages.get()) is not None and not self.closed:
            yield message


def work(job: Job, connection: Any) -> None:
    """What a worker does from its start to its end."""
    try:
        _work(job, connection)
    except (KeyboardInterrupt, BrokenPipeError):
        pass  # the loader's process gets the same interrupt, or does not listen any more


def _work(job: Job, connection: Any) -> None:
    # The workers are what runs side by side: more threads would only get into each other's way.
    set_num_threads(1)
    seed = seed_worker(job.base_seed, job.worker_id)
    worker._worker_info = worker.WorkerInfo(job.worker_id, job.num_workers, seed, job.dataset)
    if is_datapipe(job.dataset):
        share_datapipe(job.dataset, job.num_workers, job.worker_id)
    init_fn, fetcher, ended = job.init_fn, None, False
    for message in _Inbox(connection, job.folder):
        if message == RESUME:
            fetcher, ended = None, False
        elif not ended:
            try:
                if init_fn is not None:
                    init_fn(job.worker_id)
                    init_fn = None
                fetcher = fetcher or job.make_fetcher()
                answer = pack(fetcher.fetch(message.index), job.folder)
            except Exception as error:
                ended = job.is_iterable and isinstance(error, StopIteration)
                answer = b"" if ended else _failure(job)
            connection.send_bytes(message.number.to_bytes(NUMBER_BYTES, "little") + answer)


def _failure(job: Job) -> bytes:
    """Return the exception that is being handled, for the loader to raise."""
    wrapper = ExceptionWrapper(where=f"in DataLoader worker process {job.worker_id}")
    try:
        return pack(wrapper, job.folder)
    except Exception:  # a class that cannot be pickled; the traceback in the message names it
        wrapper.exc_type = RuntimeError
        return pack(wrapper, job.folder)
