"""Whether TorchScript compiles: never. Programs switch it by `enable` and `disable`."""

from __future__ import annotations

from typing import Any


class EnabledProxy:
    """The setting of the environment variable PYTORCH_JIT. Here programs run as with PYTORCH_JIT=0."""

    def __init__(self) -> None:
        self.enabled = False

    def parse_env(self, name: str, default: bool, true_message: str, false_message: str) -> bool:
        """False."""
        return False

    def __bool__(self) -> bool:
        return self.enabled


_enabled = EnabledProxy()


def disable() -> None:
    """Nothing: TorchScript does not compile."""


def enable() -> None:
    """Nothing: TorchScript does not compile."""


def _clear_class_state() -> None:
    """Nothing: no class was compiled."""


def _try_get_jit_cached_function(key: Any) -> None:
    """None: no function was compiled."""


def _try_get_jit_cached_overloads(key: Any) -> None:
    """None: no function was compiled."""


def _get_script_class(python_class: type) -> None:
    """None: no class was compiled."""
