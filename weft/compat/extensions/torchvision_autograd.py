"""What torchvision's library `_C`, of releases before 0.29, registers beside its operators: derivatives and autocast.

Later releases register them in Python, for the library `_C_stable`.
"""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...library import Library
from ...library.keys import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard
from .torchvision import OPERATORS, registered


def _widened(value: Any) -> Any:
    is_narrow = isinstance(value, Tensor) and value.is_floating_point() and value.element_size() < 8
    return value.float() if is_narrow else value


def _autocast(name: str) -> Any:
    """The operator in float32, whose result has the dtype of its first argument unless it is an index."""
    from ...library.namespaces import ops

    def kernel(first: Tensor, *others: Any) -> Tensor:
        with _ExcludeDispatchKeyGuard(DispatchKeySet(DispatchKey.AutocastCPU)):
            found = getattr(ops.torchvision, name)(_widened(first), *map(_widened, others))
        return found.to(first.dtype) if found.is_floating_point() else found

    return kernel


_library = Library("torchvision", "IMPL")
for _name, _, _, _function in OPERATORS:
    if _function is not None and _name in registered:
        _library.impl(_name, _function, "AutogradCPU")
for _name in {"nms", "roi_align"}.intersection(registered):
    _library.impl(_name, _autocast(_name), "AutocastCPU")
