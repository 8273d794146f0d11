"""`observed_launches`: every kernel that devices launch within a context, with its work."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..core.device import started_backends
from ..core.plans import planned_anew
from ..engine import fusion, work
from ..engine.work import Work
from .base import Backend

# Told of each launch: the kind of the kernel, its work, and the addresses that it writes.
Tell = Callable[[str, Work, Sequence[int]], None]


class LaunchObserver:
    """Puts functions in front of the `prepare` methods of devices, so that each launch of what they prepare is told.

    `start()` also reaches devices that started since. Launches of other threads are not told.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._thread = threading.get_ident()
        self._backends: list[Backend] = []
        self.is_on = True

    def start(self) -> None:
        """Observe the devices that are in use and not observed yet."""
        for backend in started_backends():
            if not any(backend is each for each in self._backends):
                self._backends.append(backend)
                self._observe(backend)

    def stop(self) -> None:
        """Leave the devices as they were. Launches that were prepared meanwhile may live on; they tell nothing any more."""
        self.is_on = False
        for backend in self._backends:
            for name in _METHODS:
                vars(backend).pop(name)

    def _observe(self, backend: Backend) -> None:
        """Give the backend attributes that hide its methods."""
        for name in _METHODS:
            hidden = getattr(backend, name)
            vars(backend)[name] = functools.partial(getattr(self, f"_{name}"), hidden)

    def _told(self, launch: Any, kind: str, done: Work, outputs: int) -> Any:
        """The launch with an entry that tells of it."""
        entry = launch.entry
        if entry is None:
            return launch

        def told(*arguments: Any) -> Any:
            answer = entry(*arguments)
            self._note(kind, done, arguments[:outputs])
            return answer

        return launch._replace(entry=told)

    def _note(self, kind: str, done: Work, written: Sequence[int]) -> None:
        if self.is_on and threading.get_ident() == self._thread:
            self._tell(kind, done, written)

    def _prepare(
        self, prepare: Callable, results: Any, dtypes: Any, params: Any, sizes: Any, strides: Any
    ) -> Any:
        done = work.of_map(results, dtypes, sizes, strides)
        return self._told(prepare(results, dtypes, params, sizes, strides), "elementwise", done, len(results))

    def _prepare_reduction(
        self, prepare: Callable, monoid: Any, dtypes: Any, params: Any, kept: Any, reduced: Any, outer: bool
    ) -> Any:
        done = work.of_reduction(monoid, dtypes, kept, reduced)
        launch = prepare(monoid, dtypes, params, kept, reduced, outer)
        return self._told(launch, "reduction", done, len(monoid.finish))

    def _prepare_scan(self, prepare: Callable, monoid: Any, dtypes: Any, sizes: Any, strides: Any) -> Any:
        done = work.of_scan(monoid, dtypes, sizes, strides)
        return self._told(prepare(monoid, dtypes, sizes, strides), "scan", done, len(monoid.finish))

    def _prepare_indexed(
        self, prepare: Callable, results: Any, dtypes: Any, sizes: Any, strides: Any, indexing: Any
    ) -> Any:
        done = work.of_indexed(results, dtypes, sizes, strides, indexing)
        return self._told(prepare(results, dtypes, sizes, strides, indexing), "indexed", done, len(results))

    def _prepare_product(self, prepare: Callable, a: Any, b: Any, result: Any) -> Any:
        return self._told(prepare(a, b, result), "product", work.of_product(a, b, result), 1)

    def _prepare_pack(
        self, prepare: Callable, nbytes: int, itemsize: int, spread: bool, sizes: Any, strides: Any
    ) -> Any:
        launch = prepare(nbytes, itemsize, spread, sizes, strides)
        mask = work.touched(sizes, strides[-1], 1)

        def told(target: int, source: int, address: int, room: int) -> int:
            count: int = launch(target, source, address, room)
            moved = min(count, room) * nbytes
            self._note("masked copy", Work(0, mask + moved, moved), (target,))
            return count

        return told

    def _fill(
        self,
        fill: Callable,
        distribution: str,
        generator: Any,
        address: int,
        count: int,
        dtype: Any,
        **parameters: Any,
    ) -> None:
        fill(distribution, generator, address, count, dtype, **parameters)
        self._note("random numbers", Work(0, 0, count * dtype.itemsize), (address,))

    def _copy_bytes(self, copy: Callable, target: int, source: int, nbytes: int) -> None:
        copy(target, source, nbytes)
        self._note("copy", Work(0, nbytes, nbytes), (target,))

    def _write(self, write: Callable, address: int, content: Any) -> None:
        write(address, content)
        nbytes = memoryview(content).nbytes
        self._note("copy", Work(0, nbytes, nbytes), (address,))

    def _chain(self, chain: Callable) -> None:
        """No chains: the same kernels run one after the other, so that each of them is told."""


_METHODS = (
    "prepare", "prepare_reduction", "prepare_scan", "prepare_indexed", "prepare_product", "prepare_pack", "fill", "copy_bytes",
    "write", "chain",
)  # fmt: skip


@contextlib.contextmanager
def observed_launches(tell: Tell) -> Iterator[LaunchObserver]:
    """Tell of each kernel that this thread launches within the context.

    Operations are planned anew, and a chain of deferred operations has its fused kernel at once, so that the kernels are those of a
    process that has run the program a few times.
    """
    observer = LaunchObserver(tell)
    in_background, fusion.in_background = fusion.in_background, False
    try:
        with planned_anew():
            observer.start()
            try:
                yield observer
            finally:
                observer.stop()
    finally:
        fusion.in_background = in_background
