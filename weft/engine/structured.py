"""Structured LLVM IR: functions with variables, loops and conditions instead of labels and phi nodes.

Variables live in memory until LLVM's first pass (mem2reg) puts them into registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from .llvm import Block

# The parameters of a loop over tasks: see `loops.py`.
LOOP = "ptr %operands, ptr %meta, i64 %begin, i64 %end"


class Structured(Block):
    """Writes code with variables, loops and conditions."""

    space = ""  # the address space of variables, such as " addrspace(5)"

    def __init__(self, declarations: set[str]):
        super().__init__(declarations)
        self.variables: list[str] = []
        self.labels = 0

    def variable(self, kind: str, initial: str) -> str:
        """Return the address of a new variable."""
        name = f"%c{len(self.variables)}"
        self.variables.append(f"{name} = alloca {kind}, align 64{',' if self.space else ''}{self.space}")
        self.set(name, kind, initial)
        return name

    def get(self, variable: str, kind: str) -> str:
        return self.let(f"load {kind}, ptr{self.space} {variable}, align 64")

    def set(self, variable: str, kind: str, value: str) -> None:
        self.do(f"store {kind} {value}, ptr{self.space} {variable}, align 64")

    def integer(self, operation: str, a: str | int, b: str | int) -> str:
        """Return an operation on two int64."""
        return self.let(f"{operation} i64 {a}, {b}")

    def minimum(self, a: str | int, b: str | int) -> str:
        """Return the smaller of two int64."""
        self.declarations.add("declare i64 @llvm.smin.i64(i64, i64)")
        return self.let(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def maximum(self, a: str | int, b: str | int) -> str:
        """Return the larger of two int64."""
        self.declarations.add("declare i64 @llvm.smax.i64(i64, i64)")
        return self.let(f"call i64 @llvm.smax.i64(i64 {a}, i64 {b})")

    def _label(self, name: str) -> str:
        self.labels += 1
        return f"{name}{self.labels}"

    @contextmanager
    def loop(self, start: str | int, stop: str | int, step: str | int = 1) -> Iterator[str]:
        """for (i = start; i < stop; i += step)."""
        counter = self.variable("i64", str(start))
        head, body, after = (self._label(name) for name in ("head", "body", "after"))
        self.do(f"br label %{head}\n{head}:")
        i = self.get(counter, "i64")
        more = self.let(f"icmp slt i64 {i}, {stop}")
        self.do(f"br i1 {more}, label %{body}, label %{after}\n{body}:")
        yield i
        self.set(counter, "i64", self.integer("add nsw", i, step))
        self.do(f"br label %{head}\n{after}:")

    @contextmanager
    def unless(self, condition: str) -> Iterator[None]:
        """Write if (not condition)."""
        with self.when(self.let(f"xor i1 {condition}, true")):
            yield

    @contextmanager
    def repeat(self) -> Iterator[Callable[[str], None]]:
        """while (true). Call the value with a condition, also in loops within, and the loop ends where that is false."""
        head, after = self._label("head"), self._label("after")

        def go_on_if(condition: str) -> None:
            body = self._label("body")
            self.do(f"br i1 {condition}, label %{body}, label %{after}\n{body}:")

        self.do(f"br label %{head}\n{head}:")
        yield go_on_if
        self.do(f"br label %{head}\n{after}:")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Write if (condition)."""
        then, after = self._label("then"), self._label("after")
        self.do(f"br i1 {condition}, label %{then}, label %{after}\n{then}:")
        yield
        self.do(f"br label %{after}\n{after}:")


class Body(Structured):
    """Writes the body of a function of the host, with memory."""

    def room(self, nbytes: int) -> str:
        """Return the address of new memory, not initialized."""
        name = f"%c{len(self.variables)}"
        self.variables.append(f"{name} = alloca [{nbytes} x i8], align 64")
        return name

    def zeros(self, nbytes: int) -> str:
        """Return the address of new memory, set to zero."""
        self.clear(name := self.room(nbytes), nbytes)
        return name

    def clear(self, address: str, nbytes: str | int) -> None:
        """Set memory to zero.

        It calls memset, because LLVM splits a store of an array into its bytes, and then takes seconds to compile them.
        """
        self.declarations.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        self.do(f"call void @llvm.memset.p0.i64(ptr {address}, i8 0, i64 {nbytes}, i1 false)")

    def at(self, base: str, nbytes: str | int) -> str:
        """Return the address `nbytes` beyond `base`."""
        return self.let(f"getelementptr i8, ptr {base}, i64 {nbytes}")

    def place(self, base: str, *steps: tuple[str | int, str | int]) -> str:
        """Return the address `index * nbytes` beyond `base`, for each (index, nbytes) of the steps."""
        for index, nbytes in steps:
            base = self.at(base, self.integer("mul", index, nbytes))
        return base

    def pointer(self, word: str) -> str:
        """The address that an int64 holds."""
        return self.let(f"inttoptr i64 {word} to ptr")

    def load(self, kind: str, address: str) -> str:
        return self.let(f"load {kind}, ptr {address}")

    def words(self, base: str, *span: int, kind: str = "i64") -> list[str]:
        """The int64 at an address whose numbers are in range(*span)."""
        return [self.load(kind, self.at(base, 8 * k)) for k in range(*span)]

    def fields(self, base: str, names: Sequence[str], kind: str = "i64") -> dict[str, str]:
        """Return the first int64 at an address, by names."""
        return dict(zip(names, self.words(base, len(names), kind=kind), strict=True))

    def operands(self, *span: int) -> list[str]:
        """The addresses of the operands of a loop whose numbers are in range(*span)."""
        return self.words("%operands", *span, kind="ptr")

    def meta(self, *span: int) -> list[str]:
        """The words of the meta of a loop whose numbers are in range(*span)."""
        return self.words("%meta", *span)


def function(
    name: str,
    parameters: str,
    declarations: set[str],
    write: Callable[[Body], str | None],
    linkage: str = "",
    result: str = "void",
    inline: bool = False,
) -> str:
    """A function whose body `write` fills in; it returns the value to return, if there is one.

    Internal functions are not inlined, because each contains one hot loop, unless `inline`.
    """
    body = Body(declarations)
    returned = f"ret {result} {write(body) or ''}".rstrip()
    lines = "\n".join([*body.variables, *body.lines])
    attributes = "noinline #0" if linkage == "internal" and not inline else "#0"
    return f"define {linkage} {result} @{name}({parameters}) {attributes} {{\nentry:\n{lines}\n{returned}\n}}"


def each_height(b: Body, rows: str, heights: Sequence[int], write: Callable[[str, int], None]) -> None:
    """Write code for all rows in tiles of falling heights: for the first row of a tile, and its height."""
    done = b.variable("i64", "0")
    for height in heights:
        with b.loop(b.get(done, "i64"), b.integer("sub", rows, height - 1), height) as m:
            write(m, height)
            b.set(done, "i64", b.integer("add", m, height))
