"""`torch.utils.deterministic`: what deterministic mode does besides choosing algorithms."""

from __future__ import annotations

import sys
from types import ModuleType

from ..core.switches import get_fill_uninitialized_memory, set_fill_uninitialized_memory


class _Deterministic(ModuleType):
    """The class of this module, because setting an attribute of a module calls no function otherwise."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether deterministic mode fills new memory with NaN, the largest integer or True."""
        return get_fill_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        set_fill_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
