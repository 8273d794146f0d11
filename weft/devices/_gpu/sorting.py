"""Stable orders of rows of unsigned keys.

Long rows are sorted by digits of eight bits, from the least significant one on. A pass over a digit has three kernels: groups count the digits
of their part of a row; the counts are added up; then each group moves the positions of its elements to their places. Elements that are
counted twice in the same order find their places without waiting for each other, so that equal keys keep their order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.dtype import DType, int32, int64, uint8, uint16, uint32, uint64
from ...engine.expr import load
from ...engine.kernel import Launch
from ...engine.llvm import value_type
from ...engine.loops import Result
from .kernel import THREADS, Kernel
from .target import Target

DIGITS = THREADS  # values of a digit: each thread has one
BITS = 8
TURNS = 8  # of a group in its part of a row
PART = TURNS * THREADS
MOST_SELECTED = 1 << 20  # keys that are looked at to find the least ones one by one
MOST_COMPARED = 1024  # keys of a row, up to which each is compared with all others

_KEYS: dict[int, DType] = {8: uint8, 16: uint16, 32: uint32, 64: uint64}


class PassKernel(NamedTuple):
    """Everything that the code of a kernel of a pass depends on.

    Arguments: the addresses of the target positions, of the keys, of the source positions, of the counts and of the totals of each digit;
    then rows, keys of a row, parts of a row, and how far the digit is shifted.
    """

    bits: int  # of a key
    step: str  # COUNT, ADD or MOVE
    is_first: bool  # the source positions are 0, 1, 2, ...


COUNT, ADD, MOVE = "count", "add", "move"


def pass_ir(target: Target, kernel: PassKernel) -> str:
    """Return the module of the kernel."""
    body = _Pass(target, kernel)
    {COUNT: body.count, ADD: body.add_up, MOVE: body.move}[kernel.step]()
    return body.ir()


class _Pass(Kernel):
    def __init__(self, target: Target, kernel: PassKernel):
        super().__init__(target)
        self.kernel = kernel
        self.to, self.keys, self.source, self.counts, self.totals = self.words("p", 5)
        self.rows, self.n, self.parts, self.shift = (
            self.parameter(name) for name in ("rows", "n", "parts", "shift")
        )
        self.position_of_thread = self.thread()

    def _digit(self, row: str, i: str) -> tuple[str, str]:
        """Return the digit of the i-th element of a row, and its position."""
        start = self.integer("mul", row, self.n)
        at = i
        if not self.kernel.is_first:
            at = self.read(self.place(self.source, [self.integer("add", start, i)], [8]), int64)
        dtype = _KEYS[self.kernel.bits]
        place = self.place(self.keys, [self.integer("add", start, at)], [dtype.itemsize])
        key = self.read(place, dtype)
        if dtype.itemsize < 8:
            key = self.let(f"zext {value_type(dtype)} {key} to i64")
        return self.integer("and", self.integer("lshr", key, self.shift), DIGITS - 1), at

    def _slot_of_count(self, row: str, digit: str, part: str) -> str:
        line = self.integer("add", self.integer("mul", row, DIGITS), digit)
        return self.place(
            self.counts, [self.integer("add", self.integer("mul", line, self.parts), part)], [8]
        )

    def _total_of(self, row: str, digit: str) -> str:
        line = self.integer("add", self.integer("mul", row, DIGITS), digit)
        return self.place(self.totals, [line], [8])

    def _each_part(self, write: Callable[[str, str], None]) -> None:
        with self.loop(self.group(), self.integer("mul", self.rows, self.parts), self.groups()) as turn:
            write(self.integer("udiv", turn, self.parts), self.integer("urem", turn, self.parts))

    def count(self) -> None:
        """How many elements of each part have each digit."""
        room = self.shared(int32, DIGITS)
        self._each_part(lambda row, part: self._count_part(room, row, part))

    def _count_part(self, room: str, row: str, part: str) -> None:
        thread = self.position_of_thread
        self.put(room, int32, thread, "0")
        self.barrier()
        start = self.integer("mul", part, PART)
        end = self.minimum(self.integer("add", start, PART), self.n)
        with self.loop(self.integer("add", start, thread), end, THREADS) as i:
            digit, _ = self._digit(row, i)
            self.do(f"atomicrmw add ptr addrspace(3) {self.slot(room, int32, digit)}, i32 1 monotonic")
        self.barrier()
        found = self.let(f"zext i32 {self.take(room, int32, thread)} to i64")
        self.write(self._slot_of_count(row, thread, part), int64, found)
        self.barrier()

    def add_up(self) -> None:
        """For each digit of a row: how many elements with it lie in the parts before, and in all."""
        room, thread = self.shared(int64, THREADS), self.position_of_thread
        with self.loop(self.group(), self.integer("mul", self.rows, DIGITS), self.groups()) as turn:
            row, digit = self.integer("udiv", turn, DIGITS), self.integer("urem", turn, DIGITS)
            before = self.variable("i64", "0")
            with self.loop(0, self.parts, THREADS) as first:
                part = self.integer("add", first, thread)
                within = self.let(f"icmp slt i64 {part}, {self.parts}")
                own = self.variable("i64", "0")
                place = self._slot_of_count(row, digit, part)
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
        """Write the position of each element to its place."""
        sums, starts = self.shared(int64, THREADS), self.shared(int64, DIGITS)
        digits = self.shared(int32, THREADS)
        self._each_part(lambda row, part: self._move_part((sums, starts, digits), row, part))

    def _move_part(self, rooms: tuple[str, str, str], row: str, part: str) -> None:
        sums, starts, digits = rooms
        thread = self.position_of_thread
        total = self.read(self._total_of(row, thread), int64)
        smaller = self.integer("sub", self.sum_before(sums, thread, total), total)
        before = self.read(self._slot_of_count(row, thread, part), int64)
        self.put(starts, int64, thread, self.integer("add", smaller, before))
        start = self.integer("mul", part, PART)
        end = self.minimum(self.integer("add", start, PART), self.n)
        with self.loop(start, end, THREADS) as first:
            i = self.integer("add", first, thread)
            within = self.let(f"icmp slt i64 {i}, {end}")
            digit, at = self.variable("i64", str(DIGITS)), self.variable("i64", "0")
            with self.when(within):
                found, position = self._digit(row, i)
                self.set(digit, "i64", found)
                self.set(at, "i64", position)
            mine = self.let(f"trunc i64 {self.get(digit, 'i64')} to i32")
            self.barrier()  # the starts are stored, and the digits before are read
            self.put(digits, int32, thread, mine)
            self.barrier()
            rank, alike = self._rank(digits, thread, mine)
            place = self.variable("i64", "0")
            with self.when(within):
                start_of_digit = self.take(starts, int64, self.get(digit, "i64"))
                self.set(place, "i64", self.integer("add", start_of_digit, rank))
                line = self.integer("add", self.integer("mul", row, self.n), self.get(place, "i64"))
                self.write(self.place(self.to, [line], [8]), int64, self.get(at, "i64"))
            self.barrier()  # the starts are read
            is_last = self.let(f"icmp eq i64 {self.integer('add', rank, 1)}, {alike}")
            with self.when(self.let(f"and i1 {within}, {is_last}")):
                self.put(
                    starts, int64, self.get(digit, "i64"), self.integer("add", self.get(place, "i64"), 1)
                )
        self.barrier()

    def _rank(self, digits: str, thread: str, mine: str) -> tuple[str, str]:
        """How many threads before this one have its digit, and how many threads in all."""
        rank, alike = self.variable("i64", "0"), self.variable("i64", "0")
        with self.loop(0, THREADS) as other:
            same = self.let(f"icmp eq i32 {self.take(digits, int32, other)}, {mine}")
            earlier = self.let(f"and i1 {same}, {self.let(f'icmp slt i64 {other}, {thread}')}")
            for variable, flag in ((rank, earlier), (alike, same)):
                one = self.let(f"zext i1 {flag} to i64")
                self.set(variable, "i64", self.integer("add", self.get(variable, "i64"), one))
        return self.get(rank, "i64"), self.get(alike, "i64")


class LeastKernel(NamedTuple):
    """Everything that the code of a kernel for the least keys of rows depends on.

    Arguments: the addresses of the order and of the keys, rows, keys of a row, and how many are wanted.
    """

    bits: int
    compares: (
        bool  # each key with all others; else the least key behind the last one is looked for again and again
    )


def least_ir(target: Target, kernel: LeastKernel) -> str:
    """Return the module of the kernel."""
    body = _Least(target, kernel)
    with body.loop(body.group(), body.rows, body.groups()) as row:
        body.compare(row) if kernel.compares else body.select(row)
    return body.ir()


class _Least(Kernel):
    def __init__(self, target: Target, kernel: LeastKernel):
        super().__init__(target)
        self.dtype = _KEYS[kernel.bits]
        self.kind = value_type(self.dtype)
        self.order, self.keys = self.words("p", 2)
        self.rows, self.n, self.k = (self.parameter(name) for name in ("rows", "n", "k"))
        self.position_of_thread = self.thread()
        if not kernel.compares:
            self.room_of_keys, self.room_of_places = (
                self.shared(self.dtype, THREADS),
                self.shared(int64, THREADS),
            )

    def _key(self, row: str, i: str) -> str:
        line = self.integer("add", self.integer("mul", row, self.n), i)
        return self.read(self.place(self.keys, [line], [self.dtype.itemsize]), self.dtype)

    def _store(self, row: str, rank: str, position: str) -> None:
        line = self.integer("add", self.integer("mul", row, self.k), rank)
        self.write(self.place(self.order, [line], [8]), int64, position)

    def _is_before(self, key: str, at: str, other: str, other_at: str) -> str:
        """Whether a key comes before another one, of equals the one at the smaller position."""
        less = self.let(f"icmp ult {self.kind} {key}, {other}")
        same = self.let(f"icmp eq {self.kind} {key}, {other}")
        earlier = self.let(f"icmp slt i64 {at}, {other_at}")
        return self.let(f"or i1 {less}, {self.let(f'and i1 {same}, {earlier}')}")

    def compare(self, row: str) -> None:
        with self.loop(self.position_of_thread, self.n, THREADS) as i:
            key = self._key(row, i)
            rank = self.variable("i64", "0")
            with self.loop(0, self.n) as j:
                before = self._is_before(self._key(row, j), j, key, i)
                one = self.let(f"zext i1 {before} to i64")
                self.set(rank, "i64", self.integer("add", self.get(rank, "i64"), one))
            found = self.get(rank, "i64")
            with self.when(self.let(f"icmp slt i64 {found}, {self.k}")):
                self._store(row, found, i)

    def select(self, row: str) -> None:
        """Return the least key, then the least behind it, and so on."""
        last, last_at = self.variable(self.kind, "0"), self.variable("i64", "-1")
        with self.loop(0, self.k) as rank:
            key, at = self.variable(self.kind, "-1"), self.variable("i64", self.n)
            with self.loop(self.position_of_thread, self.n, THREADS) as i:
                other = self._key(row, i)
                behind = self._is_before(self.get(last, self.kind), self.get(last_at, "i64"), other, i)
                better = self._is_before(other, i, self.get(key, self.kind), self.get(at, "i64"))
                with self.when(self.let(f"and i1 {behind}, {better}")):
                    self.set(key, self.kind, other)
                    self.set(at, "i64", i)
            self._least_of_group(key, at)
            self.set(last, self.kind, self.take(self.room_of_keys, self.dtype, "0"))
            self.set(last_at, "i64", self.take(self.room_of_places, int64, "0"))
            with self.when(self.let(f"icmp eq i64 {self.position_of_thread}, 0")):
                self._store(row, rank, self.get(last_at, "i64"))
            self.barrier()

    def _least_of_group(self, key: str, at: str) -> None:
        """Bring the least key of all threads, and its position, to the first place in memory of the group."""
        thread, half = self.position_of_thread, THREADS
        while half:
            if half < THREADS:
                with self.when(self.let(f"icmp slt i64 {thread}, {half}")):
                    there = self.integer("add", thread, half)
                    other = self.take(self.room_of_keys, self.dtype, there)
                    other_at = self.take(self.room_of_places, int64, there)
                    better = self._is_before(other, other_at, self.get(key, self.kind), self.get(at, "i64"))
                    with self.when(better):
                        self.set(key, self.kind, other)
                        self.set(at, "i64", other_at)
                self.barrier()
            self.put(self.room_of_keys, self.dtype, thread, self.get(key, self.kind))
            self.put(self.room_of_places, int64, thread, self.get(at, "i64"))
            self.barrier()
            half //= 2


def extras(gpu: Any) -> dict[str, Callable]:
    """The kernels for sorting, by the names that ops ask for."""
    return {
        "ordered_rows": functools.partial(ordered_rows, gpu),
        "sorted_rows": functools.partial(sorted_rows, gpu),
    }


def ordered_rows(gpu: Any, bits: int, rows: int, n: int, k: int) -> Launch:
    """Return the first k positions of the stable order of rows of n unsigned keys: `entry(order, keys, meta, count)`."""
    if n > MOST_COMPARED and n * k > MOST_SELECTED:
        return _first_of_sorted(gpu, bits, rows, n, k)
    runtime = gpu.runtime
    loaded = runtime.load(least_ir, LeastKernel(bits, n <= MOST_COMPARED))
    return runtime.launch(loaded, gpu.groups(rows * THREADS), "pp", [rows, n, k])


def _first_of_sorted(gpu: Any, bits: int, rows: int, n: int, k: int) -> Launch:
    """Return the same by sorting whole rows."""
    sort, nbytes = sorted_rows(gpu, bits, rows, n)
    all_places = 8 * rows * n
    copy = gpu.prepare([Result((load(0, int64),))], [int64], [], (rows, k), ((8 * k, 8), (8 * n, 8)))

    def entry(order: int, keys: int, meta: int, count: int) -> int:
        room = gpu.allocate(all_places + nbytes)
        sort.entry(room.ptr, keys, room.ptr + all_places, sort.meta, sort.count)  # type: ignore[misc]
        return copy.entry(order, room.ptr, copy.meta, copy.count)

    return Launch(entry, 0, 0, (sort, copy))


def sorted_rows(gpu: Any, bits: int, rows: int, n: int) -> tuple[Launch, int]:
    """Return the stable order of rows of n unsigned keys, `entry(order, keys, room, meta, count)`, and the room's bytes."""
    runtime, parts = gpu.runtime, -(-n // PART)
    passes = bits // BITS
    launches = []
    for number in range(passes):
        for step in (COUNT, ADD, MOVE):
            kernel = PassKernel(bits, step, number == 0)
            loaded = runtime.load(pass_ir, kernel)
            threads = THREADS * rows * (DIGITS if step == ADD else parts)
            words = [rows, n, parts, BITS * number]
            launches.append(runtime.launch(loaded, gpu.groups(threads), "ppppp", words))
    positions, counts = 8 * rows * n, 8 * rows * DIGITS * parts

    def entry(order: int, keys: int, room: int, meta: int, count: int) -> int:
        """A pass writes to the order or to the room, so that the last one writes to the order."""
        places = order, room
        for number, launch in enumerate(launches):
            left = passes - 1 - number // len((COUNT, ADD, MOVE))
            to, source = places[left % 2], places[1 - left % 2]
            given = to, keys, source, room + positions, room + positions + counts
            launch.entry(*given, launch.meta, launch.count)
        return order

    return Launch(entry, 0, 0, launches), positions + counts + 8 * rows * DIGITS
