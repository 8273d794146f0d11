"""Defines helpers of layers: one value for each dim, and texts for the repr."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple]:
    """Return a function that repeats one value `n` times, and returns several values unchanged."""

    def parse(value: Any) -> tuple:
        return tuple(value) if isinstance(value, Iterable) else (value,) * n

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(values: tuple, n: int) -> tuple:
    """Return the values from the last to the first, each `n` times, which is padding per dim as `pad` takes it."""
    return tuple(value for value in reversed(values) for _ in range(n))


def shown(module: Any, *names: str) -> str:
    """Return the attributes `names` as the repr of a module shows them: `p=0.5, inplace=False`."""
    return ", ".join([f"{name}={getattr(module, name)}" for name in names])


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove `prefix` from the keys that begin with it, in place, for example `module.` of a wrapped model."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        for key in list(metadata):
            # The entry of the model itself is "", and that of its wrapper is the prefix without the dot.
            if key == prefix.rstrip("."):
                metadata[""] = metadata.pop(key)
            elif key.startswith(prefix):
                metadata[key.removeprefix(prefix)] = metadata.pop(key)
