"""Questions about schemas, and checks, that the ways of defining operators share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.tensor import Tensor
from ..schema import FunctionSchema, parse_schema
from .operators import tensors_in


def parse_namespace(qualname: str) -> tuple[str, str]:
    """The namespace and the name of `namespace::name`.

    Raises: ValueError if the name has no namespace.
    """
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname passed to the '
            "torch.library APIs must consist of a namespace and a name, e.g. aten::sin"
        )
    return parts[0], parts[1]


def lookup_op(qualname: str) -> Any:
    """The overload of `torch.ops` of a name such as `aten::sin` or `aten::add.Tensor`."""
    from ..namespaces import ops

    namespace, name = parse_namespace(qualname)
    name, _, overload = name.partition(".")
    return getattr(getattr(getattr(ops, namespace), name), overload or "default")


def is_functional_schema(schema: Any) -> bool:
    """Whether an operator of this schema writes to no argument and returns no view of one."""
    if isinstance(schema, str):
        schema = parse_schema(schema)
    if schema.is_mutable or any(each.alias_info is not None for each in schema.returns):
        return False
    return bool(schema.returns)


def check_functional(op: Any, schema: FunctionSchema) -> None:
    """Raises: RuntimeError if the operator writes to an argument or returns a view, for which it can have no derivative."""
    if not is_functional_schema(schema):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {op} with schema {schema}. Please create a "
            "functional operator and register an autograd formula for that."
        )


def has_kwarg_only_tensors(schema: FunctionSchema) -> bool:
    """Whether a tensor can be given by name only."""
    return any(each.kwarg_only and "Tensor" in str(each.type) for each in schema.arguments)


def has_tensor_arg(schema: FunctionSchema) -> bool:
    """Whether an argument is a tensor, an optional one or a list of them."""
    return any("Tensor" in str(each.type) for each in schema.arguments)


def get_device_arg_index(schema: FunctionSchema) -> int | None:
    """The place of the argument `device`, None without one."""
    return next(
        (
            place
            for place, each in enumerate(schema.arguments)
            if each.name == "device" and str(each.type) in ("Device", "Optional[Device]")
        ),
        None,
    )


def check_aliasing_constraint(name: str, before: Sequence[Any], result: Any, module: str = "???") -> None:
    """Raises: RuntimeError if a result shares the memory of an argument or of another result."""
    used = {id(each._storage) for each in tensors_in(before) if each._storage is not None}
    for each in tensors_in(result if isinstance(result, (tuple, list)) else (result,)):
        _check_apart(name, each, used, module)
        used.add(id(each._storage))


def _check_apart(name: str, tensor: Tensor, used: set[int], module: str) -> None:
    if id(tensor._storage) in used:
        raise RuntimeError(
            f"{name} (with implementation in {module}): The output of this custom operator (1) must not also be an input to "
            "this custom operator and (2) may not alias any inputs to this custom operator or other returns. The most common "
            "way to trigger this error is if we have y = custom_op(x) and y and x are the same Tensor. Please instead return "
            "a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor the custom operator to not return "
            "y."
        )
