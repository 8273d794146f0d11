"""Where the matrices of a stack are in memory, for kernels that factorize them."""

from __future__ import annotations

from typing import NamedTuple


class Matrices(NamedTuple):
    """A stack of matrices: the address of its first element, and the steps in bytes from one matrix, row and column to the next.

    A transposed matrix is one with its steps swapped, and a system that is solved from its end is one with negative steps.
    """

    address: int
    step: int
    down: int
    across: int

    @property
    def steps(self) -> tuple[int, int, int]:
        return self[1:]

    def at(self, row: int, column: int) -> Matrices:
        """Return the parts of the matrices that begin at this row and column."""
        return self._replace(address=self.address + row * self.down + column * self.across)

    def transposed(self) -> Matrices:
        """Return the transposes."""
        return self._replace(down=self.across, across=self.down)
