"""Attention by tiles: scores and weights of a tile are in registers, and never in memory.

Source: Dao 2023, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning". In the forward pass each warp has 16
queries, and goes through the keys with the maximum and the sum of each row so far. It stores the logarithm of the sum of the exponentials of each
row, from which the backward pass computes the weights again. That pass takes two kernels, by queries and by keys, where the paper adds up the
gradient of queries by atomic additions: so all sums have one order, and the same bits each time.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ...core.dtype import DType, bool_, float32
from ...core.spec import Spec
from ...core.symbols import per_plan
from ...engine.convert import convert
from ...engine.expr import load
from ...engine.kernel import Launch
from ...engine.llvm import constant, emit
from .fragments import COLUMNS, DTYPES, ROWS, TERMS, WARPS, Fragment, Fragments, Matrix
from .kernel import THREADS
from .target import Target

BLOCK = ROWS * WARPS  # rows of a group: queries, or keys in the backward pass by keys
MOST_FEATURES = 256
# With more features than these a thread of the backward pass has not enough registers for two gradients, and for all columns of one.
FEW_FEATURES, MOST_AT_ONCE = 64, 128
_MINUS_INFINITY, _INFINITY = constant(float32, 0xFF800000), constant(float32, 0x7F800000)
_LOG2_E, _LN_2 = (
    constant(float32, struct.unpack("<I", struct.pack("<f", each))[0])
    for each in (math.log2(math.e), math.log(2))
)

FORWARD, BY_QUERIES, BY_KEYS = "forward", "by queries", "by keys"
# The operands of each step, results first. The sums of rows that are no results are float32, [batch, heads, queries], contiguous.
OPERANDS = {
    FORWARD: ("out", "logsumexp", "query", "key", "value"),
    BY_QUERIES: ("query_ct", "shared", "query", "key", "value", "out", "ct", "logsumexp"),
    BY_KEYS: ("key_ct", "value_ct", "query", "key", "value", "ct", "logsumexp", "shared"),
}
_OF_ROWS = {"logsumexp", "shared"}
_OF_KEYS = {"key", "value", "key_ct", "value_ct"}
_OF_VALUES = {"value", "value_ct", "out", "ct"}


class AttentionKernel(NamedTuple):
    """Everything that the code of an attention depends on.

    Arguments: the addresses of the operands of the step and of the mask; then batch, heads of queries, heads of queries for each head of keys,
    queries, keys, features, features of values, the scale, and in bytes the strides of each operand with features along batch, heads and
    rows, and those of the mask along batch, heads, queries and keys.
    """

    step: str
    dtype: DType
    features: int  # of queries and keys, rounded up
    values: int  # features of values, rounded up
    causal: bool
    mask: DType | None
    tensor_cores: bool

    @property
    def at_once(self) -> int:
        """How many keys, or queries in the pass by keys, are in memory of the group."""
        few, many = {FORWARD: (64, 32), BY_QUERIES: (64, 32), BY_KEYS: (32, 16)}[self.step]
        most = MOST_AT_ONCE if self.step == FORWARD else FEW_FEATURES
        return few if max(self.features, self.values) <= most else many


def attention_ir(target: Target, kernel: AttentionKernel) -> str:
    """Write the module of the kernel."""
    body = _Attention(target, kernel)
    {FORWARD: body.forward, BY_QUERIES: body.by_queries, BY_KEYS: body.by_keys}[kernel.step]()
    return body.ir()


class _Attention(Fragments):
    def __init__(self, target: Target, kernel: AttentionKernel):
        super().__init__(target, kernel.dtype, kernel.tensor_cores)
        self.kernel = kernel
        names = OPERANDS[kernel.step]
        self.addresses = {name: self.parameter(name) for name in names}
        self.mask = self.parameter("mask") if kernel.mask is not None else ""
        self.batch, self.heads, self.together, self.queries, self.keys, self.features, self.values = (
            self.parameter(name)
            for name in ("batch", "heads", "together", "queries", "keys", "features", "values")
        )
        self.scale = self.number(self.parameter("scale"), float32)
        self.steps = {name: self.words(name, 3) for name in names if name not in _OF_ROWS}
        self.mask_steps = self.words("mask", 4) if kernel.mask is not None else []
        # Scores are logarithms to the base 2, because exp2 is one instruction.
        self.score_scale = self.product(self.scale, _LOG2_E)

    # ---- Positions -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _blocks(self, rows: str, heads: str) -> Iterator[tuple[str, str, str]]:
        """All blocks of rows, shared among the groups: the position in the batch, the head, and the first row of the block."""
        blocks = self.integer("udiv", self.integer("add", rows, BLOCK - 1), BLOCK)
        turns = self.integer("mul", blocks, self.integer("mul", self.batch, heads))
        with self.loop(self.group(), turns, self.groups()) as turn:
            place, block = self.integer("udiv", turn, blocks), self.integer("urem", turn, blocks)
            if (
                self.kernel.causal and self.kernel.step != BY_KEYS
            ):  # the last queries have the most keys: they come first
                block = self.integer("sub", self.integer("sub", blocks, 1), block)
            sample, head = self.integer("udiv", place, heads), self.integer("urem", place, heads)
            yield sample, head, self.integer("mul", block, BLOCK)

    def _matrix(self, name: str, sample: str, head: str) -> Matrix:
        """The rows of an operand for a head of its own."""
        *outer, step = self.steps[name]
        rows = self.keys if name in _OF_KEYS else self.queries
        columns = self.values if name in _OF_VALUES else self.features
        return Matrix(self.place(self.addresses[name], [sample, head], outer), step, rows, columns)

    def _row_of(self, name: str, sample: str, head: str, row: str) -> str:
        """The address of a number of a row of queries."""
        before = self.integer("add", self.integer("mul", sample, self.heads), head)
        position = self.integer("add", self.integer("mul", before, self.queries), row)
        return self.place(self.addresses[name], [position], [float32.itemsize])

    def _number_of(self, name: str, sample: str, head: str, row: str) -> str:
        """The number of a row of queries; rows beyond the last have that of the last."""
        last = self.integer("sub", self.queries, 1)
        return self.read(self._row_of(name, sample, head, self.minimum(row, last)), float32)

    def _rows(self, first: str) -> list[str]:
        """The rows of which this thread has sums, in the block of its warp that begins at `first`."""
        return [self.integer("add", self.integer("add", first, self.high), down) for down in (0, 8)]

    # ---- Scores ----------------------------------------------------------------------------------------------------------

    def _scores(
        self, products: list[list[str]], place: tuple[str, str], rows: Sequence[str], first: str
    ) -> list[list[str]]:
        """Scores times log2(e), -inf where a query does not see a key. `first`: the first column."""
        by_keys = self.kernel.step == BY_KEYS
        own = self.integer("add", first, self.twice_low)  # the first column of this thread
        count = self.queries if by_keys else self.keys
        found = []
        room = [self._narrowed(self.integer("sub", self._stop(row, count), own)) for row in rows]
        least = (
            [self._narrowed(self.integer("sub", row, own)) for row in rows]
            if by_keys and self.kernel.causal
            else []
        )
        for k, four in enumerate(products):
            scores = []
            for n, product in enumerate(four):
                row, column = divmod(n, 2)
                position = k * COLUMNS + column
                score = self.product(product, self.score_scale)
                if self.kernel.mask is not None:
                    at = rows[row], self.integer("add", own, position)
                    score = self._masked(score, place, *(reversed(at) if by_keys else at))
                visible = self.let(f"icmp sgt i32 {room[row]}, {position}")
                if least:  # keys see the queries from their own position on
                    after = self.let(f"icmp sle i32 {least[row]}, {position}")
                    visible = self.let(f"and i1 {visible}, {after}")
                scores.append(self.choose(visible, score, _MINUS_INFINITY))
            found.append(scores)
        return found

    def _stop(self, row: str, count: str) -> str:
        """The column behind the last one that a row may see."""
        if not self.kernel.causal or self.kernel.step == BY_KEYS:
            return count
        return self.minimum(count, self.integer("add", row, 1))

    def _narrowed(self, distance: str) -> str:
        """A distance to columns of a tile as an i32."""
        within = self.maximum(self.minimum(distance, 1 << 16), -(1 << 16))
        return self.let(f"trunc i64 {within} to i32")

    def _masked(self, score: str, place: tuple[str, str], query: str, key: str) -> str:
        ends = [self.integer("sub", count, 1) for count in (self.queries, self.keys)]
        at = [self.minimum(each, end) for each, end in zip((query, key), ends, strict=True)]
        dtype = self.kernel.mask
        assert dtype is not None
        value = self.read(self.place(self.mask, [*place, *at], self.mask_steps), dtype)
        if dtype is bool_:
            return self.choose(value, score, _MINUS_INFINITY)
        leaf = load(0, dtype)
        (wide,) = emit(self, [convert(leaf, float32)], {leaf: value})
        return self.sum(score, self.product(wide, _LOG2_E))

    def _powers(self, scores: list[list[str]], subtracted: Callable[[int, int], str]) -> list[list[str]]:
        """2 to the power of the scores less a number of the row or column; `subtracted` gives it for a sum of a tile."""
        return [
            [
                self.unary("exp2", self.let(f"fsub float {score}, {subtracted(k, n)}"))
                for n, score in enumerate(four)
            ]
            for k, four in enumerate(scores)
        ]

    # ---- Passes ----------------------------------------------------------------------------------------------------------

    def forward(self) -> None:
        kernel = self.kernel
        keys, values = self.tile(kernel.at_once, kernel.features), self.tile(kernel.at_once, kernel.values)
        own = self.integer("mul", self.warp, ROWS)
        with self._blocks(self.queries, self.heads) as (sample, head, block):
            first, shared = self.integer("add", block, own), self.integer("udiv", head, self.together)
            rows = self._rows(first)
            query = self.left_of(keys, self._matrix("query", sample, head), block)
            sums = self.new_sums(kernel.values)
            highest = [self.variable("float", _MINUS_INFINITY) for _ in rows]
            totals = [self.variable("float", "0.0") for _ in rows]
            with self.loop(
                0, self._stop(self.integer("add", block, BLOCK - 1), self.keys), kernel.at_once
            ) as start:
                self.barrier()
                self.fetch(keys, self._matrix("key", sample, shared), start)
                self.fetch(values, self._matrix("value", sample, shared), start)
                self.barrier()
                products = self.new_sums(kernel.at_once)
                self.multiply_all(products, query, self.right_side(keys, terms_in_rows=True))
                scores = self._scores(self.sums_of(products), (sample, head), rows, start)
                weights = self._weights(scores, sums, highest, totals)
                self.multiply_all(sums, self.as_left(weights), self.right_side(values, terms_in_rows=False))
            self._finish_rows(sample, head, first, sums, highest, totals)

    def _weights(
        self, scores: list[list[str]], sums: list[list[str]], highest: Sequence[str], totals: Sequence[str]
    ) -> list[list[str]]:
        """The weights of a tile, not divided by their total. What was added up with a lower maximum is scaled down."""
        bases = []
        for row, (maximum, total) in enumerate(zip(highest, totals, strict=True)):
            own = [score for four in scores for score in four[2 * row : 2 * row + 2]]
            before = self.get(maximum, "float")
            after = self.larger(before, self.across(functools.reduce(self.larger, own), self.larger))
            nothing = self.let(f"fcmp oeq float {after}, {_MINUS_INFINITY}")  # so far: -inf - -inf is NaN
            base = self.choose(nothing, "0.0", after)
            scaled = self.unary("exp2", self.let(f"fsub float {before}, {base}"))
            for four in sums:
                for variable in four[2 * row : 2 * row + 2]:
                    self.set(variable, "float", self.product(self.get(variable, "float"), scaled))
            self.set(total, "float", self.product(self.get(total, "float"), scaled))
            self.set(maximum, "float", after)
            bases.append(base)
        weights = self._powers(scores, lambda k, n: bases[n // 2])
        for row, total in enumerate(totals):
            own = [weight for four in weights for weight in four[2 * row : 2 * row + 2]]
            self.set(total, "float", self.sum(self.get(total, "float"), functools.reduce(self.sum, own)))
        return weights

    def _finish_rows(
        self,
        sample: str,
        head: str,
        first: str,
        sums: list[list[str]],
        highest: Sequence[str],
        totals: Sequence[str],
    ) -> None:
        """Divide by the totals. A query that sees no keys gets zeros, and the sum inf, so that its weights are 0 in the backward pass."""
        factors = []
        for maximum, total, row in zip(highest, totals, self._rows(first), strict=True):
            whole = self.across(self.get(total, "float"), self.sum)
            nothing = self.let(f"fcmp oeq float {whole}, 0.0")
            factors.append(self.choose(nothing, "0.0", self.let(f"fdiv float 1.0, {whole}")))
            logarithm = self.sum(self.get(maximum, "float"), self.unary("log2", whole))
            logarithm = self.choose(nothing, _INFINITY, self.product(logarithm, _LN_2))
            self._store_number("logsumexp", sample, head, row, logarithm)
        shares = [
            [self.product(value, factors[n // 2]) for n, value in enumerate(four)]
            for four in self.sums_of(sums)
        ]
        self.store_sums(self._matrix("out", sample, head), first, 0, shares)

    def _store_number(self, name: str, sample: str, head: str, row: str, value: str) -> None:
        """Write the number of a row, by one of the threads that have it."""
        within = self.let(f"icmp slt i64 {row}, {self.queries}")
        with self.when(self.let(f"and i1 {within}, {self.let(f'icmp eq i64 {self.low}, 0')}")):
            self.write(self._row_of(name, sample, head, row), float32, value)

    # The weights are P = exp2(score - logsumexp), and the cotangent of the scores is P (dP - shared) scale, where dP = ct value^T, and `shared`
    # is the sum of ct * out of a row.

    def by_queries(self) -> None:
        """The gradient of the queries, and `shared`."""
        kernel = self.kernel
        keys, values = self.tile(kernel.at_once, kernel.features), self.tile(kernel.at_once, kernel.values)
        own = self.integer("mul", self.warp, ROWS)
        with self._blocks(self.queries, self.heads) as (sample, head, block):
            first, of_keys = self.integer("add", block, own), self.integer("udiv", head, self.together)
            rows = self._rows(first)
            query = self.left_of(keys, self._matrix("query", sample, head), block)
            ct = self.left_of(values, self._matrix("ct", sample, head), block)
            shared = self._shared(ct, self.left_of(values, self._matrix("out", sample, head), block))
            subtracted = []
            for row, value in zip(rows, shared, strict=True):
                self._store_number("shared", sample, head, row, value)
                subtracted.append(self.product(self._number_of("logsumexp", sample, head, row), _LOG2_E))
            with self._columns(kernel.features) as (left, sums):
                with self.loop(
                    0, self._stop(self.integer("add", block, BLOCK - 1), self.keys), kernel.at_once
                ) as start:
                    self.barrier()
                    self.fetch(keys, self._matrix("key", sample, of_keys), start)
                    self.fetch(values, self._matrix("value", sample, of_keys), start)
                    self.barrier()
                    products = self.new_sums(kernel.at_once)
                    self.multiply_all(products, query, self.right_side(keys, terms_in_rows=True))
                    scores = self._scores(self.sums_of(products), (sample, head), rows, start)
                    weights = self._powers(scores, lambda k, n: subtracted[n // 2])
                    pulled = self.new_sums(kernel.at_once)
                    self.multiply_all(pulled, ct, self.right_side(values, terms_in_rows=True))
                    of_scores = self._score_cts(weights, pulled, lambda k, n: shared[n // 2])
                    self.multiply_all(
                        sums, self.as_left(of_scores), self.right_side(keys, terms_in_rows=False, first=left)
                    )
                self.store_sums(self._matrix("query_ct", sample, head), first, left, self._scaled(sums))

    @contextmanager
    def _columns(self, features: int) -> Iterator[tuple[str, list[list[str]]]]:
        """Sums of so many columns, or of one half after the other: where they begin, and their variables."""
        width = features if features <= MOST_AT_ONCE else features // 2
        with self.loop(0, features, width) as left:
            yield left, self.new_sums(width)

    def _shared(self, ct: Sequence[Sequence[str]], out: Sequence[Sequence[str]]) -> list[str]:
        """The sums of ct * out of both rows of this thread. Even registers of a fragment are of the first row, odd ones of the second."""
        found = []
        for row in range(2):
            total = "0.0"
            for a, b in zip(ct, out, strict=True):
                for k in (row, row + 2):
                    for x, y in zip(self.unpack(a[k]), self.unpack(b[k]), strict=True):
                        total = self.intrinsic("fma", float32, 1, x, y, total)
            found.append(self.across(total, self.sum))
        return found

    def _score_cts(
        self, weights: list[list[str]], pulled: list[list[str]], shared: Callable[[int, int], str]
    ) -> list[list[str]]:
        """The cotangents of the scores, without the scale."""
        return [
            [
                self.product(weight, self.let(f"fsub float {value}, {shared(k, n)}"))
                for n, (weight, value) in enumerate(zip(*each, strict=True))
            ]
            for k, each in enumerate(zip(weights, self.sums_of(pulled), strict=True))
        ]

    def _scaled(self, sums: list[list[str]]) -> list[list[str]]:
        return [[self.product(value, self.scale) for value in four] for four in self.sums_of(sums)]

    def by_keys(self) -> None:
        """The gradients of keys and values: the transposed scores, of 16 keys of a warp and the queries of all heads that share them."""
        kernel = self.kernel
        queries, cts = self.tile(kernel.at_once, kernel.features), self.tile(kernel.at_once, kernel.values)
        own = self.integer("mul", self.warp, ROWS)
        heads = self.integer("udiv", self.heads, self.together)
        with self._blocks(self.keys, heads) as (sample, of_keys, block):
            first = self.integer("add", block, own)
            rows = self._rows(first)
            key = self.left_of(queries, self._matrix("key", sample, of_keys), block)
            begin = "0"
            if kernel.causal:
                begin = self.integer("mul", self.integer("udiv", block, kernel.at_once), kernel.at_once)
            key_ct, value_ct = (self._matrix(name, sample, of_keys) for name in ("key_ct", "value_ct"))

            def add_up(
                value_sums: list[list[str]], key_sums: list[list[str]], value: Sequence[Fragment], left: str
            ) -> None:
                """Add what all queries give to the columns from `left` on of one gradient, or of both. No sums: it is not wanted."""
                with (
                    self.loop(0, self.together) as turn,
                    self.loop(begin, self.queries, kernel.at_once) as start,
                ):
                    head = self.integer("add", self.integer("mul", of_keys, self.together), turn)
                    self.barrier()
                    self.fetch(queries, self._matrix("query", sample, head), start)
                    self.fetch(cts, self._matrix("ct", sample, head), start)
                    self.barrier()
                    products = self.new_sums(kernel.at_once)
                    self.multiply_all(products, key, self.right_side(queries, terms_in_rows=True))
                    scores = self._scores(self.sums_of(products), (sample, head), rows, start)
                    subtracted = self._of_columns("logsumexp", sample, head, start)
                    subtracted = [[self.product(each, _LOG2_E) for each in pair] for pair in subtracted]
                    weights = self._powers(scores, lambda k, n: subtracted[k][n % 2])
                    if value_sums:
                        right = self.right_side(cts, terms_in_rows=False, first=left)
                        self.multiply_all(value_sums, self.as_left(weights), right)
                    if not key_sums:
                        return
                    pulled = self.new_sums(kernel.at_once)
                    self.multiply_all(pulled, value, self.right_side(cts, terms_in_rows=True))
                    shared = self._of_columns("shared", sample, head, start)
                    of_scores = self._score_cts(weights, pulled, lambda k, n: shared[k][n % 2])
                    right = self.right_side(queries, terms_in_rows=False, first=left)
                    self.multiply_all(key_sums, self.as_left(of_scores), right)

            def values() -> list[Fragment]:
                return self.left_of(cts, self._matrix("value", sample, of_keys), block)

            if max(kernel.features, kernel.values) <= FEW_FEATURES:
                key_sums, value_sums = self.new_sums(kernel.features), self.new_sums(kernel.values)
                add_up(value_sums, key_sums, values(), "0")
                self.store_sums(key_ct, first, 0, self._scaled(key_sums))
                self.store_sums(value_ct, first, 0, self.sums_of(value_sums))
                return
            with self._columns(kernel.values) as (left, sums):
                add_up(sums, [], (), left)
                self.store_sums(value_ct, first, left, self.sums_of(sums))
            value = values()
            with self._columns(kernel.features) as (left, sums):
                add_up([], sums, value, left)
                self.store_sums(key_ct, first, left, self._scaled(sums))

    def _of_columns(self, name: str, sample: str, head: str, first: str) -> list[list[str]]:
        """The numbers of the queries that are this thread's columns of a tile."""
        own = self.integer("add", first, self.twice_low)
        return [
            [self._number_of(name, sample, head, self.integer("add", own, k + column)) for column in range(2)]
            for k in range(0, self.kernel.at_once, COLUMNS)
        ]


