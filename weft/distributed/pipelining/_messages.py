"""What stages send each other: the results of microbatches forward, their gradients backward.

Results are announced by a header with their dtypes and sizes, so a batch may have any size. Gradients need none: they are as large as
the results. A stage of the same rank gets its values without a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.dtype import DTYPES, int64
from ...core.tensor import Tensor
from ...ops.creation.creation import empty, empty_like, zeros_like
from ...ops.creation.from_data import tensor
from .._group import ProcessGroup, Work
from .._point_to_point import irecv, isend

_DTYPES = list(DTYPES.values())
_HEADER = 32  # words of the first message, of which one is the number of words in all
_FORWARD, _BACKWARD = 0, 1


class Messages:
    """The messages of the stages of one rank. `rank_of` is the rank in the group of each stage."""

    def __init__(self, group: ProcessGroup, rank_of: Sequence[int]):
        self._group, self._rank_of = group, rank_of
        self._here: dict[int, tuple[Tensor, ...]] = {}  # for stages of this rank, by tag
        self._sent: list[tuple[Work | None, Tensor]] = []  # a tensor must live until it is sent

    def _tag(self, chunk: int, stage: int, kind: int) -> int:
        return (chunk * len(self._rank_of) + stage) * 2 + kind

    def _is_here(self, stage: int) -> bool:
        return self._rank_of[stage] == self._group.rank()

    def send_results(self, stage: int, chunk: int, values: Sequence[Tensor]) -> None:
        """Send the results of a microbatch to `stage`."""
        tag = self._tag(chunk, stage, _FORWARD)
        if self._is_here(stage):
            self._here[tag] = tuple(values)
            return
        words = [*_described(values)]
        words.insert(0, len(words) + 1)
        for part in (words[:_HEADER] + [0] * (_HEADER - len(words)), words[_HEADER:]):
            if part:
                self._send(tensor(part, dtype=int64), stage, tag)
        for value in values:
            self._send(value.detach(), stage, tag)

    def receive_results(self, source: int, stage: int, chunk: int) -> tuple[Tensor, ...]:
        """What stage `source` has sent to `stage`: leaves, which require gradients where they did there."""
        tag = self._tag(chunk, stage, _FORWARD)
        if self._is_here(source):
            values = self._here.pop(tag)
            return tuple([each.detach().requires_grad_(each.requires_grad) for each in values])
        words = self._receive(empty(_HEADER, dtype=int64), source, tag).tolist()
        if words[0] > _HEADER:
            words += self._receive(empty(words[0] - _HEADER, dtype=int64), source, tag).tolist()
        found = [*_announced(words[1 : words[0]])]
        for value, requires_grad in found:
            self._receive(value, source, tag).requires_grad_(requires_grad)
        return tuple([value for value, _ in found])

    def send_gradients(self, stage: int, chunk: int, inputs: Sequence[Tensor]) -> None:
        """Send the gradients of what `stage` has sent before; zeros for inputs that were not used."""
        tag = self._tag(chunk, stage, _BACKWARD)
        wanted = [each for each in inputs if each.requires_grad]
        values = tuple([zeros_like(each) if each.grad is None else each.grad for each in wanted])
        if self._is_here(stage):
            self._here[tag] = values
            return
        for value in values:
            self._send(value, stage, tag)

    def receive_gradients(
        self, source: int, stage: int, chunk: int, results: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        """The gradients of those results of `stage` that require one, from stage `source`."""
        tag = self._tag(chunk, stage, _BACKWARD)
        if self._is_here(source):
            return self._here.pop(tag)
        return tuple([self._receive(empty_like(each), source, tag) for each in results if each.requires_grad])

    def _send(self, value: Tensor, stage: int, tag: int) -> None:
        value = value.contiguous()
        work = isend(value, group=self._group, tag=tag, group_dst=self._rank_of[stage])
        self._sent.append((work, value))

    def _receive(self, value: Tensor, stage: int, tag: int) -> Tensor:
        work = irecv(value, group=self._group, tag=tag, group_src=self._rank_of[stage])
        assert work is not None
        work.wait()
        return value

    def finish(self) -> None:
        """Wait until all is sent."""
        for work, _ in self._sent:
            assert work is not None
            work.wait()
        self._sent.clear()


def _described(values: Sequence[Tensor]) -> Iterator[int]:
    """For each tensor the number of its dtype, whether it requires a gradient, and its sizes."""
    for value in values:
        yield from (_DTYPES.index(value.dtype), int(value.requires_grad), value.ndim, *value.shape)


def _announced(words: Sequence[int]) -> Iterator[tuple[Tensor, bool]]:
    """Empty tensors for what `_described` has described."""
    place = 0
    while place < len(words):
        dtype, requires_grad, ndim = words[place : place + 3]
        place += 3 + ndim
        yield empty(words[place - ndim : place], dtype=_DTYPES[dtype]), bool(requires_grad)
