"""The names of PyTorch's C++ part that classes with `__torch_function__` use."""

from __future__ import annotations

from .compat.missing import module_getattr
from .core.names import name_public
from .core.overrides import DisableTorchFunctionSubclass
from .core.overrides import disabled as _disabled_torch_function_impl
from .families.lapack import LinAlgError as _LinAlgError

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "_LinAlgError",
    "_disabled_torch_function_impl",
]

DisableTorchFunction = DisableTorchFunctionSubclass  # PyTorch's one of them leaves modes on

__getattr__ = module_getattr(__name__)

name_public(__name__)
