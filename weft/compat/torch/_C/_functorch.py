"""What wrappers of `torch.func` a tensor is in. Samples within `vmap` are in one, and other transforms give plain tensors."""

from __future__ import annotations

import enum
from typing import Any

from weft.batching import fallback, numbered
from weft.core.batched import is_sample, number_of


class TransformType(enum.Enum):
    """The transforms of `torch.func`."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a tensor is a sample within `vmap`."""
    return is_sample(tensor)


is_functorch_wrapped_tensor = is_batchedtensor


def is_gradtrackingtensor(tensor: Any) -> bool:
    """False: within `grad`, a function gets plain tensors."""
    return False


def is_functionaltensor(tensor: Any) -> bool:
    """False."""
    return False


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """False."""
    return False


def maybe_get_level(tensor: Any) -> int:
    """The number of the `vmap` that a tensor is a sample of, -1 if it is none."""
    level = numbered.level_of(tensor)
    return -1 if level is None else number_of(level)


def maybe_get_bdim(tensor: Any) -> int:
    """The hidden dimension of a sample, which is always the first one, or -1 if the tensor is no sample."""
    return -1 if numbered.level_of(tensor) is None else 0


def get_unwrapped(tensor: Any) -> Any:
    """The batch that a tensor is a sample of, with the samples along the first dimension.

    Raises: RuntimeError if the tensor is no sample.
    """
    return numbered.unwrapped(tensor)


def maybe_current_level() -> int | None:
    """The number of the innermost `vmap`, None outside of all."""
    return numbered.current_level()


def peek_interpreter_stack() -> None:
    """None: transforms keep no stack of interpreters."""


def _is_vmap_fallback_enabled() -> bool:
    """Whether operations without a batching rule run sample by sample; True at first."""
    return fallback.settings.enabled


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    """Let operations without a batching rule run sample by sample, or raise RuntimeError."""
    fallback.settings.enabled = enabled


def _debug_only_are_vmap_fallback_warnings_enabled() -> bool:
    """Whether each call of an operation without a batching rule warns; else the first one of each operation does."""
    return fallback.settings.warns_always


def _debug_only_display_vmap_fallback_warnings(enabled: bool) -> None:
    """Let each call of an operation without a batching rule warn, or the first one of each operation."""
    fallback.settings.warns_always = enabled


_add_batch_dim = numbered.add_batch_dim
_remove_batch_dim = numbered.remove_batch_dim
