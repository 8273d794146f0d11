"""Which of several signatures is the most special one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .utils import _toposort, groupby
from .variadic import isvariadic

__all__ = [
    "AmbiguityWarning", "ambiguities", "ambiguous", "consistent", "edge", "ordering", "super_signature",
    "supercedes",
]  # fmt: skip


class AmbiguityWarning(Warning):
    """Two signatures fit the same arguments, and none of them is more special."""


def supercedes(a: Any, b: Any) -> bool:
    """Whether signature `a` is at least as special as `b`, and consistent with it."""
    if len(a) < len(b):
        return len(a) == 0 and len(b) == 1 and isvariadic(b[-1])
    if len(a) == len(b):
        return all(map(issubclass, a, b))
    # The last type of `b` stands for all further ones of `a`.
    if b and isvariadic(b[-1]):
        return all(issubclass(kind, b[min(place, len(b) - 1)]) for place, kind in enumerate(a))
    return False


def consistent(a: Any, b: Any) -> bool:
    """Whether there may be arguments that fit both signatures."""
    if not a:
        return not b or isvariadic(b[0])
    if not b:
        return not a or isvariadic(a[0])
    if len(a) == len(b):
        return all(issubclass(one, other) or issubclass(other, one) for one, other in zip(a, b))
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    if not isvariadic(shorter[-1]):
        return False
    return all(
        issubclass(kind, shorter[min(place, len(shorter) - 1)])
        or issubclass(shorter[min(place, len(shorter) - 1)], kind)
        for place, kind in enumerate(longer)
    )


def ambiguous(a: Any, b: Any) -> bool:
    """Whether both may fit, and none is more special."""
    return consistent(a, b) and not (supercedes(a, b) or supercedes(b, a))


def ambiguities(signatures: Any) -> set[tuple]:
    """The pairs of signatures that are ambiguous, unless a third one settles it."""
    signatures = list(map(tuple, signatures))
    return {
        (a, b)
        for a in signatures
        for b in signatures
        if hash(a) < hash(b)
        and ambiguous(a, b)
        and not any(supercedes(c, a) and supercedes(c, b) for c in signatures)
    }


def super_signature(signatures: Any) -> list[Any]:
    """A signature that settles ambiguities between these."""
    length = len(signatures[0])
    if not all(len(each) == length for each in signatures):
        raise AssertionError("All signatures must have the same length")
    return [max((type.mro(each[place]) for each in signatures), key=len)[0] for place in range(length)]


def edge(a: Any, b: Any, tie_breaker: Callable[[Any], Any] = hash) -> bool:
    """Whether `a` is to be tried before `b`."""
    return supercedes(a, b) and (not supercedes(b, a) or tie_breaker(a) > tie_breaker(b))


def ordering(signatures: Any) -> list[Any]:
    """The signatures, each before those that it is more special than."""
    signatures = list(map(tuple, signatures))
    pairs = [(a, b) for a in signatures for b in signatures if a != b and edge(a, b)]
    grouped = groupby(lambda pair: pair[0], pairs)
    edges = {each: [b for _, b in grouped.get(each, [])] for each in signatures}
    return _toposort(edges)
