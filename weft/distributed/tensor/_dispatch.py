"""Operations on DTensors, by `__torch_function__`: on the parts, which are whole."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from ...core.overrides import DisableTorchFunctionSubclass, full_name
from ...core.tensor import Tensor
from ._api import DTensor
from .placement_types import Replicate


@functools.cache
def dtensor_class() -> type[DTensor]:
    """The class of all DTensors."""

    class Distributed(DTensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:  # type: ignore[override]
            tensors = list(_tensors((args, kwargs)))
            first = next(each for each in tensors if isinstance(each, DTensor))
            with DisableTorchFunctionSubclass():
                # Numbers as tensors are replicated, and so are tensors of one element in PyTorch.
                if any(not isinstance(each, DTensor) and each.numel() != 1 for each in tensors):
                    raise RuntimeError(
                        f"{full_name(func) or func}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor "
                        "to DTensor before calling distributed operators!"
                    )
                result = func(*args, **(kwargs or {}))
                return _placed(result, first)

    Distributed.__name__ = Distributed.__qualname__ = "DTensor"
    Distributed.__module__ = DTensor.__module__
    return Distributed


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors(each)


def _placed(result: Any, first: DTensor) -> Any:
    """The tensors of a result as DTensors."""
    if isinstance(result, Tensor):
        if result is first:
            return result
        made: Any = result if isinstance(result, dtensor_class()) else result.as_subclass(dtensor_class())
        if "_placements" not in vars(made):
            alike = result.shape == first.shape
            made._placements = first._placements if alike else (Replicate(),) * len(first._placements)
            made._device_mesh = first._device_mesh
        return made
    if isinstance(result, list | tuple) and any(isinstance(each, Tensor) for each in result):
        kind: Any = type(result)
        return getattr(kind, "_make", kind)(_placed(each, first) for each in result)
    return result
