"""Names that a misspelt one may stand for.

A function that names all its parameters leaves unknown keywords to Python, and from version 3.13 on Python's own error names the
nearest parameter. A parameter `**others` would tell earlier versions too, but each right call would pay for its dict. So would
constructors for a `__new__` that looks at the keywords: SGD took 3.9 us with one and 3.3 without (AMD EPYC). So the errors of
constructors, methods and functions without an entry get their note when a report is about to show them (`note_called`).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType

# Names of NumPy, of other libraries and of PyTorch's other functions -> what the parameter may be called here.
_OTHER_NAMES = {
    "axis": ("dim", "dims"),
    "axes": ("dim", "dims"),
    "dims": ("dim",),
    "keepdims": ("keepdim",),
    "keep_dims": ("keepdim",),
    "ddof": ("correction",),
    "prob": ("p",),
    "learning_rate": ("lr",),
    "mean": ("loc",),
    "std": ("scale",),
    "shape": ("size",),
    "size": ("shape",),
}


def note_parameter(error: TypeError, function: Callable, public_name: str = "") -> None:
    """Add the parameter of `function` with the nearest name to the error about an unknown keyword.

    public_name: what the error calls the function instead of `function.__name__`.

    >>> error = TypeError("sum() got an unexpected keyword argument 'dims'")
    >>> note_parameter(error, lambda input, dim, keepdim: None)
    >>> error.__notes__
    ["the nearest parameter is 'dim'"]
    """
    _, found, rest = str(error).partition("got an unexpected keyword argument '")
    if found and rest.endswith("'") and not _has_nearest(error):  # Python 3.13 adds a name itself
        parameters = inspect.signature(function).parameters.values()
        note_nearest(error, rest[:-1], [each.name for each in parameters if each.kind not in _STARS])
    if found and public_name:
        error.args = (str(error).replace(f"{function.__name__}()", f"{public_name}()", 1),)


def note_called(error: BaseException) -> None:
    """As `note_parameter`, for a function or a constructor of weft that the text of the error names, if the error is about a keyword.

    >>> import weft
    >>> try:
    ...     weft.nn.Linear(in_feature=3, out_features=4)
    ... except TypeError as problem:
    ...     note_called(problem)
    ...     print(problem.__notes__)
    ["the nearest parameter is 'in_features'"]
    """
    if type(error) is not TypeError or error.__traceback__ is None:
        return
    name, found, _ = str(error).partition("() got an unexpected keyword argument '")
    if found and not _has_nearest(error):
        for function in _called(name, error.__traceback__):
            note_parameter(error, function)


def _has_nearest(error: BaseException) -> bool:
    return any(note.startswith(_NEAREST) for note in getattr(error, "__notes__", ()))


_NEAREST = "the nearest parameter is"


def _called(name: str, traceback: TracebackType) -> Iterator[Callable]:
    """The functions of weft with this qualified name, unless the program has something else by its first name."""
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    first, *others = name.split(".")
    frame = traceback.tb_frame
    own = frame.f_locals.get(first, frame.f_globals.get(first))
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        found = names.get(first)
        if not str(names.get("__name__")).startswith(("weft", "torch")) or own not in (None, found):
            continue
        for each in others:
            found = getattr(found, each, None)
        if callable(found) and (getattr(found, "__qualname__", "") == name or not others):
            yield found


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
    swapped = [name for name in names if sorted(name) == sorted(keyword)]
    if nearest := meant or swapped or get_close_matches(keyword, names, 1):
        error.add_note(f"{_NEAREST} {nearest[0]!r}")
