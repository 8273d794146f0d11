"""`torch.library.opcheck`: whether an operator does what it says of itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.grad_mode import no_grad
from ...core.pytree import tree_map
from ...core.tensor import Tensor
from .operators import tensors_in


class OpCheckError(Exception):
    """An operator does not do what it says of itself."""

    __module__ = "torch.testing._internal.optests.generate_tests"


def opcheck(
    op: Any,
    args: tuple,
    kwargs: dict[str, Any] | None,
    *,
    test_utils: str | Sequence[str],
    raise_exception: bool,
    atol: float | None,
    rtol: float | None,
) -> dict[str, str]:
    """`torch.library.opcheck`."""
    from ..namespaces import OpOverloadPacket
    from .custom_ops import CustomOpDef

    overload = (
        op._opoverload
        if isinstance(op, CustomOpDef)
        else op.default
        if isinstance(op, OpOverloadPacket)
        else op
    )
    found: dict[str, Any] = {}
    for name in (test_utils,) if isinstance(test_utils, str) else test_utils:
        if name not in _CHECKS:
            raise RuntimeError(f"opcheck(op, ...): invalid test_util {name}; there are {', '.join(_CHECKS)}")
        try:
            _CHECKS[name](overload, tree_map(_apart, args), tree_map(_apart, kwargs or {}), (atol, rtol))
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            found[name] = error
    return found


def _apart(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    with no_grad():
        return value.detach().clone().requires_grad_(value.requires_grad)


def _schema(op: Any, args: tuple, kwargs: dict[str, Any], tolerance: Any) -> None:
    """Arguments are written to, and results are views, just where the schema says so."""
    schema = op._schema
    values = schema.bind(args, kwargs)
    before = [[(each, each.detach().clone()) for each in tensors_in((value,))] for value in values]
    result = op(*args, **kwargs)
    for declared, pairs in zip(schema.arguments, before, strict=True):
        for now, then in pairs:
            if not declared.is_write and not _same(now, then):
                raise RuntimeError(
                    f"Argument {declared.name} is not defined as mutable but was mutated: {schema}"
                )
    memory = {
        id(each._storage): declared
        for declared, pairs in zip(schema.arguments, before, strict=True)
        for each, _ in pairs
    }
    results = result if isinstance(result, tuple) else (result,)
    for declared, value in zip(schema.returns, results, strict=False):
        for each in tensors_in((value,)):
            source = memory.get(id(each._storage))
            if source is not None and declared.alias_info is None:
                raise RuntimeError(
                    f"Argument {source.name} is not defined to alias output but was aliasing: {schema}"
                )


def _same(a: Tensor, b: Tensor) -> bool:
    with no_grad():
        return bool(((a == b) | (a != a) & (b != b)).all())


def _autograd_registration(op: Any, args: tuple, kwargs: dict[str, Any], tolerance: Any) -> None:
    """An operator whose result requires grad has a kernel for Autograd, or is made of others."""
    if (
        any(
            op.has_kernel_for_dispatch_key(key)
            for key in ("Autograd", "AutogradCPU", "CompositeImplicitAutograd")
        )
        or not op._defined_in_python
    ):
        return
    if not any(each.requires_grad for each in tensors_in((*args, *kwargs.values()))):
        return
    result = op(*args, **kwargs)
    if any(each.requires_grad for each in tensors_in(result if isinstance(result, tuple) else (result,))):
        raise RuntimeError(
            f"{op._name}: at least one output of this operator has requires_grad=True but the operator does not have an "
            "autograd kernel defined at an autograd key (e.g. DispatchKey::Autograd). Register one with "
            "torch.library.register_autograd, or register the operator as CompositeImplicitAutograd"
        )


def _fake(op: Any, args: tuple, kwargs: dict[str, Any], tolerance: Any) -> None:
    """The fake kernel gives results of the shapes and dtypes that the kernel gives."""

    def meta(value: Any) -> Any:
        return value.detach().to("meta") if isinstance(value, Tensor) else value

    with no_grad():
        fake = op(*tree_map(meta, args), **tree_map(meta, kwargs))
        real = op(*args, **kwargs)
    for mine, theirs in zip(_results(fake), _results(real), strict=True):
        if isinstance(theirs, Tensor):
            if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
                raise RuntimeError(
                    f"{op._name}: the fake kernel gives {mine.dtype} of shape {list(mine.shape)}, the kernel {theirs.dtype} "
                    f"of shape {list(theirs.shape)}"
                )
            if theirs.numel() and mine.stride() != theirs.stride():
                raise RuntimeError(
                    f"{op._name}: the fake kernel gives strides {mine.stride()}, the kernel {theirs.stride()}"
                )


def _results(value: Any) -> list[Any]:
    return [each for item in (value if isinstance(value, tuple) else (value,)) for each in
            (item if isinstance(item, list) else [item])]  # fmt: skip


def _gradients(op: Any, args: tuple, kwargs: dict[str, Any], tolerance: Any) -> None:
    """The derivative can be computed. (PyTorch compares with what its compiler makes of it; here is one way only.)"""
    inputs = [each for each in tensors_in((*args, *kwargs.values())) if each.requires_grad]
    if not inputs or op._schema.is_mutable:
        op(*args, **kwargs)
        return
    from ...autograd import grad

    outputs = [
        each for each in _results(op(*args, **kwargs)) if isinstance(each, Tensor) and each.requires_grad
    ]
    if outputs:
        grad(outputs, inputs, [each.detach() * 0 + 1 for each in outputs], allow_unused=True)


_CHECKS: dict[str, Callable[[Any, tuple, dict[str, Any], Any], None]] = {
    "test_schema": _schema,
    "test_autograd_registration": _autograd_registration,
    "test_faketensor": _fake,
    "test_aot_dispatch_static": _gradients,
    "test_aot_dispatch_dynamic": _gradients,
}
