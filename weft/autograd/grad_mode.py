"""Switches of recording, `torch.autograd.grad_mode`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ..compat.missing import module_getattr
from ..core.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from ..core.names import name_public
from ..core.restoring import Restoring
from ..core.tensor import Tensor

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "is_multithreading_enabled",
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


class _Multithreading(threading.local):
    enabled = True


_multithreading = _Multithreading()


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` was given last in this thread; True at first."""
    return _multithreading.enabled


class set_multithreading_enabled(Restoring):  # noqa: N801 (PyTorch's name)
    """Kept without effect, because a backward pass runs in the calling thread. As a context it holds until its end."""

    def __init__(self, mode: bool) -> None:
        self.mode, self._before = mode, _multithreading.enabled
        _multithreading.enabled = mode

    def __enter__(self) -> None:
        """It was set when the object was made."""

    def _restore(self) -> None:
        _multithreading.enabled = self._before

    def clone(self) -> Any:
        """Another switch to the same setting."""
        return type(self)(self.mode)


def _unsafe_set_version_counter(tensors: Sequence[Tensor], versions: Sequence[int]) -> None:
    """Set the versions of tensors, by which autograd knows that a saved tensor was written."""
    for tensor, version in zip(tensors, versions, strict=True):
        if version < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
        tensor._storage.version = version


class _unsafe_preserve_version_counter(Restoring):  # noqa: N801
    """Within this context, autograd does not see that the tensors are written."""

    def __init__(self, tensors: Tensor | tuple[Tensor, ...]) -> None:
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tensors
        self.versions = tuple([each._version for each in self.tensors])

    def __enter__(self) -> None:
        """Nothing changes yet."""

    def _restore(self) -> None:
        _unsafe_set_version_counter(self.tensors, self.versions)


class enforce_grad_layout_policy(_Setting):  # noqa: N801
    """Accepted without effect, because a gradient always has the strides of a dense leaf."""

    def __init__(self, enable: bool = True) -> None:
        self.enable = enable

    def clone(self) -> Any:
        """Another switch to the same setting."""
        return type(self)(self.enable)


name_public(__name__)
__getattr__ = module_getattr(__name__)
