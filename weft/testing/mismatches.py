"""What the comparisons of `testing` report, and the tolerances that they use unless the caller gives some."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import weft

from ..core.dtype import (
    DType,
    bfloat16,
    complex32,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    qint8,
    qint32,
    quint4x2,
    quint8,
)
from ..core.tensor import Tensor

# dtype -> (rtol, atol); all others have to be equal. Quantized tensors are compared after they were dequantized to float32.
_TOLERANCES = {
    float16: (1e-3, 1e-5),
    bfloat16: (1.6e-2, 1e-5),
    float32: (1.3e-6, 1e-5),
    float64: (1e-7, 1e-7),
    complex32: (1e-3, 1e-5),
    complex64: (1.3e-6, 1e-5),
    complex128: (1e-7, 1e-7),
    **dict.fromkeys((quint8, quint4x2, qint8, qint32), (1.3e-6, 1e-5)),
}
Identifier = str | Callable[[str], str] | None


class ErrorMeta(Exception):
    """A mismatch before it becomes the user's exception: its type, its message and the item in which it was found."""

    def __init__(self, type: type[Exception], msg: str, *, id: tuple[Any, ...] = ()):
        super().__init__("weft.testing should have converted this with to_error()")
        self.type = type
        self.msg = msg
        self.id = id

    def to_error(self, msg: str | Callable[[str], str] | None = None) -> Exception:
        """The exception to raise, with `msg` instead of the usual message, or with what `msg` makes of that."""
        if isinstance(msg, str):
            return self.type(msg)
        usual = self.msg
        if self.id:
            usual += f"\n\nThe failure occurred for item {item_of(self.id)}"
        return self.type(usual if msg is None else msg(usual))


def item_of(id: tuple[Any, ...]) -> str:
    """How messages write the place of an item in nested containers.

    >>> item_of(("weights", 0))
    "['weights'][0]"
    """
    return "".join(f"[{key!r}]" for key in id)


def default_tolerances(
    *inputs: Tensor | DType, dtype_precisions: Mapping[DType, tuple[float, float]] | None = None
) -> tuple[float, float]:
    """The largest rtol and the largest atol of the dtypes of `inputs`, which are tensors or dtypes.

    >>> default_tolerances(float32, float64)
    (1.3e-06, 1e-05)
    """
    table = dtype_precisions or _TOLERANCES
    tolerances = [table.get(_dtype(each), (0.0, 0.0)) for each in inputs]
    return max(rtol for rtol, _ in tolerances), max(atol for _, atol in tolerances)


def _dtype(value: Any) -> DType:
    if isinstance(value, Tensor):
        return value.dtype
    if isinstance(value, DType):
        return value
    raise TypeError(f"Expected a torch.Tensor or a torch.dtype, but got {type(value)} instead.")


def get_tolerances(
    *inputs: Tensor | DType, rtol: float | None, atol: float | None, id: tuple[Any, ...] = ()
) -> tuple[float, float]:
    """rtol and atol if both are given, else those of the dtypes.

    Raises: ErrorMeta of a ValueError if only one is given, because the default of the other would surprise.
    """
    if rtol is None and atol is None:
        return default_tolerances(*inputs)
    if rtol is None or atol is None:
        missing = "rtol" if rtol is None else "atol"
        message = f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
        raise ErrorMeta(ValueError, message, id=id)
    return rtol, atol


def make_scalar_mismatch_msg(
    actual: complex, expected: complex, *, rtol: float, atol: float, identifier: Identifier = None
) -> str:
    """The message about two numbers that are not close."""
    distance = abs(actual - expected)
    relative = distance / abs(expected) if expected else float("inf")
    exact = not rtol and not atol
    return "\n".join(
        [
            f"{_name('Scalars', identifier)} are not {'equal' if exact else 'close'}!\n",
            f"Expected {expected} but got {actual}.",
            f"Absolute difference: {distance}{_limit(atol, exact)}",
            f"Relative difference: {relative}{_limit(rtol, exact)}",
        ]
    )


def make_tensor_mismatch_msg(
    actual: Tensor,
    expected: Tensor,
    matches: Tensor,
    *,
    rtol: float,
    atol: float,
    identifier: Identifier = None,
) -> str:
    """The message about two tensors of one shape of which not all elements match: how many, and the greatest differences."""
    name = _name("Tensor-likes", identifier)
    missed, total = int((~matches).sum()), matches.numel()
    count = f"Mismatched elements: {missed} / {total} ({missed / total:.1%})"
    if actual.dtype.is_floating_point and actual.dtype.itemsize == 1:  # numbers of 8 bits have no differences
        first = tuple((~matches).nonzero()[0].tolist())
        return f"{name} are not 'equal'!\n\n{count}\nThe first mismatched element is at index {first}."
    if not actual.is_floating_point() and not actual.is_complex():
        actual, expected = actual.to(weft.int64), expected.to(weft.int64)
    distance = (actual - expected).abs()
    distance[matches] = 0  # as for infinities that are equal
    relative = distance / expected.abs()
    relative[matches] = 0
    exact = not rtol and not atol
    lines = [f"{name} are not {'equal' if exact else 'close'}!\n", count]
    for kind, values, limit in (("absolute", distance, atol), ("relative", relative, rtol)):
        largest, position = values.flatten().max(0)
        index = tuple(int(i) for i in np.unravel_index(int(position), tuple(values.shape)))
        lines.append(f"Greatest {kind} difference: {largest.item()} at index {index}{_limit(limit, exact)}")
    return "\n".join(lines)


def _name(usual: str, identifier: Identifier) -> str:
    """What the message calls the values: the caller's name, or what the caller makes of the usual one."""
    return usual if identifier is None else identifier(usual) if callable(identifier) else identifier


def _limit(tolerance: float, exact: bool) -> str:
    return "" if exact else f" (up to {tolerance} allowed)"
