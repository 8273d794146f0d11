"""Switches of recording, `torch.autograd.grad_mode`."""

from __future__ import annotations

from typing import Any

from ..compat.missing import module_getattr
from ..core.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from ..core.names import name_public
from ..core.restoring import Restoring

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class _Setting(Restoring):
    """A setting of PyTorch's engine that has no effect in weft."""

    def __enter__(self) -> None:
        """Nothing changes."""

    def _restore(self) -> None:
        """Nothing was changed."""


class set_multithreading_enabled(_Setting):  # noqa: N801 (PyTorch's name)
    """Accepted without effect, because a backward pass runs in the calling thread."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def clone(self) -> Any:
        """Another switch to the same setting."""
        return type(self)(self.mode)


class enforce_grad_layout_policy(_Setting):  # noqa: N801
    """Accepted without effect, because a gradient always has the strides of a dense leaf."""

    def __init__(self, enable: bool = True) -> None:
        self.enable = enable

    def clone(self) -> Any:
        """Another switch to the same setting."""
        return type(self)(self.enable)


name_public(__name__)
__getattr__ = module_getattr(__name__)
