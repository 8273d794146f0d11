"""Stable sorting of tiles: as many unsigned keys as a group holds in its memory, by digits of four bits from the least significant one on.

For each digit, threads count the keys of their own runs by their values of the digit. The sum of all counts before one, value by value and
thread by thread, is the place of the first key that it counts. So no key is compared with another one, and equal keys keep their order.
"""

from __future__ import annotations

from typing import NamedTuple

from ...core.dtype import DType, int16, int64, uint8, uint16, uint32, uint64
from ...engine.llvm import value_type
from .kernel import THREADS, Kernel
from .target import Target

KEYS: dict[int, DType] = {8: uint8, 16: uint16, 32: uint32, 64: uint64}
BITS = 4  # of a digit
VALUES = 1 << BITS
# Keys of a thread. They are odd numbers, so that the first keys of neighbouring threads lie in different banks of the group's memory.
EACH = (1, 5, 15)
TILE = (
    EACH[-1] * THREADS
)  # of 64 bits, they and all else take 47.5 KiB of the 48 that a group of NVIDIA's GPUs has


class Tile(Kernel):
    """A kernel that sorts keys in memory of the group, with the numbers that they have in their tile."""

    def __init__(self, target: Target, bits: int):
        super().__init__(target)
        self.dtype = KEYS[bits]
        self.kind = value_type(self.dtype)
        self.position_of_thread = self.thread()

    def allocate(self, each: int) -> None:
        """Memory for a tile with so many keys of each thread."""
        self.each = each
        self.keys_of_tile = self.shared(self.dtype, each * THREADS)
        self.numbers_of_tile = self.shared(int16, each * THREADS)
        self.counts_of_tile = self.shared(int16, VALUES * THREADS)
        self.sums = self.shared(int64, THREADS)
        self.own = [(self.variable(self.kind, "0"), self.variable("i16", "0")) for _ in range(each)]
        self.ranks = [(self.variable("i64", "0"), self.variable("i64", "0")) for _ in range(each)]

    def fetch(self, keys: str, count: str) -> None:
        """Copy so many keys from an address to the tile. Behind them are keys that none comes after."""
        with self.loop(self.position_of_thread, self.each * THREADS, THREADS) as i:
            key = self.variable(self.kind, "-1")
            with self.when(self.let(f"icmp slt i64 {i}, {count}")):
                self.set(key, self.kind, self.read(self.place(keys, [i], [self.dtype.itemsize]), self.dtype))
            self.put(self.keys_of_tile, self.dtype, i, self.get(key, self.kind))
            self.put(self.numbers_of_tile, int16, i, self.let(f"trunc i64 {i} to i16"))

    def key(self, i: str) -> str:
        """Return a key of the tile."""
        return self.take(self.keys_of_tile, self.dtype, i)

    def number(self, i: str) -> str:  # type: ignore[override]
        """Return the number that a key of the tile had before it was sorted."""
        return self.let(f"zext i16 {self.take(self.numbers_of_tile, int16, i)} to i64")

    def digit(self, key: str, shift: str, values: int) -> str:
        """Return the digit of a key."""
        wide = key if self.kind == "i64" else self.let(f"zext {self.kind} {key} to i64")
        return self.integer("and", self.integer("lshr", wide, shift), values - 1)

    def split(self, shift: str) -> None:
        """Bring keys with smaller digits before those with larger ones, all else in its order. Begins with a barrier, ends without."""
        thread, counts = self.position_of_thread, self.counts_of_tile
        start = self.integer("mul", thread, self.each)
        self.barrier()
        for value in range(VALUES):
            self.put(counts, int16, self.integer("add", thread, value * THREADS), "0")
        for j, ((key, number), (slot, rank)) in enumerate(zip(self.own, self.ranks, strict=True)):
            i = self.integer("add", start, j)
            self.set(key, self.kind, found := self.key(i))
            self.set(number, "i16", self.take(self.numbers_of_tile, int16, i))
            line = self.integer("mul", self.digit(found, shift, VALUES), THREADS)
            self.set(slot, "i64", place := self.integer("add", line, thread))
            before = self.take(counts, int16, place)
            self.set(rank, "i64", self.let(f"zext i16 {before} to i64"))
            self.put(counts, int16, place, self.let(f"add i16 {before}, 1"))
        self.barrier()
        self._add_up(self.integer("mul", thread, VALUES))
        self.barrier()
        for (key, number), (slot, rank) in zip(self.own, self.ranks, strict=True):
            before = self.let(f"zext i16 {self.take(counts, int16, self.get(slot, 'i64'))} to i64")
            to = self.integer("add", before, self.get(rank, "i64"))
            self.put(self.keys_of_tile, self.dtype, to, self.get(key, self.kind))
            self.put(self.numbers_of_tile, int16, to, self.get(number, "i16"))

    def _add_up(self, start: str) -> None:
        """Put the sum of the counts before it in the place of each count. A thread has VALUES of them, from `start` on."""
        places = [self.integer("add", start, k) for k in range(VALUES)]
        counts = [
            self.let(f"zext i16 {self.take(self.counts_of_tile, int16, place)} to i64") for place in places
        ]
        sums = ["0"]
        for count in counts:
            sums.append(self.integer("add", sums[-1], count))
        total = self.sum_before(self.sums, self.position_of_thread, sums[-1])
        before = self.integer("sub", total, sums[-1])
        for place, sum in zip(places, sums[:-1], strict=True):
            below = self.let(f"trunc i64 {self.integer('add', before, sum)} to i16")
            self.put(self.counts_of_tile, int16, place, below)


