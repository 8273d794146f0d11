"""Modules called at the same time, each on its own GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.tensor import Tensor
from ..module import Module

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Tensor | None:
    """Return the first tensor in a container.

    >>> import weft as torch
    >>> from weft.nn.parallel.parallel_apply import get_a_var
    >>> get_a_var([1, {"a": torch.ones(1)}])
    tensor([1.])
    """
    if isinstance(obj, Tensor):
        return obj
    items = obj.items() if isinstance(obj, dict) else obj if isinstance(obj, list | tuple) else ()
    for item in items:
        found = get_a_var(item)
        if isinstance(found, Tensor):
            return found
    return None


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Call each module with its inputs on its GPU. Raises: RuntimeError without a GPU."""
    assert len(modules) == len(inputs), (
        f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}"
    )
    for names, values in (("kwargs_tup", kwargs_tup), ("devices", devices)):
        assert values is None or len(values) == len(modules), (
            f"The number of modules {len(modules)} is not equal to the number of {names}"
        )
    for device in devices or ():
        kind = getattr(device, "type", device)
        if isinstance(kind, str) and kind.startswith("cpu"):
            raise ValueError(f"Expected a cuda device, but got: {device}")
    raise RuntimeError("Cannot access accelerator device when none is available: call the modules one by one")
