"""Sizes that may be symbols: `torch.sym_int`, `torch.SymInt` and their relatives.

Tracers compute with symbols in the place of sizes: the symbols of `torch.export` are instances of `torch.SymInt` and
`torch.SymFloat`. Outside of tracing, these functions get Python's numbers and compute with them.

>>> import weft as torch
>>> torch.sym_int(2.7), torch.sym_max(1, 2.5), isinstance(3, torch.SymInt)
(2, 2.5, False)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core.names import named
from ...core.registry import add_function


class _Symbol:
    """What SymInt, SymFloat and SymBool share: the node of a graph that computes them."""

    def __init__(self, node: Any):
        self.node = node

    def conjugate(self) -> Any:
        """The symbol itself, which is real."""
        return self


class SymInt(_Symbol):
    """An integer that is not known while a program is traced."""

    def as_integer_ratio(self) -> tuple[SymInt, int]:
        """Return the symbol and 1."""
        return self, 1

    def bit_length(self) -> int:
        """The number of bits of the value, if it is known."""
        return int(self.node).bit_length()


class SymFloat(_Symbol):
    """A float that is not known while a program is traced."""

    def as_integer_ratio(self) -> tuple[int, int]:
        """The value as a fraction, if it is known."""
        return float(self.node).as_integer_ratio()

    def is_integer(self) -> bool:
        """Whether the value is whole, if it is known."""
        return float(self.node).is_integer()

    def hex(self) -> str:
        """The value in hexadecimal, if it is known."""
        return float(self.node).hex()


class SymBool(_Symbol):
    """A truth value that is not known while a program is traced. weft makes none, so nothing is an instance."""


def sym_int(a: Any) -> int:
    """Return `a` as an int, rounded towards zero."""
    return math.trunc(a) if isinstance(a, float) else int(a)


def sym_float(a: Any) -> float:
    """Return `a` as a float."""
    return float(a)


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers; a float if one of them is."""
    return _like_both(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers; a float if one of them is."""
    return _like_both(min(a, b), a, b)


def _like_both(value: Any, a: Any, b: Any) -> Any:
    return float(value) if isinstance(a, float) or isinstance(b, float) else value


def sym_not(a: Any) -> bool:
    """Compute `not a`."""
    return not a


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t` if `b` else `f`; both must be of one type."""
    assert isinstance(b, bool), f"expected SymBool or bool, got {type(b)}"
    assert type(t) is type(f), f"expected two values of one type, got {type(t)} and {type(f)}"
    return t if b else f


def sym_sum(*args: Any) -> Any:
    """Return the sum of numbers, given one by one or as one sequence."""
    numbers = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    return sum(numbers)


def sym_fresh_size(expr: Any) -> Any:
    """Return a new symbol for a size.

    Raises: NotImplementedError, because weft has no symbols.
    """
    raise NotImplementedError(f"torch.sym_fresh_size({expr!r}): weft has no symbolic sizes")


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Check that `size` lies between `min` and `max`.

    Raises: RuntimeError if it does not.
    """
    low, high = (-math.inf if min is None else min), (math.inf if max is None else max)
    if not low <= size <= high:
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


def sym_constrain_range_for_size(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """`sym_constrain_range` for sizes, which are 0 or more."""
    sym_constrain_range(size, min=0 if min is None else min, max=max)


def _math(name: str) -> Callable[[Any], float]:
    function = getattr(math, name)

    @named(f"_sym_{name}", function=name)
    def sym(a: Any) -> float:
        """Compute math.{function} of a number."""
        return function(a)

    return sym


sym_sqrt: Any = _math("sqrt")
_public: list[Any] = [
    SymInt, SymFloat, SymBool, sym_int, sym_float, sym_max, sym_min, sym_not, sym_ite, sym_sum, sym_fresh_size,
    sym_constrain_range, sym_constrain_range_for_size, *map(_math, "cos cosh sin sinh tan tanh asin acos atan log2".split()),
]  # fmt: skip
for _function in _public:
    add_function(_function.__name__, _function)
add_function("sym_sqrt", sym_sqrt)
add_function("_sym_sqrt", sym_sqrt)