# ---- Launches ------------------------------------------------------------------------------------------------------------


def extras(gpu: Any) -> dict[str, Callable]:
    """The kernels of attention, by the names that ops ask for; none where the older way is faster."""
    if gpu.runtime.small_products is None:
        return {}
    return {
        "attention": functools.partial(prepare_attention, gpu, FORWARD),
        "attention_by_queries": functools.partial(prepare_attention, gpu, BY_QUERIES),
        "attention_by_keys": functools.partial(prepare_attention, gpu, BY_KEYS),
        "has_attention": has_attention,
    }


def has_attention(query: Spec, value: Spec) -> bool:
    """Whether the kernels take operands like these, if they have elements."""
    return query.dtype in DTYPES and query.shape[-1] <= MOST_FEATURES and value.shape[-1] <= MOST_FEATURES


def prepare_attention(
    gpu: Any, step: str, specs: Sequence[Spec], mask: Spec | None, causal: bool, scale: float
) -> Launch:
    """A step of attention: `entry(*operands, mask, meta, count)`, with the operands of OPERANDS[step], and without a mask if there is none.

    specs: of the operands, [batch, heads, rows, features], whose last dim has stride 1, or [batch, heads, queries]. The heads of queries are a
    multiple of the heads of keys. mask: [batch, heads, queries, keys], where strides may be 0: bool, or numbers that are added to the scores.
    """
    named = dict(zip(OPERANDS[step], specs, strict=True))
    query, key, value = named["query"], named["key"], named["value"]
    (batch, heads, queries, features), (_, shared, keys, _), values = query.shape, key.shape, value.shape[-1]
    kernel = AttentionKernel(
        step,
        query.dtype,
        _rounded_up(features),
        _rounded_up(values),
        causal,
        None if mask is None else mask.dtype,
        gpu.runtime.small_products == "tensor cores",
    )
    words = [batch, heads, heads // shared, queries, keys, features, values, _bits(scale)]
    for name, spec in named.items():
        if name not in _OF_ROWS:
            words += spec.byte_stride[:3]
    if mask is not None:
        words += mask.byte_stride
    blocks = batch * (shared * -(-keys // BLOCK) if step == BY_KEYS else heads * -(-queries // BLOCK))
    loaded = gpu.runtime.load(attention_ir, kernel)
    letters = "p" * (len(named) + (mask is not None))
    return gpu.runtime.launch(loaded, gpu.groups(blocks * THREADS), letters, words)


def _rounded_up(features: int) -> int:
    """The next multiple of TERMS, also of the half if the columns of a gradient are computed in two halves.

    It is compared, not computed, so that a plan for other numbers of rows has the number itself.
    """
    few = range(TERMS, MOST_AT_ONCE, TERMS)
    return next(
        width for width in (*few, *range(MOST_AT_ONCE, MOST_FEATURES + 1, 2 * TERMS)) if features <= width
    )


@per_plan
def _bits(number: float) -> int:
    """A float32 as a word."""
    return struct.unpack("<I", struct.pack("<f", number))[0]
