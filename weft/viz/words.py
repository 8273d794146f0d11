"""Sizes, values and shapes as short text for pictures."""

from __future__ import annotations

import math
from typing import Any


def of_bytes(count: float) -> str:
    """A number of bytes with a decimal unit.

    >>> of_bytes(48), of_bytes(1_250_000)
    ('48 bytes', '1.25 MB')
    """
    if count < 1000:
        return f"{count:.0f} byte{'' if count == 1 else 's'}"
    return f"{with_suffix(count)}B"


def with_suffix(count: float) -> str:
    """A number with three digits and a decimal suffix.

    >>> with_suffix(999), with_suffix(1536), with_suffix(2.5e9)
    ('999', '1.54 k', '2.5 G')
    """
    if count < 1000:
        return f"{count:.0f}"
    place = min(5, int(math.log10(count)) // 3)
    if float(f"{count / 1000**place:.3g}") >= 1000 and place < 5:  # 999,999 is 1 M
        place += 1
    return f"{float(f'{count / 1000**place:.3g}'):g} {'kMGTP'[place - 1]}"


def of_shape(shape: Any) -> str:
    """A shape as PyTorch's users write it: (2, 3)."""
    return str(tuple(shape))


def of_value(value: Any) -> str:
    """An element in at most about eight characters. A float that is a whole number ends with a point.

    >>> [of_value(each) for each in (3, 3.0, 0.12345678, 1e10, True, float("nan"))]
    ['3', '3.', '0.1235', '1e+10', 'True', 'nan']
    """
    if isinstance(value, complex):
        return f"{value.real:.3g}{value.imag:+.3g}j"
    if isinstance(value, float):
        text = f"{value:.4g}"
        return text + "." if text.lstrip("-").isdigit() else text
    return str(value)


def clip(text: str, most: int) -> str:
    """The text, cut after `most` characters.

    >>> clip("a long name", 7)
    'a long…'
    """
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def clip_start(text: str, most: int) -> str:
    """The last `most` characters, because the ends of the names of parameters differ.

    >>> clip_start("layers.7.linear1.weight", 12)
    '…near1.weight'
    """
    return text if len(text) <= most else "…" + text[-most:]


def plural(count: int, noun: str) -> str:
    """The number and the noun.

    >>> plural(1, "kernel"), plural(2000, "kernel"), plural(2, "matrix")
    ('1 kernel', '2,000 kernels', '2 matrices')
    """
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1] + 'ces' if noun.endswith('x') else noun + 's'}"
