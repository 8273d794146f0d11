"""Signatures that end with any number of arguments of a type."""

from __future__ import annotations

from typing import Any

from .utils import typename

__all__ = ["Variadic", "VariadicSignatureMeta", "VariadicSignatureType", "isvariadic"]


class VariadicSignatureType(type):
    """The class of `Variadic[int]`."""

    variadic_type: tuple

    def __subclasscheck__(cls, subclass: type) -> bool:
        others = subclass.variadic_type if isvariadic(subclass) else (subclass,)  # type: ignore[attr-defined]
        return subclass is cls or all(issubclass(each, cls.variadic_type) for each in others)

    def __eq__(cls, other: object) -> bool:
        return isvariadic(other) and set(cls.variadic_type) == set(other.variadic_type)  # type: ignore[attr-defined]

    def __hash__(cls) -> int:
        return hash((type(cls), frozenset(cls.variadic_type)))


def isvariadic(obj: Any) -> bool:
    """Whether it is a `Variadic[...]`."""
    return isinstance(obj, VariadicSignatureType)


class VariadicSignatureMeta(type):
    """The class of `Variadic`, which makes `Variadic[int]`."""

    def __getitem__(cls, variadic_type: Any) -> Any:
        if not (isinstance(variadic_type, (type, tuple)) or type(variadic_type)):
            raise ValueError(
                "Variadic types must be type or tuple of types (Variadic[int] or Variadic[(int, float)]"
            )
        if not isinstance(variadic_type, tuple):
            variadic_type = (variadic_type,)
        return VariadicSignatureType(
            f"Variadic[{typename(variadic_type)}]", (), {"variadic_type": variadic_type, "__slots__": ()}
        )


class Variadic(metaclass=VariadicSignatureMeta):
    """`Variadic[int]` at the end of a signature stands for any number of ints."""
