"""Integers that callers pass as dimensions and sizes."""

from __future__ import annotations

import operator
from typing import Any


def integer(value: Any, function: str, argument: str) -> int:
    """`value` as an int: ints, NumPy's integers and integer tensors of one element are.

    Raises: TypeError for everything else, bools included.
    """
    if type(value) is int:
        return value
    if not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(f"{function}(): argument '{argument}' must be int, not {type(value).__name__}")


def integers(values: tuple, function: str, argument: str) -> tuple[int, ...]:
    """The ints of (2, 3), ((2, 3),) or ([2, 3],): what `*values` or one sequence gives.

    Raises: TypeError if an element is no integer.
    """
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = tuple(values[0])
    for value in values:
        if type(value) is not int:
            break
    else:
        return values
    return tuple([integer(value, function, argument) for value in values])
