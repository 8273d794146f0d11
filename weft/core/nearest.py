"""Names that a misspelt one may stand for."""

from __future__ import annotations

import inspect
from collections.abc import Callable


def note_parameter(error: TypeError, function: Callable) -> None:
    """Add the parameter of `function` with the nearest name to the error about an unknown keyword.

    >>> error = TypeError("sum() got an unexpected keyword argument 'dims'")
    >>> note_parameter(error, lambda input, dim, keepdim: None)
    >>> error.__notes__
    ["the nearest parameter is 'dim'"]
    """
    _, found, rest = str(error).partition("got an unexpected keyword argument '")
    if not found:
        return
    from difflib import get_close_matches  # only mistakes need it

    nearest = get_close_matches(rest.rstrip("'"), inspect.signature(function).parameters, 1)
    if nearest:
        error.add_note(f"the nearest parameter is {nearest[0]!r}")
