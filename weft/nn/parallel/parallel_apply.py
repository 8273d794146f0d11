"""Modules called one after the other, each on its own GPU. The GPUs work at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.device import accelerator, current_index, device_index, set_current_index
from ...core.restoring import contextmanager
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
    """Call each module with its inputs, while its GPU is the current one: by default that of the first tensor of its inputs.

    Raises: RuntimeError without a GPU, ValueError for the CPU.
    """
    assert len(modules) == len(inputs), (
        f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}"
    )
    for names, values in (("kwargs_tup", kwargs_tup), ("devices", devices)):
        assert values is None or len(values) == len(modules), (
            f"The number of modules {len(modules)} is not equal to the number of {names}"
        )
    places = [None if device is None else device_index(device) for device in devices or [None] * len(modules)]
    kind = accelerator()
    if kind is None:
        raise RuntimeError(
            "Cannot access accelerator device when none is available: call the modules one by one"
        )
    given = kwargs_tup or [{}] * len(modules)
    # One after the other: a call returns before its GPU has done the work, so the GPUs work at the same time.
    return [
        _call(module, input, kwargs, place, kind)
        for module, input, kwargs, place in zip(modules, inputs, given, places, strict=True)
    ]


def _call(module: Module, input: Any, kwargs: dict[str, Any], place: int | None, kind: str) -> Any:
    if place is None:
        found = get_a_var(input)
        if found is None:
            raise RuntimeError(
                "no device was provided and no tensor input was found; device cannot be resolved"
            )
        place = found.get_device()
    with current(kind, place):
        return module(*(input if isinstance(input, list | tuple) else (input,)), **kwargs)


@contextmanager
def current(kind: str, index: int) -> Iterator[None]:
    """A context in which this device of its type is the current one."""
    before = current_index(kind)
    set_current_index(kind, index)
    try:
        yield
    finally:
        set_current_index(kind, before)
