"""Names that a misspelt one may stand for.

A function that names all its parameters leaves unknown keywords to Python, and from version 3.13 on Python's own error names the
nearest parameter. A parameter `**others` would tell earlier versions too, but each right call would pay for its dict. So would
constructors for a `__new__` that looks at the keywords: SGD took 3.9 us with one and 3.3 without (AMD EPYC).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable

# Names of NumPy, of other libraries and of PyTorch's other functions -> what the parameter may be called here.
_OTHER_NAMES = {
    "axis": ("dim", "dims"),
    "axes": ("dim", "dims"),
    "dims": ("dim",),
    "keepdims": ("keepdim",),
    "keep_dims": ("keepdim",),
    "ddof": ("correction",),
    "prob": ("p",),
}


def note_parameter(error: TypeError, function: Callable) -> None:
    """Add the parameter of `function` with the nearest name to the error about an unknown keyword.

    >>> error = TypeError("sum() got an unexpected keyword argument 'dims'")
    >>> note_parameter(error, lambda input, dim, keepdim: None)
    >>> error.__notes__
    ["the nearest parameter is 'dim'"]
    """
    _, found, rest = str(error).partition("got an unexpected keyword argument '")
    if found and rest.endswith("'") and not hasattr(error, "__notes__"):  # Python 3.13 adds a name itself
        parameters = inspect.signature(function).parameters.values()
        note_nearest(error, rest[:-1], [each.name for each in parameters if each.kind not in _STARS])


_STARS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def unknown_keyword(function: str, keyword: str, parameters: Iterable[str]) -> TypeError:
    """The error about a keyword that is no parameter of the function; a note names the nearest parameter."""
    error = TypeError(f"{function}() got an unexpected keyword argument '{keyword}'")
    note_nearest(error, keyword, parameters)
    return error


def note_nearest(error: Exception, keyword: str, parameters: Iterable[str]) -> None:
    """Add a note with the parameter that the keyword may stand for, if there is one."""
    from difflib import get_close_matches  # only mistakes need it

    names = [name for name in parameters if name != keyword]
    meant = [name for name in _OTHER_NAMES.get(keyword, ()) if name in names]
    if nearest := meant or get_close_matches(keyword, names, 1):
        error.add_note(f"the nearest parameter is {nearest[0]!r}")
