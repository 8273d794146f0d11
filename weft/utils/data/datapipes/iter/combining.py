"""Pipes of several pipes, and several pipes of one."""

from __future__ import annotations

import copy as copying
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from .....core.warn import user_level
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe, lengths
from ..utils.common import check_unpickable_fn

__all__ = [
    "ConcaterIterDataPipe", "DemultiplexerIterDataPipe", "ForkerIterDataPipe", "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
]  # fmt: skip


def _check(datapipes: tuple, name: str) -> None:
    if not datapipes:
        raise ValueError(f"Expected at least one DataPipe, but got nothing ({name})")
    if not all(isinstance(each, IterDataPipe) for each in datapipes):
        raise TypeError(f"Expected all inputs to be `IterDataPipe` ({name})")


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """The elements of one pipe after those of the other."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        _check(datapipes, "concat")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator:
        for each in self.datapipes:
            yield from each

    def __len__(self) -> int:
        return sum(lengths(self, self.datapipes))


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of one element of each pipe, until one has no more."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        if not all(isinstance(each, IterDataPipe) for each in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        super().__init__()
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[tuple]:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(lengths(self, self.datapipes))


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """One element of each pipe in turn, until one has no more."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes
        self.buffer: list = []

    def __iter__(self) -> Iterator:
        iterators = [iter(each) for each in self.datapipes]
        while iterators:
            row = []
            for each in iterators:
                try:
                    row.append(next(each))
                except StopIteration:
                    return
            yield from row

    def __len__(self) -> int:
        return min(lengths(self, self.datapipes)) * len(self.datapipes)

    def reset(self) -> None:
        """Begin anew."""
        self.buffer = []


class _Shared(IterDataPipe):
    """The pipe behind several: reads its source once, and keeps elements that not all have read yet."""

    def __init__(self, datapipe: Any, count: int, buffer_size: int, name: str):
        if buffer_size < 0:
            warnings.warn(
                f"Unlimited buffer size is set for `{name}`, please be aware of OOM risks",
                UserWarning,
                stacklevel=user_level(),
            )
        self.main_datapipe, self.count, self.buffer_size, self.name = datapipe, count, buffer_size, name
        self.queues: list[deque] = [deque() for _ in range(count)]
        self._source: Iterator | None = None
        self.ended = False

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {**state, "_source": None, "queues": [deque() for _ in range(self.count)], "ended": False}

    def reset(self) -> None:
        """Begin anew, for all."""
        self._source, self.ended = None, False
        for queue in self.queues:
            queue.clear()

    def is_exhausted(self) -> bool:
        """Whether all have read everything."""
        return self.ended and not any(self.queues)

    def put(self, element: Any) -> None:
        """Give an element to those that get it."""
        raise NotImplementedError

    def read(self, instance: int) -> Any:
        """Return the next element of one of them."""
        if self._source is None:
            self._source = iter(self.main_datapipe)
        queue = self.queues[instance]
        while not queue:
            if self.ended:
                raise StopIteration
            try:
                element = next(self._source)
            except StopIteration:
                self.ended = True
                raise
            self.put(element)
            longest = max(
                len(each) for number, each in enumerate(self.queues) if number != instance or self.count == 1
            )
            if 0 <= self.buffer_size < longest:
                raise BufferError(
                    f"{type(self).__name__} buffer overflow, buffer size {self.buffer_size} is insufficient."
                )
        return queue.popleft()

    def __iter__(self) -> Iterator:
        raise NotImplementedError(f"{self.name}: iterate over the pipes that it gives")


class _Child(IterDataPipe):
    """One of the pipes of a `fork` or `demux`.

    An iterator belongs to a generation, which has one of each of these pipes. A second iterator of one of them begins the
    next generation, in which all begin anew.
    """

    def __init__(self, main_datapipe: _Shared, instance_id: int):
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def _begin(self) -> int:
        shared = self.main_datapipe
        if shared._valid_iterator_id is None:
            shared._valid_iterator_id = 0
        elif shared._valid_iterator_id == self._valid_iterator_id:
            if not shared.is_exhausted():
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer and "
                    "each child DataPipe will read from the start again.",
                    UserWarning,
                    stacklevel=user_level(),
                )
            shared._valid_iterator_id += 1
            shared.reset()
        self._number_of_samples_yielded = 0
        self._valid_iterator_id = shared._valid_iterator_id
        return self._valid_iterator_id

    def _is_current(self, number: int) -> bool:
        return number == self._valid_iterator_id == self.main_datapipe._valid_iterator_id

    def __iter__(self) -> Iterator:
        return self._elements()  # no generator function itself, so that a generation begins with iter()

    def _elements(self) -> Iterator:
        while True:
            try:
                element = self.main_datapipe.read(self.instance_id)
            except StopIteration:
                return
            yield element

    def __len__(self) -> int:
        return lengths(self, [self.main_datapipe.main_datapipe])[0]


def _same(element: Any) -> Any:
    return element


class _ForkerIterDataPipe(_Shared):
    def __init__(self, datapipe: Any, count: int, buffer_size: int, copy: str | None):
        super().__init__(datapipe, count, buffer_size, "fork")
        self.copy_fn = {None: _same, "shallow": copying.copy, "deep": copying.deepcopy}[copy]

    def put(self, element: Any) -> None:
        for queue in self.queues:
            queue.append(self.copy_fn(element))


class _DemultiplexerIterDataPipe(_Shared):
    def __init__(self, datapipe: Any, count: int, classifier_fn: Callable, drop_none: bool, buffer_size: int):
        super().__init__(datapipe, count, buffer_size, "demux")
        self.classifier_fn, self.drop_none = classifier_fn, drop_none

    def put(self, element: Any) -> None:
        place = self.classifier_fn(element)
        if place is None and self.drop_none:
            return
        if place is None or not 0 <= place < self.count:
            raise ValueError(
                f"Output of the classification fn should be between 0 and {self.count - 1}. {place} is returned."
            )
        self.queues[place].append(element)


def _children(datapipe: Any, num_instances: int, make: Callable[[], _Shared]) -> list[_Child]:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
    shared = make()
    return [_Child(shared, number) for number in range(num_instances)]


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """`num_instances` pipes with the same elements. They may be up to `buffer_size` elements apart (-1: any number)."""

    def __new__(
        cls, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: str | None = None
    ) -> Any:
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        if num_instances == 1:
            return [datapipe]
        if copy not in (None, "shallow", "deep"):
            raise ValueError(
                f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`."
            )
        return _children(
            datapipe, num_instances, lambda: _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy)
        )

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: str | None = None):
        raise AssertionError("__new__ gives a list of other pipes")


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """`num_instances` pipes; `classifier_fn(element)` says by number which one gets it, None that none does."""

    def __new__(
        cls,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        check_unpickable_fn(classifier_fn)
        return _children(
            datapipe,
            num_instances,
            lambda: _DemultiplexerIterDataPipe(
                datapipe, num_instances, classifier_fn, drop_none, buffer_size
            ),
        )

    def __init__(
        self,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ):
        raise AssertionError("__new__ gives a list of other pipes")
