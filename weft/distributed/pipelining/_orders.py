"""The orders in which ranks compute microbatches. An order is a list of actions, and each schedule has one for each rank.

Most of them are a list of forward passes and one of backward passes, and say how many forward passes go ahead; after these, passes alternate.
Orders with divided backward passes come from a simulation of all ranks, in which a rank that would wait computes gradients of weights.
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
    computation_type: (
        str  # F: forward, B: backward, which I and W are parts of: the gradients of inputs, those of weights
    )
    microbatch_index: int

    def __repr__(self) -> str:
        return f"{self.stage_index}{self.computation_type}{self.microbatch_index}"


# Of a rank, the number of ranks, its stages, microbatches.
Order = Callable[[int, int, Sequence[int], int], list[Action]]


def in_a_loop(rank: int, ranks: int, stages: int) -> list[int]:
    """The stages of a rank, if the stage behind that of the last rank is on the first one.

    >>> [in_a_loop(rank, 2, 4) for rank in range(2)]
    [[0, 2], [1, 3]]
    """
    return [*range(rank, stages, ranks)]


def in_a_v(rank: int, ranks: int, stages: int) -> list[int]:
    """The stages of a rank, if the stages go from the first rank to the last, and back.

    >>> [in_a_v(rank, 2, 4) for rank in range(2)]
    [[0, 3], [1, 2]]
    """
    return [stage for stage in range(stages) if min(stage % (2 * ranks), -(stage + 1) % (2 * ranks)) == rank]


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


def check_rounds(schedule: str, ranks: int, microbatches: int) -> int:
    """The number of rounds, of as many microbatches as there are ranks.

    Raises: ValueError if they do not fill up.
    """
    rounds = max(1, microbatches // ranks)
    if microbatches % rounds:
        raise ValueError(
            f"{schedule} requires the number of microbatches to be a multiple of the number of rounds ({rounds}), but got "
            f"{microbatches}."
        )
    return rounds


def interleaved(rank: int, ranks: int, stages: Sequence[int], microbatches: int) -> list[Action]:
    """One forward and one backward pass in turn, of several stages on each rank (Narayanan et al., 2021, arXiv:2104.04473).

    Raises: ValueError if rounds of as many microbatches as there are ranks do not fill up.

    >>> interleaved(1, 2, [1, 3], 2)
    [1F0, 1F1, 3F0, 3B0, 3F1, 3B1, 1B0, 1B1]
    """
    of_round = microbatches // check_rounds("Interleaved 1F1B", ranks, microbatches)
    forwards = [*_rounds(stages, "F", microbatches, of_round)]
    backwards = [*_rounds(stages[::-1], "B", microbatches, of_round)]
    return _alternating(forwards, backwards, (len(stages) - 1) * of_round + 2 * (ranks - 1 - rank))


def zero_bubble(owned: Sequence[Sequence[int]], microbatches: int) -> list[list[Action]]:
    """Divided backward passes, for each rank with its stages (Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv:2401.10241).

    >>> zero_bubble([[0], [1]], 2)
    [[0F0, 0F1, 0I0, 0W0, 0I1, 0W1], [1F0, 1I0, 1F1, 1I1, 1W0, 1W1]]
    """
    return _Simulation(owned, microbatches).run()


def dual_pipe(owned: Sequence[Sequence[int]], microbatches: int) -> list[list[Action]]:
    """Forward and whole backward passes in turn, of which the last ones are divided (DeepSeek-V3, 2024, arXiv:2412.19437).

    >>> dual_pipe([[0, 3], [1, 2]], 4)[1]
    [1F0, 2F0, 1F1, 2F1, 2B0, 1B0, 2B1, 1B1, 1F2, 2F2, 1F3, 2F3, 2I2, 1I2, 2I3, 1I3, 2W2, 2W3, 1W2, 1W3]
    """
    orders = _Simulation(owned, microbatches, divides_late=True).run()
    return [_whole(order) for order in orders]


def _whole(order: Sequence[Action]) -> list[Action]:
    """The order with one backward pass in the place of two halves that follow each other."""
    found: list[Action] = []
    for action in order:
        if action.computation_type == "W" and found[-1] == action._replace(computation_type="I"):
            found[-1] = action._replace(computation_type="B")
        else:
            found.append(action)
    return found


class _Simulation:
    """Ranks that compute in steps: a forward pass, the gradients of inputs, and those of weights take a step each.

    A rank computes gradients of inputs if it can, because others wait for them; else a forward pass, of its last stage first; else gradients of weights.
    It keeps as many microbatches as there are stages from its first one on. divides_late: the halves of a backward pass follow each other while the rank has
    forward passes left.
    """

    def __init__(self, owned: Sequence[Sequence[int]], microbatches: int, divides_late: bool = False):
        self.owned = [sorted(stages, reverse=True) for stages in owned]
        self.microbatches, self.divides_late = microbatches, divides_late
        self.last = max(stages[0] for stages in self.owned)
        self.done: dict[
            tuple[int, str], int
        ] = {}  # how many microbatches have gone through a pass of a stage

    def run(self) -> list[list[Action]]:
        orders: list[list[Action]] = [[] for _ in self.owned]
        while sum(map(len, orders)) < 3 * self.microbatches * (self.last + 1):
            before = dict(self.done)
            for stages, order in zip(self.owned, orders, strict=True):
                action = next(self._possible(stages, order, before), None)
                if action is not None:
                    order.append(action)
                    self.done[action[:2]] = action.microbatch_index + 1
        return orders

    def _possible(
        self, stages: Sequence[int], order: Sequence[Action], before: dict[tuple[int, str], int]
    ) -> Iterator[Action]:
        """What a rank can compute now, the best first. before: what was done before this step."""
        done = self.done
        has_forwards = done.get((stages[-1], "F"), 0) < self.microbatches
        if self.divides_late and has_forwards and order and order[-1].computation_type == "I":
            yield order[-1]._replace(computation_type="W")
        for stage in stages:
            source = (stage, "F") if stage == self.last else (stage + 1, "I")
            yield from self._next(stage, "I", before.get(source, 0))
        kept = sum(done.get((stage, "F"), 0) - done.get((stage, "I"), 0) for stage in stages)
        for stage in stages:
            if stage > stages[-1] or kept < self.last + 1 - stage:
                yield from self._next(
                    stage, "F", before.get((stage - 1, "F"), 0) if stage else self.microbatches
                )
        for stage in stages:
            yield from self._next(stage, "W", done.get((stage, "I"), 0))

    def _next(self, stage: int, kind: str, there: int) -> Iterator[Action]:
        """The next microbatch of a pass, if as many are there."""
        chunk = self.done.get((stage, kind), 0)
        if chunk < there:
            yield Action(stage, kind, chunk)
