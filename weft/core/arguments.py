"""Conversion of static arguments: dimensions, sizes, numbers, bools and strings.

Each function converts an argument to one type, or raises PyTorch's TypeError. `core/checking.py` selects the function for each
parameter of a public function by its annotation.
"""

from __future__ import annotations

import numbers
import operator
from typing import Any

import numpy as np

from .symbols import Symbol


def wrong_type(value: Any, function: str, argument: str, wanted: str, position: int = 0) -> TypeError:
    """PyTorch's error. `position` counts from 1; it is 0 for keyword-only arguments."""
    where = f"'{argument}' (position {position})" if position else f"'{argument}'"
    return TypeError(f"{function}(): argument {where} must be {wanted}, not {type(value).__name__}")


def no_form(function: str, positional: tuple, named: dict[str, Any], *forms: str) -> TypeError:
    """PyTorch's error for arguments that fit none of the forms in which the function can be called.

    >>> print(no_form("randint", (10,), {}, "high, size", "low, high, size"))
    randint() received an invalid combination of arguments - got (int), but expected one of:
     * (high, size)
     * (low, high, size)
    """
    got = [type(value).__name__ for value in positional]
    got += [f"{name}={type(value).__name__}" for name, value in named.items()]
    accepted = "".join([f"\n * ({form})" for form in forms])
    return TypeError(
        f"{function}() received an invalid combination of arguments - got ({', '.join(got)}), but expected one of:{accepted}"
    )


def integer(value: Any, function: str, argument: str, position: int = 0) -> int:
    """`value` as an int. Accepts ints, integers of NumPy, and integer tensors with one element.

    Raises: TypeError for everything else, bools included.
    """
    if type(value) is not int and type(value) is not Symbol:
        if isinstance(value, bool):
            raise wrong_type(value, function, argument, "int", position)
        try:
            value = operator.index(value)
        except TypeError:
            raise wrong_type(value, function, argument, "int", position) from None
    return value


def integers(values: tuple, function: str, argument: str) -> tuple[int, ...]:
    """The ints in `values`, which callers pass either one by one or as one sequence: (2, 3), ((2, 3),) or ([2, 3],).

    Raises: TypeError if an element is not an integer, or if the first is a bool. As in PyTorch, later elements may be bools.
    """
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = tuple(values[0])
    for value in values:
        if type(value) is not int:
            break
    else:
        return values
    check_first(values, function, argument)
    return tuple(
        [int(each) if isinstance(each, bool) else integer(each, function, argument) for each in values]
    )


def check_first(values: tuple, function: str, argument: str) -> None:
    """Raises: TypeError if the first of several ints is a bool. PyTorch does not check the others."""
    if values and isinstance(values[0], bool):
        raise TypeError(
            f"{function}(): argument '{argument}' must be tuple of ints, but found element of type bool at pos 0"
        )


def number(value: Any, function: str, argument: str, position: int = 0) -> float:
    """`value` as a real number. Accepts ints, floats, bools, real numbers of NumPy, and real 0-dim tensors without gradient.

    Raises: TypeError for everything else, complex numbers included.
    """
    if type(value) in (float, int):
        return value
    if isinstance(value, (bool, numbers.Real, np.floating, np.integer, np.bool_)):
        return float(value)
    if hasattr(value, "dim") and value.dim() == 0 and not (value.is_complex() or value.requires_grad):
        return value.item()
    raise wrong_type(value, function, argument, "float", position)


def scalar(value: Any, function: str, argument: str, position: int = 0) -> complex:
    """`value` as a real or complex number. The op checks whether a dtype can represent the number.

    Raises: TypeError for everything else.
    """
    return value if type(value) is complex else number(value, function, argument, position)


def boolean(value: Any, function: str, argument: str, position: int = 0) -> bool:
    """`value` as a bool. Accepts bools, bools of NumPy, and 0-dim bool tensors.

    Raises: TypeError for everything else, ints included.
    """
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if hasattr(value, "dim") and value.dim() == 0 and str(value.dtype).endswith(".bool"):
        return value.item()
    raise wrong_type(value, function, argument, "bool", position)


def text(value: Any, function: str, argument: str, position: int = 0) -> str:
    """`value`, if it is a str.

    Raises: TypeError for everything else.
    """
    if isinstance(value, str):
        return value
    raise wrong_type(value, function, argument, "str", position)
