"""Sources: LLVM IR that is written only if it must be compiled.

Writing and hashing the IR of a kernel takes 0.1 to 1 ms. So the disk cache has the machine code under the *description* of the kernel: the
dtypes, expressions and classes of strides that the IR follows from, and the fingerprint of the code that writes it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core.dtype import DType
from .archive import sha256
from .expr import Expr, postorder


class Source:
    """The IR that `write(kernel)` returns. It follows from the kernel, whose parts `describe` knows, and from the code of `_WRITERS`.

    `baseline`: gives a Source, from the kernel, of a function that computes the same bits, and that LLVM compiles sooner without passes.
    """

    __slots__ = ("write", "kernel", "_baseline", "_description")

    def __init__(
        self, write: Callable[[Any], str], kernel: Any, baseline: Callable[[Any], Source] | None = None
    ):
        self.write, self.kernel, self._baseline = write, kernel, baseline
        self._description = b""

    def text(self) -> str:
        return self.write(self.kernel)

    def baseline(self) -> Source:
        return self if self._baseline is None else self._baseline(self.kernel)

    def description(self) -> bytes:
        """A hash of all that the IR follows from."""
        if not self._description:
            try:
                text = f"{fingerprint()}{self.write.__qualname__}{describe(self.kernel)}"
            except TypeError:
                text = self.text()
            self._description = sha256(text.encode())
        return self._description


def source_of(
    write: Callable[[Any], str], baseline: Callable[[Any], Source] | None = None
) -> Callable[[Any], Any]:
    """A function that returns the Source of a kernel in the place of its text.

    The type of the result is Any, because callers pass the IR on without looking at it.
    """

    @functools.wraps(write)
    def source(kernel: Any) -> Source:
        return Source(write, kernel, baseline)

    return source


def describe(value: Any) -> str:
    """Text that is the same in each process, and is different for values that differ."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return repr(value)
    if kind is DType:
        return value.name
    if kind is Expr:
        return value.digest or digest(value)
    if isinstance(value, tuple):
        return f"{kind.__name__}({','.join([describe(each) for each in value])})"
    raise TypeError(f"{kind.__name__} has no description")


def digest(expr: Expr) -> str:
    """Return a hash of the graph below a node."""
    for each in [each for each in postorder((expr,)) if not each.digest] if not expr.digest else ():
        operands = ",".join([arg.digest for arg in each.args])
        text = f"{each.op}:{each.dtype.name}:{describe(each.value)}:{operands}"
        each.digest = sha256(text.encode()).hex()
    return expr.digest


# The modules of weft that write IR, and all that they import: a change of one of them makes old descriptions void.
_WRITERS = (
    "../core/dtype", "../core/file_locks", "../core/locks", "../core/settings", "archive", "bounds", "code_memory", "diskcache", "expr", "host", "image", "llvm", "loops",
    "map_rows", "monoid", "nests", "reduce", "scan", "source", "structured", "vectors",
)  # fmt: skip


@functools.cache
def fingerprint() -> str:
    """A hash of the code that writes IR."""
    here = Path(__file__).parent
    return sha256(b"\0".join((here / f"{name}.py").read_bytes() for name in _WRITERS)).hex()
