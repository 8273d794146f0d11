"""The names of PyTorch's C++ part that classes with `__torch_function__` use."""

from __future__ import annotations

from .compat.missing import module_getattr
from .core.overrides import DisableTorchFunctionSubclass
from .core.overrides import disabled as _disabled_torch_function_impl

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "_disabled_torch_function_impl"]

DisableTorchFunction = DisableTorchFunctionSubclass  # PyTorch's one of them leaves modes on

__getattr__ = module_getattr(__name__)
