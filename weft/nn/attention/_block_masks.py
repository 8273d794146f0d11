"""Which blocks of a mask hold anything, as lists of block numbers for each row of blocks.

A row's list is as long as the row: first the numbers of the blocks that count, ascending, then those of the others. How many
count is kept beside it. Shapes: dense [..., rows, columns], counts [..., rows], lists [..., rows, columns].
"""

from __future__ import annotations

from ...core.dtype import int32
from ...core.tensor import Tensor
from ...ops.assembly.padding import pad
from ...ops.creation.creation import zeros
from ...ops.creation.ranges import arange
from ...ops.indexing.masking import where
from ...ops.order.sorting import argsort


def ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """Counts and lists of a dense matrix of blocks, which is not 0 where a block counts."""
    counts = dense.sum(-1)
    lists = argsort(dense.to(int32), dim=-1, descending=True, stable=True)
    return counts.to(int32).contiguous(), lists.to(int32).contiguous()


def dense_of(counts: Tensor, lists: Tensor, columns: int) -> Tensor:
    """Return the dense matrix of 0 and 1 (int32) of counts and lists."""
    places = arange(lists.shape[-1], device=lists.device)
    counting = places < counts.unsqueeze(-1)
    # Entries that do not count are put into one more column, which is then dropped.
    targets = where(counting, lists, columns).long()
    dense = zeros(*lists.shape[:-1], columns + 1, dtype=int32, device=lists.device)
    return dense.scatter(-1, targets, 1)[..., :columns].contiguous()


def transposed(counts: Tensor, lists: Tensor) -> tuple[Tensor, Tensor]:
    """Counts and lists of the columns."""
    return ordered(dense_of(counts, lists, lists.shape[-1]).transpose(-2, -1))


def adjusted(counts: Tensor, lists: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """Cut to the first rows and columns. Lists are ascending, so that blocks beyond the last column stand at their ends."""
    counts, lists = counts[..., :rows], lists[..., :rows, :]
    places = arange(lists.shape[-1], device=lists.device)
    staying = (places < counts.unsqueeze(-1)) & (lists < columns)
    return staying.sum(-1).to(counts.dtype), lists[..., :columns]


def filled_blocks(mask: Tensor, rows: int, columns: int) -> tuple[Tensor, int]:
    """How many elements of each block of rows x columns are True, [..., Q / rows, K / columns], and how many there are.

    The mask is taken for False beyond its end.
    """
    q, k = mask.shape[-2:]
    padded = pad(mask, (0, -k % columns, 0, -q % rows))
    blocks = padded.unflatten(-1, (-1, columns)).unflatten(-3, (-1, rows))
    return blocks.sum((-3, -1)), rows * columns


class SeenKeys:
    """Which keys the queries of a block may see, from the dense matrix of a mask's blocks."""

    def __init__(self, dense: Tensor, rows: int, columns: int):
        self.rows, self.columns = rows, columns
        self._samples = dense.ne(0).any(1).tolist()  # for each batch and row of blocks: which blocks

    def keys(self, sample: int, queries: range, length: int) -> range:
        """Return the keys from the first to the last block that one of the queries sees."""
        table = self._samples[sample if sample < len(self._samples) else 0]
        lines = table[queries.start // self.rows : -(-queries.stop // self.rows)]
        found = [number for line in lines for number, is_seen in enumerate(line) if is_seen]
        if not found:
            return range(0)
        return range(min(found) * self.columns, min((max(found) + 1) * self.columns, length))
