"""Hooks of modules that have ShardedTensors as attributes that are no parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....nn.module import Module
from ._base import ShardedTensorBase

__all__ = ["pre_load_state_dict_hook", "state_dict_hook"]


def _attributes(module: Module, prefix: str) -> Iterator[tuple[str, Module, str, Any]]:
    """The attributes of a module and of those inside of it: the key in a state dict, the module, the name and the value."""
    for path, each in module.named_modules():
        for name, value in list(vars(each).items()):
            yield ".".join(part for part in (prefix + path, name) if part), each, name, value


def state_dict_hook(module: Module, destination: Any, prefix: str, local_metadata: Any) -> None:
    """A hook for `Module._register_state_dict_hook` that adds ShardedTensors to the state dict."""
    for key, _, _, value in _attributes(module, prefix):
        if isinstance(value, ShardedTensorBase):
            destination[key] = value


def pre_load_state_dict_hook(
    module: Module,
    state_dict: Any,
    prefix: str,
    local_metadata: Any,
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """A hook for `Module._register_load_state_dict_pre_hook` that sets attributes to the ShardedTensors of a state dict."""
    for key, owner, name, _ in _attributes(module, prefix):
        if isinstance(state_dict.get(key), ShardedTensorBase):
            setattr(owner, name, state_dict[key])
