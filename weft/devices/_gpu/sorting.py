"""Stable orders of rows of unsigned keys.

A short row is sorted by one group in its memory (`tiles.py`), a very short one by comparing each key with all others. The few least keys of a
long row are the least ones of its tiles, sorted again.

Other long rows are sorted by digits of eight bits, from the least significant one on. A pass over a digit has three kernels: groups count the
digits of their tiles; the counts are added up; then each group sorts its tiles by the digit and moves keys and positions to their places,
neighbours to neighbouring ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.dtype import int32, int64
from ...engine.kernel import Launch
from .kernel import THREADS, Kernel, is_wide
from .target import Target
from .tiles import BITS as BITS_OF_SPLIT
from .tiles import EACH, KEYS, TILE, Tile, TileKernel, tile_ir

DIGITS = THREADS  # values of a digit: each thread has one
BITS = 8
# Keys of a row, up to which each is compared with all others. By the number of instructions: it was not measured on hardware.
MOST_COMPARED = 128
MOST_OF_TILE = TILE // 4  # keys that are kept of a tile, when the least ones of a row are looked for


class PassKernel(NamedTuple):
    """Everything that the code of a kernel of a pass depends on.

    Arguments: the addresses of the positions and keys that are stored, of the keys and positions that are read, of the counts and of the totals
    of each digit; then rows, keys of a row, tiles of a row, how far the digit is shifted, and how many positions of a row are stored.
    """

    bits: int  # of a key
    step: str  # COUNT, ADD or MOVE
    is_first: bool = False  # the positions that are read are 0, 1, 2, ...
    is_last: bool = False  # the positions that are stored are int64
    has_keys: bool = True  # keys are stored
    wide: bool = False  # positions between the first pass and the last one are int64, not int32


COUNT, ADD, MOVE = "count", "add", "move"


def pass_ir(target: Target, kernel: PassKernel) -> str:
    """Return the module of the kernel."""
    body = _Pass(target, kernel)
    {COUNT: body.count, ADD: body.add_up, MOVE: body.move}[kernel.step]()
    return body.ir()


class _Pass(Tile):
    def __init__(self, target: Target, kernel: PassKernel):
        super().__init__(target, kernel.bits)
        self.kernel = kernel
        self.to, self.to_keys, self.keys, self.source, self.counts, self.totals = self.words("p", 6)
        self.rows, self.n, self.tiles, self.shift, self.stored = (
            self.parameter(name) for name in ("rows", "n", "tiles", "shift", "stored")
        )

    def _slot_of_count(self, row: str, digit: str, tile: str) -> str:
        line = self.integer("add", self.integer("mul", row, DIGITS), digit)
        return self.place(
            self.counts, [self.integer("add", self.integer("mul", line, self.tiles), tile)], [8]
        )

    def _total_of(self, row: str, digit: str) -> str:
        line = self.integer("add", self.integer("mul", row, DIGITS), digit)
        return self.place(self.totals, [line], [8])

    def _each_tile(self, write: Callable[[str, str, str, str], None]) -> None:
        """Write code for the row and the number of a tile, the number of its first key among all keys, and how many it has."""
        with self.loop(self.group(), self.integer("mul", self.rows, self.tiles), self.groups()) as turn:
            row, tile = self.integer("udiv", turn, self.tiles), self.integer("urem", turn, self.tiles)
            start = self.integer("mul", tile, TILE)
            count = self.minimum(self.integer("sub", self.n, start), TILE)
            write(row, tile, self.integer("add", self.integer("mul", row, self.n), start), count)

    def count(self) -> None:
        """How many keys of each tile have each digit."""
        room = self.shared(int32, DIGITS)
        self._each_tile(functools.partial(self._count_tile, room))

    def _count_tile(self, room: str, row: str, tile: str, first: str, count: str) -> None:
        thread = self.position_of_thread
        self.put(room, int32, thread, "0")
        self.barrier()
        keys = self.place(self.keys, [first], [self.dtype.itemsize])
        with self.loop(thread, count, THREADS) as i:
            key = self.read(self.place(keys, [i], [self.dtype.itemsize]), self.dtype)
            slot = self.slot(room, int32, self.digit(key, self.shift, DIGITS))
            self.do(f"atomicrmw add ptr addrspace(3) {slot}, i32 1 monotonic")
        self.barrier()
        found = self.let(f"zext i32 {self.take(room, int32, thread)} to i64")
        self.write(self._slot_of_count(row, thread, tile), int64, found)
        self.barrier()

    def add_up(self) -> None:
        """For each digit of a row: how many keys with it lie in the tiles before, and in all."""
        room, thread = self.shared(int64, THREADS), self.position_of_thread
        with self.loop(self.group(), self.integer("mul", self.rows, DIGITS), self.groups()) as turn:
            row, digit = self.integer("udiv", turn, DIGITS), self.integer("urem", turn, DIGITS)
            before = self.variable("i64", "0")
            with self.loop(0, self.tiles, THREADS) as first:
                tile = self.integer("add", first, thread)
                within = self.let(f"icmp slt i64 {tile}, {self.tiles}")
                own = self.variable("i64", "0")
                place = self._slot_of_count(row, digit, tile)
                with self.when(within):
                    self.set(own, "i64", self.read(place, int64))
                total = self.sum_before(room, thread, self.get(own, "i64"))
                with self.when(within):
                    sum = self.integer("add", self.get(before, "i64"), total)
                    self.write(place, int64, self.integer("sub", sum, self.get(own, "i64")))
                self.barrier()
                last = self.take(room, int64, str(THREADS - 1))
                self.set(before, "i64", self.integer("add", self.get(before, "i64"), last))
                self.barrier()
            with self.when(self.let(f"icmp eq i64 {thread}, 0")):
                self.write(self._total_of(row, digit), int64, self.get(before, "i64"))

    def move(self) -> None:
        """Write each key and its position to their places."""
        self.allocate(EACH[-1])
        self._each_tile(self._move_tile)

    def _move_tile(self, row: str, tile: str, first: str, count: str) -> None:
        thread, starts = (
            self.position_of_thread,
            self.counts_of_tile,
        )  # whose memory is free once the tile is sorted
        self.barrier()  # the tile before is stored
        self.fetch(self.place(self.keys, [first], [self.dtype.itemsize]), count)
        for part in range(0, BITS, BITS_OF_SPLIT):
            self.split(self.integer("add", self.shift, part))
        self.barrier()
        total = self.read(self._total_of(row, thread), int64)
        smaller = self.integer("sub", self.sum_before(self.sums, thread, total), total)
        before = self.read(self._slot_of_count(row, thread, tile), int64)
        self.put(starts, int64, thread, self.integer("add", smaller, before))
        self.barrier()
        self._start_at_heads(starts, count)
        self.barrier()
        line = self.integer("mul", row, self.n)
        with self.loop(thread, count, THREADS) as i:
            key = self.key(i)
            start = self.take(starts, int64, self.digit(key, self.shift, DIGITS))
            to = self.integer("add", start, i)
            if self.kernel.has_keys:
                place = self.place(self.to_keys, [self.integer("add", line, to)], [self.dtype.itemsize])
                self.write(place, self.dtype, key)
            self._store(row, to, self._position_of(tile, first, self.number(i)))

    def _start_at_heads(self, starts: str, count: str) -> None:
        """Let `starts` be what a place in the sorted tile is moved by."""
        with self.loop(self.position_of_thread, count, THREADS) as i:
            digit = self.digit(self.key(i), self.shift, DIGITS)
            before = self.digit(self.key(self.maximum(self.integer("sub", i, 1), 0)), self.shift, DIGITS)
            differs = self.let(f"icmp ne i64 {digit}, {before}")
            with self.when(self.let(f"or i1 {differs}, {self.let(f'icmp eq i64 {i}, 0')}")):
                moved = self.integer("sub", self.take(starts, int64, digit), i)
                self.put(starts, int64, digit, moved)

    def _position_of(self, tile: str, first: str, number: str) -> str:
        """The position in its row of a key of a tile."""
        if self.kernel.is_first:
            return self.integer("add", self.integer("mul", tile, TILE), number)
        at = self.integer("add", first, number)
        if self.kernel.wide:
            return self.read(self.place(self.source, [at], [8]), int64)
        return self.let(f"zext i32 {self.read(self.place(self.source, [at], [4]), int32)} to i64")

    def _store(self, row: str, to: str, position: str) -> None:
        with self.when(self.let(f"icmp slt i64 {to}, {self.stored}")):
            at = self.integer("add", self.integer("mul", row, self.stored), to)
            if self.kernel.is_last or self.kernel.wide:
                self.write(self.place(self.to, [at], [8]), int64, position)
            else:
                narrow = self.let(f"trunc i64 {position} to i32")
                self.write(self.place(self.to, [at], [4]), int32, narrow)


class CompareKernel(NamedTuple):
    """Everything that the code of a kernel that compares each key of a row with all others depends on.

    Arguments: the addresses of the order and of the keys, rows, keys of a row, and how many positions are wanted.
    """

    bits: int


def compare_ir(target: Target, kernel: CompareKernel) -> str:
    """Return the module of the kernel. A thread has a key."""
    body = Kernel(target)
    dtype = KEYS[kernel.bits]
    order, keys = body.words("p", 2)
    rows, n, k = (body.parameter(name) for name in ("rows", "n", "k"))
    first, step = body.first_and_step()
    with body.loop(first, body.integer("mul", rows, n), step) as element:
        row, i = body.integer("udiv", element, n), body.integer("urem", element, n)
        start = body.place(keys, [body.integer("mul", row, n)], [dtype.itemsize])
        key = body.read(body.place(start, [i], [dtype.itemsize]), dtype)
        rank = body.variable("i64", "0")
        with body.loop(0, n) as j:
            other = body.read(body.place(start, [j], [dtype.itemsize]), dtype)
            less = body.let(f"icmp ult i{kernel.bits} {other}, {key}")
            same = body.let(f"icmp eq i{kernel.bits} {other}, {key}")
            earlier = body.let(f"icmp slt i64 {j}, {i}")
            before = body.let(f"or i1 {less}, {body.let(f'and i1 {same}, {earlier}')}")
            one = body.let(f"zext i1 {before} to i64")
            body.set(rank, "i64", body.integer("add", body.get(rank, "i64"), one))
        found = body.get(rank, "i64")
        with body.when(body.let(f"icmp slt i64 {found}, {k}")):
            line = body.integer("add", body.integer("mul", row, k), found)
            body.write(body.place(order, [line], [8]), int64, i)
    return body.ir()


# ---- Launches --------------------------------------------------------------------------------------------------------------


def extras(gpu: Any) -> dict[str, Callable]:
    """The kernels for sorting, by the names that ops ask for."""
    return {
        "orders_rows": lambda n, k: True,
        "ordered_rows": functools.partial(ordered_rows, gpu),
    }


def ordered_rows(gpu: Any, bits: int, rows: int, n: int, k: int) -> tuple[Launch, int]:
    """The first k positions of the stable order of rows of n unsigned keys: `entry(order, keys, room, meta, count)`.

    Returns the launch and the bytes of the room. Without a room, `entry(order, keys, meta, count)`.
    """
    if n <= MOST_COMPARED:
        loaded = gpu.runtime.load(compare_ir, CompareKernel(bits))
        return gpu.runtime.launch(loaded, gpu.groups(rows * n), "pp", [rows, n, k]), 0
    if n <= TILE or k <= MOST_OF_TILE:
        return _least_of_tiles(gpu, bits, rows, n, k)
    return sorted_rows(gpu, bits, rows, n, k, bits // BITS)


def _least_of_tiles(gpu: Any, bits: int, rows: int, n: int, k: int) -> tuple[Launch, int]:
    """Return the same, where k keys are at most a part of a tile: the least keys of each tile, and those of what is left, until it is one tile.

    Of equal keys those of earlier tiles come first in what is left, so the order is stable.
    """
    launches: list[Any] = []
    most, size, is_last = 0, n, False
    while not is_last:
        each = next(each for each in EACH if size <= each * THREADS or each == EACH[-1])
        tiles = -(-size // (each * THREADS))
        is_last = tiles == 1
        left = (tiles - 1) * k + min(k, size - (tiles - 1) * each * THREADS)
        kernel = TileKernel(bits, each, not launches, is_last)
        loaded = gpu.runtime.load(tile_ir, kernel)
        words = [rows, size, tiles, k, left]
        launches.append(gpu.runtime.launch(loaded, gpu.groups(rows * tiles * THREADS), "pppp", words))
        most, size = max(most, 0 if is_last else left), left
    if len(launches) == 1:
        only: Any = launches[0]
        return Launch(
            lambda order, keys, meta, count: only.entry(order, order, keys, order, only.meta, only.count),
            0,
            0,
            only,
        ), 0
    positions, keys_of_half = 8 * rows * most, _aligned(rows * most * bits // 8)

    def entry(order: int, keys: int, room: int, meta: int, count: int) -> int:
        halves = [(at, at + positions) for at in (room, room + positions + keys_of_half)]
        source, read = order, keys
        for number, launch in enumerate(launches):
            to, stored = halves[number % 2] if number < len(launches) - 1 else (order, order)
            launch.entry(to, stored, read, source, launch.meta, launch.count)
            source, read = to, stored
        return order

    return Launch(entry, 0, 0, launches), 2 * (positions + keys_of_half)


def _aligned(nbytes: int) -> int:
    return -(-nbytes // 8) * 8


def sorted_rows(
    gpu: Any, bits: int, rows: int, n: int, k: int, passes: int, has_keys: bool = False
) -> tuple[Launch, int]:
    """Return the first k positions of the stable order of rows of n unsigned keys by their lowest digits, so many, and the room's bytes.

    `entry(order, keys, room, meta, count)`, or with `has_keys`, `entry(order, sorted_keys, keys, room, meta, count)`.
    """
    tiles, wide = -(-n // TILE), is_wide(n)
    launches: list[Any] = []
    for number in range(passes):
        is_last = number == passes - 1
        moving = PassKernel(bits, MOVE, number == 0, is_last, not is_last or has_keys, wide)
        for kernel in (PassKernel(bits, COUNT), PassKernel(bits, ADD), moving):
            loaded = gpu.runtime.load(pass_ir, kernel)
            threads = THREADS * rows * (DIGITS if kernel.step == ADD else tiles)
            words = [rows, n, tiles, BITS * number, k if is_last else n]
            launches.append(gpu.runtime.launch(loaded, gpu.groups(threads), "pppppp", words))
    positions, keys_of_half = _aligned((8 if wide else 4) * rows * n), _aligned(rows * n * bits // 8)
    half, counts = positions + keys_of_half, 8 * rows * DIGITS * tiles

    def run(order: int, sorted_keys: int, keys: int, room: int) -> int:
        counted = room + 2 * half
        source, read = order, keys
        for number in range(passes):
            at = room + half * (number % 2)
            to, stored = (at, at + positions) if number < passes - 1 else (order, sorted_keys)
            for launch in launches[3 * number : 3 * number + 3]:
                launch.entry(to, stored, read, source, counted, counted + counts, launch.meta, launch.count)
            source, read = to, stored
        return order

    def entry(order: int, keys: int, room: int, meta: int, count: int) -> int:
        return run(order, order, keys, room)

    def entry_with_keys(order: int, sorted_keys: int, keys: int, room: int, meta: int, count: int) -> int:
        return run(order, sorted_keys, keys, room)

    nbytes = 2 * half + counts + 8 * rows * DIGITS
    return Launch(entry_with_keys if has_keys else entry, 0, 0, launches), nbytes
