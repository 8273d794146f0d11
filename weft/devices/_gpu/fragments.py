"""Small products of matrices, by the 32 threads of a warp: D[16, 8] += A[16, 16] B[16, 8], of bfloat16 or float16, with sums in float32.

Each thread of a warp has a *fragment* of each matrix. Which elements these are is the layout of the instruction
`mma.sync.aligned.m16n8k16.row.col` (NVIDIA, PTX ISA 9.0, section 9.7.14.5.8, "Matrix Fragments for mma.m16n8k16 with floating point type").
Fragments of memory of the group are loaded by `ldmatrix` (section 9.7.14.5.15), four registers at once, turned where terms are rows of the tile.

The same registers hold twice as many terms of float8, with sums in float32, and of int8, with sums in int32 (`mma.m16n8k32`, section 9.7.14.5.10).
Then sizes and positions along the terms count *words* of 16 bits, which are two elements. Such tiles cannot be turned, so terms must be their rows.

`Fragments` has two forms. With tensor cores (compute capability 8.0) `multiply` is that instruction, and threads exchange numbers by shuffles.
The other form has the same fragments and goes through memory of the group, on any device, so tests on processors run all of a kernel except the
instructions. These are emulated for tests (`tests/emulated_instructions.py`). In both forms all threads of a group must come to `multiply`, `fetch`
and `across` together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...core.dtype import DType, bfloat16, float8_e4m3fn, float8_e5m2, float16, float32, int8, int32, uint16
from ...engine.convert import convert
from ...engine.expr import load
from ...engine.llvm import constant, emit, memory_type, value_type
from .kernel import THREADS, Kernel
from .target import Target

DTYPES = (bfloat16, float16)
BYTES = (float8_e4m3fn, float8_e5m2, int8)
ITEMSIZE = 2  # bytes of a word
WARP = 32
WARPS = THREADS // WARP  # of a group
ROWS, COLUMNS, TERMS = 16, 8, 16  # of one small product; the terms are words

# Thread number 4 * high + low of a warp has these words. A register has two words, which are neighbours along the terms.
# (row - high, term - 2 * low) of the first element of each register
A_PAIRS = ((0, 0), (8, 0), (0, 8), (8, 8))
B_PAIRS = (0, 8)  # term - 2 * low; its column is `high`
_TWO_B = ((0, 0), (0, 8), (8, 0), (8, 8))  # (column, term) of the registers of B for two times eight columns
SUMS = ((0, 0), (0, 1), (8, 0), (8, 1))  # (row - high, column - 2 * low) of each sum

# Elements between the end of a row in memory of the group and the next row. So the 32 threads that read the pairs of a fragment, in eight
# rows, use 32 different banks of this memory.
_PADDING = 8
_VECTOR = 8  # elements that `fetch` copies at once
_AT_ONCE = 8  # small products with one A that share the barriers of the form without tensor cores

_SHARED = "addrspace(3)"
_FLOAT8 = {float8_e4m3fn: "e4m3", float8_e5m2: "e5m2"}

Fragment = list[str]  # registers of two words, as i32
Places = tuple[tuple[int, int], ...]


class Matrix(NamedTuple):
    """A matrix in memory of the device, of words; the elements of a row are neighbours."""

    start: str  # address
    step: str  # bytes from one row to the next
    rows: str
    columns: str


class Tile(NamedTuple):
    """A part of a matrix in memory of the group."""

    memory: str
    rows: int
    columns: int

    @property
    def pitch(self) -> int:
        """Elements from one row to the next."""
        return self.columns + _PADDING


class Side(NamedTuple):
    """A tile as the left or right operand of products, seen from one thread. Its lines are rows of A, or columns of B."""

    pointer: str  # to the thread's first element; with tensor cores to the first row of which it gives the address to ldmatrix
    apart: int  # elements between neighbouring lines
    step: int  # elements between neighbouring terms


class Fragments(Kernel):
    """A kernel whose warps multiply matrices of a dtype; `right`: the dtype of the right operand, if it is another one."""

    def __init__(self, target: Target, dtype: DType, tensor_cores: bool, right: DType | None = None):
        super().__init__(target)
        self.dtype, self.right_dtype, self.tensor_cores = dtype, right or dtype, tensor_cores
        self.sum_dtype = int32 if dtype is int8 else float32
        self.sum_kind = value_type(self.sum_dtype)
        self.position = self.thread()
        self.warp, lane = (self.integer(how, self.position, WARP) for how in ("udiv", "urem"))
        self.high, self.low = self.integer("udiv", lane, 4), self.integer("urem", lane, 4)
        self.twice_low = self.integer("mul", self.low, 2)
        if not tensor_cores:
            self._room_a = self.shared(int32, WARPS * ROWS * TERMS // 2)
            self._room_b = self.shared(int32, WARPS * _AT_ONCE * COLUMNS * TERMS // 2)
            self._room = self.shared(float32, THREADS)

    # ---- Numbers ---------------------------------------------------------------------------------------------------------

    def unary(self, name: str, value: str) -> str:
        """2 ** value ("exp2"), or the logarithm to the base 2 ("log2"). The form with tensor cores has an error of up to 2 ** -22."""
        if not self.tensor_cores:
            return self.intrinsic(name, float32, 1, value)
        function = {"exp2": "@llvm.nvvm.ex2.approx.ftz.f", "log2": "@llvm.nvvm.lg2.approx.ftz.f"}[name]
        self.declarations.add(f"declare float {function}(float)")
        return self.let(f"call float {function}(float {value})")

    def larger(self, a: str, b: str) -> str:
        return self.intrinsic("maxnum", float32, 1, a, b)

    def sum(self, a: str, b: str) -> str:
        return self.let(f"fadd float {a}, {b}")

    def product(self, a: str, b: str) -> str:
        return self.let(f"fmul float {a}, {b}")

    def choose(self, condition: str, a: str, b: str) -> str:
        return self.let(f"select i1 {condition}, float {a}, float {b}")

    def pack(self, first: str, second: str) -> str:
        """Two float32 as a register, rounded to the dtype."""
        if self.tensor_cores:
            kind = "bfloat" if self.dtype is bfloat16 else "half"
            one = self.let(f"insertelement <2 x float> undef, float {first}, i32 0")
            both = self.let(f"insertelement <2 x float> {one}, float {second}, i32 1")
            narrow = self.let(f"fptrunc <2 x float> {both} to <2 x {kind}>")
            return self.let(f"bitcast <2 x {kind}> {narrow} to i32")
        leaf = load(0, float32)
        halves = []
        for value in (first, second):
            (rounded,) = emit(self, [convert(leaf, self.dtype)], {leaf: value})
            kind = memory_type(self.dtype)
            halves.append(rounded if kind == "i16" else self.let(f"bitcast {kind} {rounded} to i16"))
        return self.join(*halves)

    def join(self, first: str, second: str) -> str:
        """Two elements as a register."""
        low, high = (self.let(f"zext i16 {each} to i32") for each in (first, second))
        return self.let(f"or i32 {low}, {self.let(f'shl i32 {high}, 16')}")

    def halves(self, register: str) -> tuple[str, str]:
        """The two elements of a register."""
        first = self.let(f"trunc i32 {register} to i16")
        return first, self.let(f"trunc i32 {self.let(f'lshr i32 {register}, 16')} to i16")

    def unpack(self, register: str, dtype: DType | None = None) -> list[str]:
        """The elements of a register, in the dtype of sums. dtype: of the elements, if it is not that of the left operand."""
        dtype = dtype or self.dtype
        bits = 8 * dtype.itemsize
        found = []
        for shift in range(0, 32, bits):
            moved = self.let(f"lshr i32 {register}, {shift}") if shift else register
            found.append(self._widened(self.let(f"trunc i32 {moved} to i{bits}"), dtype))
        return found

    def _widened(self, element: str, dtype: DType) -> str:
        leaf, kind = load(0, dtype), memory_type(dtype)
        value = element if kind[0] == "i" else self.let(f"bitcast i16 {element} to {kind}")
        return emit(self, [convert(leaf, self.sum_dtype)], {leaf: value})[0]

    # ---- Products --------------------------------------------------------------------------------------------------------

    def new_sums(self, columns: int) -> list[list[str]]:
        """Variables for the sums of so many columns, set to 0: for each eight columns those of `SUMS`."""
        zero = constant(self.sum_dtype, 0)
        return [[self.variable(self.sum_kind, zero) for _ in SUMS] for _ in range(columns // COLUMNS)]

    def sums_of(self, variables: list[list[str]]) -> list[list[str]]:
        """The values of such variables."""
        return [[self.get(each, self.sum_kind) for each in four] for four in variables]

    def multiply(self, sums: list[list[str]], a: Fragment, b: Sequence[Fragment]) -> None:
        """Add A B to the sums; there is one fragment of B for each eight columns."""
        if self.tensor_cores:
            for four, fragment in zip(sums, b, strict=True):
                self._instruction(four, a, fragment)
            return
        for k in range(0, len(b), _AT_ONCE):
            self._through_memory(sums[k : k + _AT_ONCE], a, b[k : k + _AT_ONCE])

    def _instruction(self, sums: list[str], a: Fragment, b: Fragment) -> None:
        name, kind, kind_of_sum = (
            self._name(),
            "<2 x half>" if self.dtype is float16 else "i32",
            self.sum_kind,
        )
        four = f"{{ {', '.join([kind_of_sum] * 4)} }}"
        self.declarations.add(f"declare {four} @{name}({', '.join([kind] * 6 + [kind_of_sum] * 4)})")
        registers = [
            each if kind == "i32" else self.let(f"bitcast i32 {each} to {kind}") for each in (*a, *b)
        ]
        given = [f"{kind} {each}" for each in registers]
        given += [f"{kind_of_sum} {self.get(each, kind_of_sum)}" for each in sums]
        # Without "convergent" LLVM may move the instruction into a branch that some threads of the warp do not take.
        found = self.let(f"call {four} @{name}({', '.join(given)}) convergent")
        for k, each in enumerate(sums):
            self.set(each, kind_of_sum, self.let(f"extractvalue {four} {found}, {k}"))

    def _name(self) -> str:
        """LLVM's name of the instruction."""
        if self.dtype in _FLOAT8:
            kinds = f"f32.{_FLOAT8[self.dtype]}.{_FLOAT8[self.right_dtype]}.f32"
            return f"llvm.nvvm.mma.m16n8k32.row.col.{kinds}"
        return {
            bfloat16: "llvm.nvvm.mma.m16n8k16.row.col.bf16",
            float16: "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
            int8: "llvm.nvvm.mma.m16n8k32.row.col.s8",
        }[self.dtype]

    def _through_memory(self, sums: list[list[str]], a: Fragment, b: Sequence[Fragment]) -> None:
        """Each thread stores its fragments where the layout says, reads the rows and columns of its sums, and adds their products in order."""
        own_row = self.integer("add", self.integer("mul", self.warp, ROWS), self.high)
        for (down, term), register in zip(A_PAIRS, a, strict=True):
            self._put_pair(self._room_a, self.integer("add", own_row, down), term, register)
        for k, fragment in enumerate(b):
            column = self.integer("add", self._first_column(k), self.high)
            for term, register in zip(B_PAIRS, fragment, strict=True):
                self._put_pair(self._room_b, column, term, register)
        self.barrier()
        with self.loop(0, TERMS // 2) as pair:
            rows = {
                down: self._pair_at(self._room_a, self.integer("add", own_row, down), pair, self.dtype)
                for down in sorted({down for down, _ in SUMS})
            }
            for k, four in enumerate(sums):
                own_column = self.integer("add", self._first_column(k), self.twice_low)
                columns = {
                    along: self._pair_at(
                        self._room_b, self.integer("add", own_column, along), pair, self.right_dtype
                    )
                    for along in sorted({along for _, along in SUMS})
                }
                for (down, along), variable in zip(SUMS, four, strict=True):
                    value = self.get(variable, self.sum_kind)
                    for x, y in zip(rows[down], columns[along], strict=True):
                        value = self._multiplied(x, y, value)
                    self.set(variable, self.sum_kind, value)
        self.barrier()

    def _multiplied(self, x: str, y: str, value: str) -> str:
        if self.sum_dtype is float32:
            return self.intrinsic("fma", float32, 1, x, y, value)
        return self.let(f"add i32 {value}, {self.let(f'mul i32 {x}, {y}')}")

    def _first_column(self, k: int) -> str:
        return self.integer("add", self.integer("mul", self.warp, _AT_ONCE * COLUMNS), k * COLUMNS)

    def _put_pair(self, room: str, line: str, term: int, register: str) -> None:
        place = self.integer("add", self.integer("mul", line, TERMS // 2), self.low)
        self.put(room, int32, self.integer("add", place, term // 2), register)

    def _pair_at(self, room: str, line: str, pair: str, dtype: DType) -> list[str]:
        place = self.integer("add", self.integer("mul", line, TERMS // 2), pair)
        return self.unpack(self.take(room, int32, place), dtype)

    def across(self, value: str, combine: Callable[[str, str], str]) -> str:
        """Combine a float32 of the four threads that have sums of the same rows. All four get the result."""
        for distance in (1, 2):
            value = combine(value, self._of_other(value, distance))
        return value

    def _of_other(self, value: str, distance: int) -> str:
        if self.tensor_cores:
            name = "@llvm.nvvm.shfl.sync.bfly.f32"
            self.declarations.add(f"declare float {name}(i32, float, i32, i32)")
            return self.let(f"call float {name}(i32 -1, float {value}, i32 {distance}, i32 31)")
        self.put(self._room, float32, self.position, value)
        self.barrier()
        other = self.take(self._room, float32, self.integer("xor", self.position, distance))
        self.barrier()
        return other

    def as_left(self, sums: Sequence[Sequence[str]]) -> list[Fragment]:
        """Values in the layout of sums, rounded, as fragments of A whose terms are the columns: one for each 16 columns."""
        packed = [[self.pack(four[0], four[1]), self.pack(four[2], four[3])] for four in sums]
        return [[*packed[k], *packed[k + 1]] for k in range(0, len(packed), TERMS // COLUMNS)]

    # ---- Fragments of matrices -------------------------------------------------------------------------------------------

    def tile(self, rows: int, columns: int) -> Tile:
        """New memory of the group for a part of a matrix."""
        return Tile(self.shared(uint16, rows * (columns + _PADDING)), rows, columns)

    def fetch(self, tile: Tile, matrix: Matrix, first: str, left: str | int = 0) -> None:
        """Copy rows of a matrix from `first` on and columns from `left` on to memory of the group, with zeros beyond its edges."""
        start = self.place(matrix.start, [str(left)], [ITEMSIZE])
        columns = self.integer("sub", matrix.columns, left)
        together = self.integer(
            "or", start, self.integer("or", matrix.step, self.integer("mul", columns, ITEMSIZE))
        )
        together = self.integer("and", together, _VECTOR * ITEMSIZE - 1)
        aligned = self.let(f"icmp eq i64 {together}, 0")
        moved = matrix._replace(start=start, columns=columns)
        with self.when(aligned):
            self._fetch_vectors(tile, moved, first)
        with self.unless(aligned):
            self._fetch_elements(tile, moved, first)

    def _fetch_vectors(self, tile: Tile, matrix: Matrix, first: str) -> None:
        """All threads load before they store, to wait once for the loads. Those beyond the edges load the last row, or column, instead.

        A thread copies one column of vectors, so that it computes few addresses.
        """
        across = 1 << (tile.columns // _VECTOR - 1).bit_length()
        at_once = THREADS // across  # rows
        own = self.integer("udiv", self.position, across)
        column = self.integer("mul", self.integer("urem", self.position, across), _VECTOR)
        last = self.integer("sub", matrix.columns, _VECTOR)
        start = self.place(matrix.start, [self._within(column, last)], [ITEMSIZE])
        loaded = []
        for k in range(0, tile.rows, at_once):
            row = self.integer("add", first, self.integer("add", own, k))
            near = self._within(row, self.integer("sub", matrix.rows, 1))
            pointer = self.pointer(self.place(start, [near], [matrix.step]))
            value = self.let(f"load <4 x i32>, ptr addrspace(1) {pointer}, align 16")
            inside = self._inside(matrix, row, column)
            loaded.append(self.let(f"select i1 {inside}, <4 x i32> {value}, <4 x i32> zeroinitializer"))
        rows = self.let(f"icmp slt i64 {own}, {tile.rows}")
        columns = self.let(f"icmp slt i64 {column}, {tile.columns}")
        with self.when(self.let(f"and i1 {rows}, {columns}")):
            for k, value in enumerate(loaded):
                target = self.slot_of(tile, self.integer("add", own, k * at_once), column)
                self.do(f"store <4 x i32> {value}, ptr {_SHARED} {target}, align 16")

    def _fetch_elements(self, tile: Tile, matrix: Matrix, first: str) -> None:
        with self.loop(self.position, tile.rows * tile.columns, THREADS) as element:
            row, column = (self.integer(how, element, tile.columns) for how in ("udiv", "urem"))
            value = self._read(matrix, self.integer("add", first, row), column)
            self.do(f"store i16 {value}, ptr {_SHARED} {self.slot_of(tile, row, column)}, align 2")

    def _read(self, matrix: Matrix, row: str, column: str) -> str:
        """An element of a matrix, or 0 beyond its edges, where the last element of the row or column is loaded."""
        edges = [self.integer("sub", size, 1) for size in (matrix.rows, matrix.columns)]
        at = [self._within(position, edge) for position, edge in zip((row, column), edges, strict=True)]
        value = self.read(self.place(matrix.start, at, [matrix.step, ITEMSIZE]), uint16)
        return self.let(f"select i1 {self._inside(matrix, row, column)}, i16 {value}, i16 0")

    def _within(self, position: str, last: str) -> str:
        return self.maximum(self.minimum(position, last), 0)

    def _inside(self, matrix: Matrix, row: str, column: str) -> str:
        return self._within_ends((matrix.rows, matrix.columns), row, column)

    def _within_ends(self, ends: tuple[str, str], row: str, column: str) -> str:
        rows, columns = (
            self.let(f"icmp slt i64 {at}, {end}") for at, end in zip((row, column), ends, strict=True)
        )
        return self.let(f"and i1 {rows}, {columns}")

    def slot_of(self, tile: Tile, row: str, column: str) -> str:
        return self.slot(
            tile.memory, uint16, self.integer("add", self.integer("mul", row, tile.pitch), column)
        )

    def left_side(self, tile: Tile, terms_in_rows: bool, first: str | int = 0) -> Side:
        """A tile as A. `terms_in_rows`: rows of the tile are rows of A, else terms. `first`: the first row of A for this warp."""
        return self._side(tile, terms_in_rows, first, A_PAIRS)

    def right_side(self, tile: Tile, terms_in_rows: bool, first: str | int = 0) -> Side:
        """A tile as B. `terms_in_rows`: rows of the tile are columns of B, else terms. `first`: the first column of B for this warp."""
        return self._side(tile, terms_in_rows, first, _TWO_B)

    def _side(self, tile: Tile, terms_in_rows: bool, first: str | int, four: Places) -> Side:
        line, term = self.high, self.twice_low
        if self.tensor_cores:
            line, term = self._place_of_row(four, terms_in_rows)
        line = self.integer("add", line, first)
        if terms_in_rows:
            return Side(self.slot_of(tile, line, term), tile.pitch, 1)
        return Side(self.slot_of(tile, term, line), 1, tile.pitch)

    def _place_of_row(self, four: Places, terms_in_rows: bool) -> tuple[str, str]:
        """The line and the term where the row begins of which this thread gives the address: threads 8 * k to 8 * k + 7 give those of matrix k."""
        lane = self.integer("urem", self.position, WARP)
        row = self.integer("urem", lane, 8)
        found = []
        for axis in range(2):
            place = "0"
            for bit in (1, 2):  # of the number of the matrix
                is_set = self.integer("and", self.integer("udiv", lane, 8 * bit), 1)
                place = self.integer("add", place, self.integer("mul", is_set, four[bit][axis]))
            found.append(place)
        line, term = found
        if terms_in_rows:
            return self.integer("add", line, row), term
        return line, self.integer("add", term, row)

    def left(self, side: Side, row: int, term: int) -> Fragment:
        """The fragment of A from this row and term of the warp on."""
        return self._four(side, row, term, A_PAIRS)

    def right(self, side: Side, columns: int, term: int) -> list[Fragment]:
        """The fragments of B from this term on: one for each eight of so many columns, a multiple of 16."""
        found = []
        for column in range(0, columns, 2 * COLUMNS):
            four = self._four(side, column, term, _TWO_B)
            found += [four[:2], four[2:]]
        return found

    def _four(self, side: Side, line: int, term: int, four: Places) -> Fragment:
        """The registers of four matrices of 8 lines and 8 terms."""
        if self.tensor_cores:
            return self._load_matrices(side, line, term)
        return [self._pair(side, line + down, term + along) for down, along in four]

    def _load_matrices(self, side: Side, line: int, term: int) -> Fragment:
        turned = "" if side.step == 1 else ".trans"
        name = f"@llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{turned}.b16.p3"
        kinds = "{ i32, i32, i32, i32 }"
        self.declarations.add(f"declare {kinds} {name}(ptr {_SHARED})")
        pointer = self._moved(side, line, term)
        found = self.let(f"call {kinds} {name}(ptr {_SHARED} {pointer}) convergent")
        return [self.let(f"extractvalue {kinds} {found}, {k}") for k in range(4)]

    def _pair(self, side: Side, line: int, term: int) -> str:
        if side.step == 1:
            return self.let(f"load i32, ptr {_SHARED} {self._moved(side, line, term)}, align 4")
        halves = [
            self.let(f"load i16, ptr {_SHARED} {self._moved(side, line, each)}, align 2")
            for each in (term, term + 1)
        ]
        return self.join(*halves)

    def _moved(self, side: Side, line: int, term: int) -> str:
        place = line * side.apart + term * side.step
        return self.let(f"getelementptr i8, ptr {_SHARED} {side.pointer}, i64 {place * ITEMSIZE}")

    def multiply_all(self, sums: list[list[str]], left: Sequence[Fragment], right: Side) -> None:
        """Add the product of A, of which there is a fragment for each 16 terms, and B to the sums."""
        for k, fragment in enumerate(left):
            self.multiply(sums, fragment, self.right(right, len(sums) * COLUMNS, k * TERMS))

    def left_of(self, tile: Tile, matrix: Matrix, first: str) -> list[Fragment]:
        """The fragments of A of this warp: 16 of the rows from `first` on, which are those of the whole group, with zeros beyond the edges.

        All rows go through a tile, a few warps at a time. Without it each element would take an address, and these more registers than there are.
        """
        together = tile.rows // ROWS  # warps
        own, turn_of_warp = (self.integer(how, self.warp, together) for how in ("urem", "udiv"))
        side = self.left_side(tile, terms_in_rows=True, first=self.integer("mul", own, ROWS))
        found = [[self.variable("i32", "0") for _ in A_PAIRS] for _ in range(0, tile.columns, TERMS)]
        with self.loop(0, WARPS // together) as turn:
            self.barrier()
            self.fetch(tile, matrix, self.integer("add", first, self.integer("mul", turn, tile.rows)))
            self.barrier()
            mine = self.let(f"icmp eq i64 {turn}, {turn_of_warp}")
            for k, variables in enumerate(found):
                for variable, register in zip(variables, self.left(side, 0, TERMS * k), strict=True):
                    kept = self.get(variable, "i32")
                    self.set(variable, "i32", self.let(f"select i1 {mine}, i32 {register}, i32 {kept}"))
        return [[self.get(variable, "i32") for variable in variables] for variables in found]

    def store_sums(
        self,
        matrix: Matrix,
        first: str,
        left: str | int,
        values: Sequence[Sequence[str]],
        dtype: DType | None = None,
    ) -> None:
        """Write sums to the matrix, from a row and a column on, where they are within it. dtype: that of sums, or else that of the operands."""
        wide = dtype is self.sum_dtype
        for k, four in enumerate(values):
            for i, down in enumerate((0, 8)):
                pair = four[2 * i : 2 * i + 2]
                for j, element in enumerate(pair if wide else self.halves(self.pack(*pair))):
                    row, column = self._place_of_sum(first, left, k, down, j)
                    with self.when(self._inside(matrix, row, column)):
                        place = self.place(
                            matrix.start, [row, column], [matrix.step, 4 if wide else ITEMSIZE]
                        )
                        self.write(place, self.sum_dtype if wide else uint16, element)

    def each_sum(
        self,
        ends: tuple[str, str],
        first: str,
        left: str | int,
        values: Sequence[Sequence[str]],
        store: Callable[[str, str, str], None],
    ) -> None:
        """Write code for each sum, from a row and a column on, that is within so many rows and columns: `store(row, column, sum)`."""
        for k, four in enumerate(values):
            for (down, along), value in zip(SUMS, four, strict=True):
                row, column = self._place_of_sum(first, left, k, down, along)
                with self.when(self._within_ends(ends, row, column)):
                    store(row, column, value)

    def _place_of_sum(self, first: str, left: str | int, k: int, down: int, along: int) -> tuple[str, str]:
        row = self.integer("add", first, self.integer("add", self.high, down))
        return row, self.integer("add", self.twice_low, self.integer("add", left, k * COLUMNS + along))
