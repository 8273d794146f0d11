"""Questions about operators and their kernels, under the names of PyTorch's C++ part."""

from __future__ import annotations

from typing import Any

from weft.core.tensor import Tensor
from weft.library.keys import DispatchKey, DispatchKeySet, keys_of, parse_key
from weft.library.registry import aten, operators
from weft.library.schema import FunctionSchema


def _dispatch_keys(tensor: Tensor) -> DispatchKeySet:
    """The dispatch keys of a tensor."""
    return keys_of((tensor,))


def _dispatch_key_set(tensor: Tensor) -> str:
    """The dispatch keys of a tensor, as text."""
    return repr(keys_of((tensor,)))


def _parse_dispatch_key(name: str) -> Any:
    """The dispatch key of this name, None if there is none."""
    return DispatchKey.__members__.get(name)


def _dispatch_key_parse(name: str) -> Any:
    """The dispatch key of this name. Raises: RuntimeError if there is none."""
    return DispatchKey[parse_key(name)]


def _dispatch_key_name(key: Any) -> str:
    """The name of a dispatch key."""
    return DispatchKey(key).name if isinstance(key, int) else key.name


def _found(name: str) -> operators.Operator | None:
    qualname, _, overload = name.partition(".")
    return operators.find(qualname, overload)


def _dispatch_has_kernel(name: str) -> bool:
    """Whether an operator has a kernel."""
    found = _found(name)
    return found is not None and bool(found.kernels)


def _dispatch_has_kernel_for_dispatch_key(name: str, key: Any) -> bool:
    """Whether an operator has a kernel of its own for a dispatch key.

    Raises: RuntimeError if there is no operator of this name.
    """
    found = _found(name)
    if found is None:
        raise RuntimeError(f"operator {name} does not exist")
    return found.has(parse_key(key))


def _dispatch_has_computed_kernel_for_dispatch_key(name: str, key: Any) -> bool:
    """Whether a call with this dispatch key finds a kernel."""
    found = _found(name)
    return found is not None and (
        found.has(parse_key(key)) or any(found.has(each) for each in operators._BACKENDS_BELOW)
    )


def _dispatch_get_all_op_names() -> list[str]:
    """The names of all operators: those of weft and those that programs defined."""
    for name in aten.names():
        operators.overloads(f"aten::{name}")
    return [
        f"{qualname}.{overload}" if overload else qualname
        for qualname, overloads in operators.OPERATORS.items()
        for overload in overloads
    ]


def _jit_get_schemas_for_operator(name: str) -> list[FunctionSchema]:
    """The schemas of the overloads of `namespace::name`, and of those that TorchScript adds for numbers and lists."""
    own = [each.schema for each in operators.overloads(name).values()]
    namespace, _, last = name.partition("::")
    return own + aten.other_schemas(last) if namespace == "aten" else own


def _jit_get_all_schemas() -> list[FunctionSchema]:
    """The schemas of all operators."""
    _dispatch_get_all_op_names()
    names = dict.fromkeys([*operators.OPERATORS, *(f"aten::{each}" for each in aten.other_names())])
    return [schema for name in names for schema in _jit_get_schemas_for_operator(name)]


def _get_schema(name: str, overload: str) -> FunctionSchema:
    """The schema of an overload. Raises: RuntimeError if there is none."""
    found = operators.find(name, "" if overload == "default" else overload)
    if found is None:
        raise RuntimeError(f"Found no matching schema for {name}.{overload}")
    return found.schema
