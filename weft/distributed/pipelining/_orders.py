"""The orders in which ranks compute microbatches. An order is a list of actions, and each schedule has one for each rank.

All of them are a list of forward passes and one of backward passes, and say how many forward passes go ahead; after these, passes alternate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple


class Action(NamedTuple):
    """A pass of one microbatch through one stage.

    >>> Action(0, "F", 3)
    0F3
    """

    stage_index: int
    computation_type: str  # F: forward, B: backward
    microbatch_index: int

    def __repr__(self) -> str:
        return f"{self.stage_index}{self.computation_type}{self.microbatch_index}"


Order = Callable[
    [int, int, Sequence[int], int], list[Action]
]  # of a rank, the number of ranks, its stages, microbatches


def _rounds(stages: Sequence[int], kind: str, microbatches: int, of_round: int) -> Iterator[Action]:
    """All microbatches through all stages, so many at a time."""
    for first in range(0, microbatches, of_round):
        for stage in stages:
            yield from (Action(stage, kind, first + k) for k in range(min(of_round, microbatches - first)))


def _alternating(forwards: Sequence[Action], backwards: Sequence[Action], ahead: int) -> list[Action]:
    ahead = min(ahead, len(forwards))
    pairs = zip(forwards[ahead:], backwards, strict=False)
    rest = backwards[len(forwards) - ahead :]
    return [*forwards[:ahead], *[each for pair in pairs for each in pair], *rest]


def all_forward(rank: int, ranks: int, stages: Sequence[int], microbatches: int) -> list[Action]:
    """Forward passes only.

    >>> all_forward(0, 2, [0, 2], 2)
    [0F0, 0F1, 2F0, 2F1]
    """
    return [*_rounds(stages, "F", microbatches, microbatches)]


def gpipe(rank: int, ranks: int, stages: Sequence[int], microbatches: int) -> list[Action]:
    """All forward passes, then all backward passes (Huang et al., GPipe, 2019, arXiv:1811.06965).

    >>> gpipe(1, 2, [1], 2)
    [1F0, 1F1, 1B0, 1B1]
    """
    forwards = all_forward(rank, ranks, stages, microbatches)
    return [*forwards, *_rounds(stages, "B", microbatches, microbatches)]


def one_forward_one_backward(rank: int, ranks: int, stages: Sequence[int], microbatches: int) -> list[Action]:
    """As many forward passes as stages are behind, then a backward pass after each (Narayanan et al., PipeDream, 2019, arXiv:1806.03377).

    >>> one_forward_one_backward(0, 2, [0], 3)
    [0F0, 0F1, 0B0, 0F2, 0B1, 0B2]
    """
    forwards = [*_rounds(stages, "F", microbatches, microbatches)]
    backwards = [*_rounds(stages, "B", microbatches, microbatches)]
    return _alternating(forwards, backwards, ranks - 1 - rank)


def breadth_first(rank: int, ranks: int, stages: Sequence[int], microbatches: int) -> list[Action]:
    """Each stage computes all microbatches before the next one begins (Lamy-Poirier, 2022, arXiv:2211.05953).

    >>> breadth_first(0, 2, [0, 2], 2)
    [0F0, 0F1, 2F0, 2F1, 2B1, 2B0, 0B1, 0B0]
    """
    forwards = all_forward(rank, ranks, stages, microbatches)
    return [*forwards, *[Action(stage, "B", k) for stage, _, k in reversed(forwards)]]


def interleaved(rank: int, ranks: int, stages: Sequence[int], microbatches: int) -> list[Action]:
    """One forward and one backward pass in turn, of several stages on each rank (Narayanan et al., 2021, arXiv:2104.04473).

    Raises: ValueError if rounds of as many microbatches as there are ranks do not fill up.

    >>> interleaved(1, 2, [1, 3], 2)
    [1F0, 1F1, 3F0, 3B0, 3F1, 3B1, 1B0, 1B1]
    """
    rounds = max(1, microbatches // ranks)
    if microbatches % rounds:
        raise ValueError(
            f"Interleaved 1F1B requires the number of microbatches to be a multiple of the number of rounds ({rounds}), but "
            f"got {microbatches}."
        )
    of_round = microbatches // rounds
    forwards = [*_rounds(stages, "F", microbatches, of_round)]
    backwards = [*_rounds(stages[::-1], "B", microbatches, of_round)]
    return _alternating(forwards, backwards, (len(stages) - 1) * of_round + 2 * (ranks - 1 - rank))
