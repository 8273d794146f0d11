"""The iterator of a DataLoader whose batches are made by worker processes."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import multiprocessing.connection
import os
import signal
import time
import weakref
from typing import Any

from ._utils.errors import ExceptionWrapper
from ._utils.process import NUMBER_BYTES, RESUME, Job, Task, work
from ._utils.transport import new_folder, remove_folder, unpack
from .dataloader import DataLoader, _BaseDataLoaderIter, _DatasetKind

CHECK_INTERVAL = 5.0  # seconds between two looks at whether the workers are alive
PATIENCE = 5.0  # seconds that workers have to finish what they are doing

# This process's ends of all pipes. A forked worker inherits them, and pipes end only when every copy is closed.
_our_ends: weakref.WeakSet = weakref.WeakSet()


def _run(job: Job, connection: Any) -> None:
    for other in list(_our_ends):
        other.close()
    work(job, connection)


class _Worker:
    """A worker, as the loader sees it."""

    def __init__(self, context: Any, job: Job):
        self.connection, other_end = context.Pipe()
        _our_ends.add(self.connection)
        self.process = context.Process(target=_run, args=(job, other_end), daemon=True)
        try:
            self.process.start()
        finally:
            other_end.close()  # so that the pipe ends when the worker does
        self.active = True  # until the items of its IterableDataset come to an end
        self.tasks = 0  # of this pass, not yet answered

    def __getattr__(self, name: str) -> Any:
        """What programs ask of the processes that PyTorch's `_workers` are: `join`, `terminate`, `is_alive`, `pid`."""
        if name == "process":  # it was not started
            raise AttributeError(name)
        return getattr(self.process, name)

    def tell(self, message: Any) -> None:
        try:
            self.connection.send(message)
        except OSError:
            pass  # it is dead: that will show when its answer is waited for

    def dismiss(self) -> None:
        """Tell the worker to end."""
        if not self.connection.closed:
            self.tell(None)
            self.connection.close()

    def obituary(self) -> RuntimeError:
        """How the worker, which is dead, came to its end."""
        self.process.join()
        code = self.process.exitcode
        if code < 0:
            reason = f"is killed by signal: {signal.strsignal(-code)}. "
        else:
            reason = (
                f"exited unexpectedly with exit code {code}. Details are lost due to multiprocessing. "
                "Rerunning with num_workers=0 may give better error trace."
            )
        return RuntimeError(f"DataLoader worker (pid {self.process.pid}) {reason}")


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Hands out tasks ahead of time and gives out the answers, in the order of the tasks unless told otherwise.

    Each worker has a pipe of its own, so that one that dies holds no lock that others wait for.
    """

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        assert loader.prefetch_factor, "prefetch_factor must be positive"
        self._prefetch_factor = loader.prefetch_factor
        self._persistent_workers = loader.persistent_workers
        self._in_order = loader.in_order
        self._workers: list[_Worker] = []
        self._folder = new_folder()
        self._shutdown_workers = weakref.finalize(self, _shut_down, os.getpid(), self._workers, self._folder)
        self._start_workers(loader)
        self._numbers = itertools.count()  # of tasks; they go on from pass to pass
        self._begin_pass(loader)

    def _start_workers(self, loader: DataLoader) -> None:
        make_fetcher = functools.partial(
            _DatasetKind.create_fetcher,
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )
        job = Job(
            dataset=self._dataset,
            is_iterable=self._dataset_kind == _DatasetKind.Iterable,
            make_fetcher=make_fetcher,
            init_fn=loader.worker_init_fn,
            worker_id=0,
            num_workers=self._num_workers,
            base_seed=self._base_seed,
            folder=self._folder,
        )
        context = loader.multiprocessing_context or multiprocessing.get_context()
        for worker_id in range(self._num_workers):
            self._workers.append(_Worker(context, job._replace(worker_id=worker_id)))

    def _reset(self, loader: DataLoader) -> None:
        for worker in self._workers:
            worker.active = True
            worker.tasks = 0
            worker.tell(RESUME)
        self._begin_pass(loader)

    def _begin_pass(self, loader: DataLoader) -> None:
        super()._reset(loader)
        self._waiting: dict[int, _Worker] = {}  # who does the tasks that are not given out yet, oldest first
        self._answers: dict[int, bytes] = {}
        self._turn = 0
        for _ in range(self._prefetch_factor * self._num_workers):
            self._hand_out()

    def _hand_out(self) -> None:
        """Give the next task to the next worker, if there are both."""
        worker = self._next_worker()
        if worker is None:
            return
        try:
            task = Task(next(self._numbers), self._next_index())
        except StopIteration:
            return
        self._waiting[task.number] = worker
        worker.tasks += 1
        worker.tell(task)

    def _next_worker(self) -> _Worker | None:
        for _ in self._workers:
            worker = self._workers[self._turn]
            self._turn = (self._turn + 1) % self._num_workers
            # Out of order a slow worker must not collect tasks that others could do.
            if worker.active and (self._in_order or worker.tasks < self._prefetch_factor):
                return worker
        return None

    def _next_data(self) -> Any:
        while self._waiting:
            number = next(iter(self._waiting if self._in_order else self._answers), None)
            if number in self._answers:
                return self._given_out(number)
            self._receive()
        if not self._persistent_workers:
            self._shutdown_workers()
        raise StopIteration

    def _given_out(self, number: int) -> Any:
        del self._waiting[number]
        self._hand_out()
        data = unpack(self._answers.pop(number), NUMBER_BYTES)
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return data

    def _receive(self) -> None:
        """Wait for answers.

        Raises: RuntimeError if none comes in time, or never will because a worker is dead.
        """
        workers: dict[Any, _Worker] = {
            worker.connection: worker for worker in self._workers if not worker.connection.closed
        }
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        while True:
            patience = CHECK_INTERVAL if deadline is None else max(0.0, deadline - time.monotonic())
            ready: list[Any] = multiprocessing.connection.wait(list(workers), min(patience, CHECK_INTERVAL))
            if ready:
                break
            # The pipe of a dead worker ends, but for processes that it started and that outlive it.
            if dead := [worker for worker in workers.values() if not worker.process.is_alive()]:
                self._give_up(dead)
            if deadline is not None and time.monotonic() >= deadline:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        for connection in ready:
            worker = workers[connection]
            try:
                message = connection.recv_bytes()
            except (EOFError, OSError):
                self._give_up([worker])
            self._take(worker, message)

    def _take(self, worker: _Worker, message: bytes) -> None:
        number = int.from_bytes(message[:NUMBER_BYTES], "little")
        if number not in self._waiting:  # of an earlier pass
            return
        worker.tasks -= 1
        if len(message) > NUMBER_BYTES:
            self._answers[number] = message
            return
        worker.active = False
        if not self._persistent_workers:
            worker.dismiss()
        for other in [other for other, whose in self._waiting.items() if whose is worker]:
            if other not in self._answers:
                del self._waiting[other]
        self._hand_out()

    def _give_up(self, dead: list[_Worker]) -> None:
        pids = ", ".join(str(worker.process.pid) for worker in dead)
        cause = dead[0].obituary()
        self._waiting.clear()
        self._shutdown_workers()
        self._broken = True
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from cause


def _shut_down(owner: int, workers: list[_Worker], folder: str | None) -> None:
    """End the workers and remove what they left. It happens when the iterator dies, at the latest at exit."""
    if os.getpid() != owner:  # a forked copy of the iterator
        return
    for worker in workers:
        worker.dismiss()
    deadline = time.monotonic() + PATIENCE
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))
    for worker in workers:
        if worker.process.is_alive():
            worker.process.terminate()
            worker.process.join(1)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
    remove_folder(folder)
