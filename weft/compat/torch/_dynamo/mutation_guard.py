"""`torch._dynamo.mutation_guard`: marks of modules that change, which nothing reads."""

from __future__ import annotations

from typing import Any


def is_dynamic_nn_module(obj: Any, is_export: bool = False) -> bool:
    """False: no module is compiled."""
    return False


def install_generation_tagging_init() -> None:
    """Nothing: no module is compiled."""
