"""Types of tensors with their sizes, for annotations of graphs.

>>> TensorType((1, 2, Dyn))
TensorType[1, 2, Dyn]
>>> is_consistent(TensorType((1, 2)), TensorType((Dyn, 2)))
True
"""

from __future__ import annotations

from typing import Any

from ._compatibility import compatibility

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


@compatibility(is_backward_compatible=False)
class TensorType:
    """The type of tensors with these sizes; a size that is not known is `Dyn`."""

    def __init__(self, dim: tuple | list) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self) -> Any:
        return self.__args__

    def __repr__(self) -> str:
        return f"TensorType[{', '.join(map(repr, self.__args__))}]"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, self.__class__):
            return list(self.__args__) == list(other.__args__)
        return False

    @staticmethod
    def __class_getitem__(*args: Any) -> TensorType:
        if len(args) == 1 and isinstance(args[0], tuple):
            args = args[0]
        return TensorType(tuple(args))


class _DynType:
    """The type of what is not known."""

    def __init__(self) -> None:
        self.__name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, self.__class__)

    def __str__(self) -> str:
        return "Dyn"

    def __repr__(self) -> str:
        return "Dyn"


Dyn = _DynType()


@compatibility(is_backward_compatible=False)
def is_consistent(t1: Any, t2: Any) -> bool:
    """Whether a value may be of both types."""
    if t1 == t2 or t1 == Dyn or t2 == Dyn or _is_variable(t1) or _is_variable(t2):
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.__args__) == len(t2.__args__) and all(map(is_consistent, t1.__args__, t2.__args__))
    return False


@compatibility(is_backward_compatible=False)
def is_more_precise(t1: Any, t2: Any) -> bool:
    """Whether the first type says at least as much as the second one."""
    if t1 == t2 or isinstance(t2, _DynType):
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.__args__) == len(t2.__args__) and all(map(is_more_precise, t1.__args__, t2.__args__))
    return False


def _is_variable(kind: Any) -> bool:
    from .experimental.unification.variable import Var  # only comparisons of types need it

    return isinstance(kind, Var)
