"""Tensors in nested containers, for the arguments of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops.tensor.predicates import typename


def nested_map(
    condition: Callable[[Any], bool], fn: Callable[[Any], Any], condition_msg: str | None = None
) -> Callable[[Any], Any]:
    """A function that applies `fn` to the objects in lists, tuples and dictionaries for which `condition` is true.

    The function keeps None and raises ValueError for all other objects.
    """

    def apply(given: Any) -> Any:
        if condition(given):
            return fn(given)
        if given is None:
            return None
        if isinstance(given, list | tuple):
            parts = map(apply, given)
            return type(given)(*parts) if hasattr(given, "_fields") else type(given)(parts)
        if isinstance(given, dict):
            return {key: apply(value) for key, value in given.items()}
        accepted = f". Accepted types: {condition_msg}, or lists/tuples of them" if condition_msg else ""
        raise ValueError(
            f"Auto nesting doesn't know how to process an input object of type {typename(given)}{accepted}"
        )

    return apply
