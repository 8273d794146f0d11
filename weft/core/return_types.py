"""Named tuples for results with several tensors, `torch.return_types`, as in `torch.max(t, 0).values`."""

from __future__ import annotations

import functools
import operator
from typing import Any

from .names import ROOT

MODULE = f"{ROOT}.return_types"  # the public module of the types

# Name -> type, the content of the module `torch.return_types`.
TYPES: dict[str, type] = {}


class _Meta(type):
    """Metaclass of types that print like built-in types and cannot be subclassed, like PyTorch's structseq types."""

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"

    def __new__(meta, name: str, bases: tuple, namespace: dict):
        for base in bases:
            if isinstance(base, _Meta) and base is not ReturnType:
                raise TypeError(f"type '{base.__module__}.{base.__name__}' is not an acceptable base type")
        return super().__new__(meta, name, bases, namespace)


class ReturnType(tuple, metaclass=_Meta):
    """A tuple whose elements are also attributes. Create one with `return_type(name, fields)(values)`."""

    __slots__ = ()
    __module__ = MODULE
    __match_args__: tuple[str, ...] = ()
    n_fields = n_sequence_fields = n_unnamed_fields = 0

    def __new__(cls, sequence: Any, dict: Any = None):
        try:
            self = tuple.__new__(cls, sequence)
        except TypeError:
            raise TypeError("constructor requires a sequence") from None
        if len(self) != cls.n_fields:
            raise TypeError(
                f"torch.return_types.{cls.__name__}() takes a {cls.n_fields}-sequence ({len(self)}-sequence given)"
            )
        return self

    def __repr__(self) -> str:
        fields = ",\n".join(
            f"{name}={value!r}" for name, value in zip(self.__match_args__, self, strict=True)
        )
        return f"torch.return_types.{type(self).__name__}(\n{fields})"

    def __reduce__(self):
        return _rebuild, (type(self).__name__, self.__match_args__, tuple(self))


@functools.cache
def return_type(name: str, fields: tuple[str, ...]) -> type:
    """Create the tuple type `torch.return_types.<name>` with these fields. Its constructor takes a sequence of values.

    >>> found = return_type("max", ("values", "indices"))((1.5, 2))
    >>> found.values, found[1]
    (1.5, 2)
    >>> found
    torch.return_types.max(
    values=1.5,
    indices=2)
    """
    getters = {field: property(operator.itemgetter(i)) for i, field in enumerate(fields)}
    counts = {"n_fields": len(fields), "n_sequence_fields": len(fields), "__match_args__": fields}
    found = TYPES[name] = _Meta(
        name, (ReturnType,), {"__slots__": (), "__module__": MODULE, **counts, **getters}
    )
    return found


def _rebuild(name: str, fields: tuple[str, ...], values: tuple) -> Any:
    return return_type(name, fields)(values)
