"""Pipes that change the order of elements."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

from ...sampler import Sampler, SequentialSampler
from .._decorator import functional_datapipe
from .._shuffling import Shuffling
from ..datapipe import IterDataPipe, lengths

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe):
    """The indices that a sampler draws for a pipe with a length."""

    def __init__(
        self,
        datapipe: Any,
        sampler: type[Sampler] = SequentialSampler,
        sampler_args: tuple | None = None,
        sampler_kwargs: dict | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(datapipe, Sized):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        self.datapipe = datapipe
        self.sampler_args, self.sampler_kwargs = sampler_args or (), dict(sampler_kwargs or {})
        self.sampler_kwargs["data_source"] = datapipe
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator:
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)  # type: ignore[arg-type]


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(Shuffling):
    """Elements in random order: one of `buffer_size` that were read makes room for the next."""

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        super().__init__()
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size = buffer_size
        self._buffer: list[Any] = []

    def reset(self) -> None:
        """Begin anew."""
        self._buffer = []
        if self._enabled:
            self._rng.seed(self._take_seed())

    def __iter__(self) -> Iterator:
        if not self._enabled:
            yield from self.datapipe
            return
        buffer = self._buffer
        for each in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(each)
                continue
            place = self._rng.randint(0, len(buffer) - 1)
            found, buffer[place] = buffer[place], each
            yield found
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))

    def __len__(self) -> int:
        return lengths(self, [self.datapipe])[0]
