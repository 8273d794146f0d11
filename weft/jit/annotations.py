"""Python's annotations as the types of schemas."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035 (libraries import them from here)

from ..core.device import device
from ..core.dtype import DType
from ..core.tensor import Tensor
from ..library.types import (
    AnyType,
    BoolType,
    ComplexType,
    DeviceObjType,
    DictType,
    FloatType,
    IntType,
    ListType,
    NoneType,
    NumberType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    Type,
)
from .internal import BroadcastingListCls, is_dict, is_list, is_optional, is_tuple

_PLAIN: dict[Any, Any] = {
    float: FloatType, complex: ComplexType, int: IntType, str: StringType, bool: BoolType, Any: AnyType,
    device: DeviceObjType, DType: IntType, type(None): NoneType, None: TensorType,
}  # fmt: skip


def is_tensor(ann: Any) -> bool:
    """Whether an annotation is the class of tensors or a subclass."""
    return isinstance(ann, type) and issubclass(ann, Tensor)


def try_ann_to_type(ann: Any, loc: Any, rcb: Any = None) -> Type | None:
    """The type of an annotation, None if schemas have none for it."""
    if ann is inspect.Signature.empty or is_tensor(ann):
        return TensorType.get()
    parts = typing.get_args(ann)
    if is_tuple(ann):
        return TupleType([ann_to_type(each, loc, rcb) for each in parts])
    if is_list(ann):
        return ListType(ann_to_type(parts[0], loc, rcb))
    if is_dict(ann):
        return DictType(ann_to_type(parts[0], loc, rcb), ann_to_type(parts[1], loc, rcb))
    if is_optional(ann):
        return OptionalType(ann_to_type(next(each for each in parts if each is not type(None)), loc, rcb))
    if set(parts) == {int, float, complex}:
        return NumberType.get()
    try:
        found = _PLAIN.get(ann)
    except TypeError:  # not hashable
        return None
    return None if found is None else found.get()


def ann_to_type(ann: Any, loc: Any, rcb: Any = None) -> Type:
    """The type of an annotation.

    Raises: ValueError if schemas have none for it.
    """
    found = try_ann_to_type(ann, loc, rcb)
    if found is None:
        raise ValueError(f"Unknown type annotation: '{ann}' at {loc}")
    return found


def is_function_or_method(the_callable: Any) -> bool:
    """Whether a callable is a Python function or method."""
    return inspect.isfunction(the_callable) or inspect.ismethod(the_callable)


def is_vararg(the_callable: Callable) -> bool:
    """Whether a callable takes any number of arguments by place."""
    call = the_callable if is_function_or_method(the_callable) else the_callable.__call__  # type: ignore[operator]
    return any(each.kind is each.VAR_POSITIONAL for each in inspect.signature(call).parameters.values())


class Module:
    """Names of a module that annotations are evaluated with."""

    def __init__(self, name: str, members: dict[str, Any]) -> None:
        self.name, self.members = name, members

    def __getattr__(self, name: str) -> Any:
        try:
            return self.members[name]
        except KeyError:
            raise RuntimeError(f"Module {self.name} has no member called {name}") from None


# PyTorch's annotations of lists for which one element may be given: `BroadcastingList2[int]`.
BroadcastingList = BroadcastingListCls
for _count in range(1, 7):
    globals()[f"BroadcastingList{_count}"] = BroadcastingListCls()
