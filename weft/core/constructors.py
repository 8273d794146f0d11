"""Errors about the arguments of a constructor name the class that was called, also if it inherits the constructor."""

from __future__ import annotations

from types import FunctionType
from typing import Any


def name_constructor(cls: type) -> None:
    """Give a public class of weft a constructor of its own name, if it inherits one.

    Python takes the name in errors from the function, so the class gets a copy of it, which costs a call nothing. Classes of programs
    keep what they inherit.

    >>> import weft
    >>> weft.distributions.Normal(0.0, 1.0, validate=True)
    Traceback (most recent call last):
        ...
    TypeError: Normal.__init__() got an unexpected keyword argument 'validate'
    """
    inherited = cls.__init__  # type: ignore[misc]
    if (
        "__init__" not in vars(cls)
        and cls.__name__[0] != "_"
        and type(inherited) is FunctionType
        and all(each.startswith("weft.") for each in (cls.__module__, inherited.__module__))
    ):
        own = FunctionType(
            inherited.__code__,
            inherited.__globals__,
            "__init__",
            inherited.__defaults__,
            inherited.__closure__,
        )
        own.__kwdefaults__, own.__annotations__ = inherited.__kwdefaults__, inherited.__annotations__
        own.__qualname__, own.__module__ = f"{cls.__qualname__}.__init__", inherited.__module__
        cls.__init__ = own  # type: ignore[misc]


def constructor(cls: type) -> Any:
    """What the constructor of a class does: equal for classes that inherit it and have it under their own name.

    >>> import weft
    >>> constructor(weft.distributions.Normal) is constructor(weft.distributions.Laplace)
    True
    """
    function = cls.__init__  # type: ignore[misc]
    return getattr(function, "__code__", function)
