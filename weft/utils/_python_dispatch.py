"""`torch.utils._python_dispatch`: modes and tensors beneath autograd, which are not there: no mode is ever on."""

from __future__ import annotations

import contextlib
from typing import Any

from ..compat.missing import module_getattr
from ..core.tensor import Tensor


class TorchDispatchMode:
    """In PyTorch, a context whose `__torch_dispatch__` is told of each operator beneath autograd.

    A mode can be defined and made; entering it raises NotImplementedError, because operators do not all pass one place yet.
    `torch.overrides.TorchFunctionMode` is told of public functions, above autograd.
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        self._dispatch_key = _dispatch_key

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__}: __torch_dispatch__ is not called yet; torch.overrides.TorchFunctionMode hears of public functions"
        )

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        """Never entered."""

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """A new mode."""
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        return func(*args, **kwargs or {})


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    return None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    return []


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is on: no."""
    return False


def any_torch_dispatch_mode_on_stack() -> bool:
    """Whether a mode is on: no."""
    return False


def _disable_current_modes() -> Any:
    """A context without modes."""
    return contextlib.nullcontext([])


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class of tensors says by `__tensor_flatten__` and `__tensor_unflatten__` which tensors it wraps."""
    names = ("__tensor_flatten__", "__tensor_unflatten__")
    return issubclass(t, Tensor) and t is not Tensor and all(hasattr(t, name) for name in names)


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether an object is a tensor of such a class.

    >>> import weft as torch
    >>> is_traceable_wrapper_subclass(torch.ones(1))
    False
    """
    return is_traceable_wrapper_subclass_type(type(t))


__getattr__ = module_getattr(__name__)
