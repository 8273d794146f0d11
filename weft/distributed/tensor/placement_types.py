"""Placements: what each process of a mesh holds of a tensor. Programs write them into plans for several processes."""

from __future__ import annotations

from operator import index
from typing import Any, TypeGuard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """The base of placements, which are immutable and compare by value."""

    __slots__ = ()
    _FIELDS: tuple[str, ...] = ()  # the names of what tells placements of a class apart

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the tensor is cut, along `dim` if that is given."""
        return False

    def is_replicate(self) -> bool:
        """Whether each process holds the whole tensor."""
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the tensor is a reduction over the processes, by `reduce_op` if that is given."""
        return False

    def _key(self) -> tuple:
        return ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self).__name__, *self._key()))

    def __getstate__(self) -> dict[str, Any]:
        """The attributes by their names, as in PyTorch's files."""
        return dict(zip(self._FIELDS, self._key()))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Raises: TypeError or ValueError for a state that is none of this placement."""
        if state.keys() != set(self._FIELDS):
            raise ValueError(
                f"the state of {type(self).__name__} has {list(self._FIELDS)}, not {list(state)}"
            )
        self.__init__(**state)  # type: ignore[misc]


class Shard(Placement):
    """The tensor is cut along `dim` into one piece for each process.

    >>> Shard(1), Shard(1) == Shard(0), Shard(1).is_shard(dim=0)
    (Shard(dim=1), False, False)
    """

    __slots__ = ("_dim",)
    _FIELDS = ("dim",)

    def __init__(self, dim: int) -> None:
        self._dim = index(dim)

    @property
    def dim(self) -> int:
        return self._dim

    def is_shard(self, dim: int | None = None) -> bool:
        return dim is None or dim == self._dim

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """How many elements process `rank` holds of `curr_local_size` ones in `num_chunks` pieces, and from which on.

        >>> [Shard.local_shard_size_and_offset(10, 4, rank) for rank in range(4)]
        [(3, 0), (3, 3), (3, 6), (1, 9)]
        """
        full = -(-curr_local_size // num_chunks)
        start = min(full * rank, curr_local_size)
        return min(full, curr_local_size - start), start

    def _local_shard_size_and_offset(
        self, curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        return self.local_shard_size_and_offset(curr_local_size, num_chunks, rank)

    def _key(self) -> tuple:
        return (self._dim,)

    def __repr__(self) -> str:
        return f"Shard(dim={self._dim})"

    def __str__(self) -> str:
        return f"S({self._dim})"


class _StridedShard(Placement):
    """As `Shard`, but each process holds one piece of each of `split_factor` parts, into which later dims of the mesh cut the same dim with `Shard`.

    So those cut first: with (_StridedShard(0, split_factor=2), Shard(0)) each of two processes along the second dim has one half of the rows, and those along the
    first dim have pieces of this half.
    """

    __slots__ = ("_dim", "_split_factor")
    _FIELDS = ("dim", "split_factor")

    def __init__(self, dim: int, *, split_factor: int = 1, sf: int | None = None) -> None:
        self._dim, self._split_factor = index(dim), index(split_factor if sf is None else sf)

    @property
    def dim(self) -> int:
        return self._dim

    @property
    def split_factor(self) -> int:
        return self._split_factor

    def _key(self) -> tuple:
        return self._dim, self._split_factor

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self._dim}, sf={self._split_factor})"

    def __str__(self) -> str:
        return f"_S({self._dim}, {self._split_factor})"


def is_cut(place: Placement) -> TypeGuard[Shard | _StridedShard]:
    """Whether a placement cuts a dim, in order or in turns."""
    return isinstance(place, (Shard, _StridedShard))


def along(place: Any, dim: int) -> Placement:
    """The same cut of another dim."""
    return Shard(dim) if isinstance(place, Shard) else _StridedShard(dim, split_factor=place.split_factor)


class Replicate(Placement):
    """Each process holds the whole tensor.

    >>> Replicate()
    Replicate()
    """

    __slots__ = ()

    def is_replicate(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


class Partial(Placement):
    """Each process holds a summand; `reduce_op` says how they become the tensor.

    >>> Partial("avg"), Partial().is_partial("sum")
    (Partial(avg), True)
    """

    __slots__ = ("_reduce_op",)
    _FIELDS: tuple[str, ...] = ("reduce_op",)
    LINEAR_REDUCE_OPS = frozenset(("sum", "avg"))
    ALL_REDUCE_OPS = frozenset(("sum", "avg", "product", "min", "max", "band", "bor", "bxor"))

    def __init__(self, reduce_op: str | None = None) -> None:
        self._reduce_op = "sum" if reduce_op is None else reduce_op

    @property
    def reduce_op(self) -> str:
        return self._reduce_op

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return reduce_op is None or reduce_op == self._reduce_op

    def _key(self) -> tuple:
        return (self._reduce_op,)

    def __repr__(self) -> str:
        return f"Partial({self._reduce_op})"

    def __str__(self) -> str:
        return f"P({self._reduce_op})"


class _NormPartial(Partial):
    """Each process holds the norm of its elements; the norm of these norms is the tensor. Not for the orders 0, inf and -inf."""

    __slots__ = ("_norm_type",)
    _FIELDS = ("norm_type",)

    def __init__(self, norm_type: float = 2) -> None:
        super().__init__("sum")
        self._norm_type = norm_type

    @property
    def norm_type(self) -> float:
        return self._norm_type

    def _key(self) -> tuple:
        return (self._norm_type,)

    def __repr__(self) -> str:
        return f"_NormPartial({self._norm_type})"

    def __str__(self) -> str:
        return f"_NormP({self._norm_type})"


def is_sum(place: Placement) -> TypeGuard[Partial]:
    """Whether a placement makes summands, or numbers whose mean is the tensor: linear functions work on these."""
    return type(place) is Partial and place.reduce_op in Partial.LINEAR_REDUCE_OPS
