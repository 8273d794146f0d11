"""What wrappers of `torch.func` a tensor is in: none, because weft's transforms give functions plain tensors."""

from __future__ import annotations

import enum
from typing import Any, NoReturn

from ..compat.missing import module_getattr


class TransformType(enum.Enum):
    """The transforms of `torch.func`."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4


def is_batchedtensor(tensor: Any) -> bool:
    """False: within `vmap`, a function gets the tensors of one sample."""
    return False


def is_gradtrackingtensor(tensor: Any) -> bool:
    """False: within `grad`, a function gets plain tensors."""
    return False


def is_functionaltensor(tensor: Any) -> bool:
    """False."""
    return False


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """False."""
    return False


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """False."""
    return False


def maybe_get_level(tensor: Any) -> int:
    """-1: a tensor is in no wrapper."""
    return -1


def maybe_get_bdim(tensor: Any) -> int:
    """-1: a tensor has no hidden dimension."""
    return -1


def get_unwrapped(tensor: Any) -> Any:
    """Raises: RuntimeError, because a tensor is in no wrapper."""
    raise RuntimeError("No wrappers present!")


def _add_batch_dim(tensor: Any, bdim: int, level: int) -> NoReturn:
    """Raises: NotImplementedError, because there are no wrappers."""
    raise NotImplementedError(
        "torch._C._functorch._add_batch_dim: weft's vmap has no tensors with hidden dimensions"
    )


def _remove_batch_dim(tensor: Any, level: int, batch_size: int, out_dim: int) -> NoReturn:
    """Raises: NotImplementedError, because there are no wrappers."""
    raise NotImplementedError(
        "torch._C._functorch._remove_batch_dim: weft's vmap has no tensors with hidden dimensions"
    )


def maybe_current_level() -> None:
    """None: transforms keep no stack of levels."""


def peek_interpreter_stack() -> None:
    """None: transforms keep no stack of interpreters."""


__getattr__ = module_getattr(__name__)