class TileKernel(NamedTuple):
    """Everything that the code of a kernel that sorts the tiles of rows depends on.

    Arguments: the addresses of the positions and keys that are stored and of the keys and positions that are read; rows, keys of a row, tiles
    of a row, how many of each tile are stored, and how many of a row these are.
    """

    bits: int  # of a key
    each: int  # keys of a thread
    is_first: bool  # the positions that are read are 0, 1, 2, ...
    is_last: bool  # no keys are stored


def tile_ir(target: Target, kernel: TileKernel) -> str:
    """Return the module of the kernel."""
    body = _SortTiles(target, kernel)
    body.write_all()
    return body.ir()


class _SortTiles(Tile):
    def __init__(self, target: Target, kernel: TileKernel):
        super().__init__(target, kernel.bits)
        self.allocate(kernel.each)
        self.kernel = kernel
        self.to, self.to_keys, self.keys, self.source = self.words("p", 4)
        self.rows, self.n, self.tiles, self.k, self.stored = (
            self.parameter(name) for name in ("rows", "n", "tiles", "k", "stored")
        )

    def write_all(self) -> None:
        with self.loop(self.group(), self.integer("mul", self.rows, self.tiles), self.groups()) as turn:
            self._tile(self.integer("udiv", turn, self.tiles), self.integer("urem", turn, self.tiles))

    def _tile(self, row: str, tile: str) -> None:
        start = self.integer("mul", tile, self.kernel.each * THREADS)
        count = self.minimum(self.integer("sub", self.n, start), self.kernel.each * THREADS)
        line = self.integer("add", self.integer("mul", row, self.n), start)
        self.barrier()  # the tile before is stored
        self.fetch(self.place(self.keys, [line], [self.dtype.itemsize]), count)
        with self.loop(0, self.kernel.bits, BITS) as shift:
            self.split(shift)
        self.barrier()
        out = self.integer("add", self.integer("mul", row, self.stored), self.integer("mul", tile, self.k))
        with self.loop(self.position_of_thread, self.minimum(self.k, count), THREADS) as i:
            number, to = self.number(i), self.integer("add", out, i)
            position = self.integer("add", start, number)
            if not self.kernel.is_first:
                position = self.read(self.place(self.source, [line, number], [8, 8]), int64)
            self.write(self.place(self.to, [to], [8]), int64, position)
            if not self.kernel.is_last:
                place = self.place(self.to_keys, [to], [self.dtype.itemsize])
                self.write(place, self.dtype, self.key(i))
