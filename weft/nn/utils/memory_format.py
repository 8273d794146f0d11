"""Converts the weights of convolutions to a memory format."""

from __future__ import annotations

from typing import Any, TypeVar

M = TypeVar("M")


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Give the weights of all two-dimensional convolutions in a module a memory format."""
    return _convert(module, memory_format, ("Conv2d", "ConvTranspose2d"))


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Give the weights of all three-dimensional convolutions in a module a memory format."""
    return _convert(module, memory_format, ("Conv3d", "ConvTranspose3d"))


def _convert(module: Any, memory_format: Any, names: tuple[str, ...]) -> Any:
    from .. import modules

    kinds = tuple(getattr(modules, name) for name in names)
    for each in module.modules():
        if isinstance(each, kinds):
            each.weight.data = each.weight.detach().clone(memory_format=memory_format)
    return module
