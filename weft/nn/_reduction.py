"""Gives the reductions of losses as numbers and as arguments of old programs. Libraries import it as `_Reduction`."""

from __future__ import annotations

import warnings

from ..core.warn import user_level
from ..ops.nn.losses.arguments import reduction_of

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """Return the number that operators take for "none", "mean" or "sum".

    >>> get_enum("none"), get_enum("mean"), get_enum("sum")
    (0, 1, 2)

    Raises: ValueError for other words.
    """
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=user_level(),
        )
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Return the reduction that the arguments `size_average` and `reduce` of old programs mean."""
    size_average, reduce = size_average is not False, reduce is not False
    with warnings.catch_warnings():
        if not emit_warning:
            warnings.simplefilter("ignore")
        return reduction_of("mean", size_average, reduce)


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """Return the number of the reduction that `size_average` and `reduce` mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
