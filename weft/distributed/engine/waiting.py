"""Waiting for other ranks: until they come, have ended or left, or the timeout is over."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from .peers import Peer
from .segment import Segment, number_at

REPORT_S = 30.0  # seconds of waiting, after which a rank says on stderr whom it waits for


class Waiting:
    """How one call waits, which `call` describes. `missing()` lists the ranks that have not come; `any_of`: one of them is enough.

    Machine code waits in slices. `look` is called after each of them.
    """

    def __init__(
        self,
        segment: Segment,
        peers: Sequence[Peer],
        rank: int,
        call: object,
        missing: Callable[[], list[int]],
        timeout: float,
        any_of: bool = False,
    ):
        self.segment = segment
        self.peers = peers
        self.rank = rank
        self.call = call
        self.missing = missing
        self.timeout = timeout
        self.any_of = any_of
        self._began = time.monotonic()
        self._reported = False

    def look(self) -> None:
        """Raise RuntimeError if there is no hope, and say so if it takes long."""
        awaited = self.missing()
        gone = {other: reason for other in awaited if (reason := self._why_gone(other))}
        # A rank may have come just before it ended.
        lost = [reason for other, reason in gone.items() if other in self.missing()]
        if lost and (len(lost) == len(awaited) or not self.any_of):
            raise RuntimeError(f"{self.call}: {lost[0]}, while rank {self.rank} waited for it")
        waited = time.monotonic() - self._began
        if waited > self.timeout and self.missing():
            raise RuntimeError(
                f"{self.call}: timed out after {self.timeout:g} s: rank {self.rank} waited for {self._names()}, "
                "which did not come to this call"
            )
        if waited > REPORT_S and not self._reported:
            self._reported = True
            print(
                f"weft: rank {self.rank} has waited {waited:.0f} s for {self._names()} in {self.call}",
                file=sys.stderr,
                flush=True,
            )

    def _why_gone(self, other: int) -> str | None:
        if self.peers[other].has_ended():
            return f"rank {other} (process {self.peers[other].pid}) has ended"
        if number_at(self.segment.left(other)):
            return f"rank {other} (process {self.peers[other].pid}) has left the group"
        return None

    def _names(self) -> str:
        ranks = self.missing()
        return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
