"""PyTorch's name for `weft.nn.module` and the hooks of all modules."""

from ...core.names import name_public
from ..hooks import (
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ..module import Module
from ..state import _EXTRA_STATE
from ..state import _IncompatibleKeys as _IncompatibleKeys

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_EXTRA_STATE_KEY_SUFFIX = _EXTRA_STATE

name_public(__name__, "nn.module", "nn.hooks")
