"""Sources: LLVM IR that is written only if it must be compiled.

Writing and hashing the IR of a kernel takes 0.1 to 1 ms. So the disk cache also has the digest of the IR under the *description* of the
kernel: the names, dtypes and expressions that the IR follows from. The description contains the fingerprint of weft's own code, so a
changed version of weft writes the IR again. If the text is the same as before, the machine code is found all the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core import dtype
from ..core.dtype import DType
from .archive import sha256
from .expr import Expr, postorder


class Source:
    """The IR that `write(kernel)` returns. It follows from the kernel, whose parts `describe` knows, and from weft's code."""

    __slots__ = ("write", "kernel", "known")

    def __init__(self, write: Callable[[Any], str], kernel: Any):
        self.write, self.kernel = write, kernel
        self.known: bytes | None = None  # the digest of the text, when somebody has asked for it

    def text(self) -> str:
        return self.write(self.kernel)

    def key(self) -> bytes:
        """The key of the digest in the disk cache."""
        return sha256(f"{fingerprint()}{self.write.__qualname__}{describe(self.kernel)}".encode())


def source_of(write: Callable[[Any], str]) -> Callable[[Any], Any]:
    """A function that returns the Source of a kernel in the place of its text.

    The type of the result is Any, because callers pass the IR on without looking at it.
    """

    @functools.wraps(write)
    def source(kernel: Any) -> Source:
        return Source(write, kernel)

    return source


def describe(value: Any) -> str:
    """Text that is the same in each process, and is different for values that differ."""
    if isinstance(value, Expr):
        return digest(value)
    if isinstance(value, DType):
        return value.name
    if isinstance(value, tuple):
        return f"{type(value).__name__}({','.join(map(describe, value))})"
    if value is None or isinstance(value, (bool, int, str)):
        return repr(value)
    raise TypeError(f"{type(value).__name__} has no description")


def digest(expr: Expr) -> str:
    """A hash of the graph below a node."""
    if not expr.digest:
        for each in postorder((expr,)):
            if not each.digest:
                value = describe(each.value)
                text = f"{each.op}:{each.dtype.name}:{value}:{','.join([arg.digest for arg in each.args])}"
                each.digest = sha256(text.encode()).hex()
    return expr.digest


@functools.cache
def fingerprint() -> str:
    """A hash of the code that writes IR."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return sha256(b"\0".join(file.read_bytes() for file in [Path(dtype.__file__), *files])).hex()
