"""Defines PyTorch's name for `weft.nn.module` and the hooks of all modules."""

import sys
from types import ModuleType
from typing import Any

from ...core.names import name_public
from ..hooks import (
    GLOBAL,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    replace_global,
)
from ..module import Module
from ..state import _EXTRA_STATE
from ..state import _IncompatibleKeys as _IncompatibleKeys

__all__ = [
    "Module", "register_module_backward_hook", "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook", "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook", "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]  # fmt: skip

_EXTRA_STATE_KEY_SUFFIX = _EXTRA_STATE


class _WithHooks(ModuleType):
    """Assigning `_global_forward_hooks` and the like exchanges the hooks of all modules, and the dictionary stays the same."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in GLOBAL:
            replace_global(name, value)
        else:
            super().__setattr__(name, value)


globals().update({name: registries[0] for name, registries in GLOBAL.items()})
sys.modules[__name__].__class__ = _WithHooks
name_public(__name__, "nn.module", "nn.hooks")
