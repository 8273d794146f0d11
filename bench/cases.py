"""What is measured: a `Case` is one row, a `Section` is a table of rows with two targets.

Statements are written in PyTorch's API, with `torch` bound to the implementation. A NumPy statement, where there is
one, sees `np` and `special` (SciPy's); JAX runs the same statement with its own `np` and `special`, compiled by `jit`.
Setups run in every implementation: they may use `n`, `rand(*shape)` (uniform float32 in [0, 1)) and
`integers(high, *shape)` (uniform int64).
"""

from dataclasses import dataclass, replace

FLOAT = 4  # bytes of a float32


@dataclass(frozen=True)
class Case:
    """One statement to measure. `measure` is "time" (seconds per run) or "memory" (peak growth, in bytes)."""

    name: str
    setup: str
    stmt: str
    numpy: str | None = None
    n: int = 0
    measure: str = "time"
    # Whether weft may put the work off until somebody looks, so that the measurement has to look.
    deferrable: bool = True
    # A name of the setup: PyTorch's compiled column replaces this function or module by torch.compile of it.
    compiled: str = ""
    # Bytes that every implementation must read and write. The measured limit is a plain loop that does only this.
    traffic: tuple[int, int] | None = None

    def memory(self, prefix: str = "") -> "Case":
        """The same statement, of which the peak memory is measured."""
        return replace(self, name=prefix + self.name, measure="memory", compiled="", traffic=None)


@dataclass(frozen=True)
class Section:
    """Rows that have their geometric mean and their worst row in common.

    `mean` and `floor` are the least geometric mean and the least ratio wanted: PyTorch's time (or memory, or size)
    over weft's. `counted` sections enter the mean over all rows.
    """

    key: str
    title: str
    cases: tuple[Case, ...] = ()
    mean: float | None = None
    floor: float | None = None
    implementations: tuple[str, ...] = ("torch", "weft", "numpy")
    counted: bool = True
    # Microseconds need fewer repetitions than the noise of a long run: seconds per turn, times this.
    share: float = 1.0
