"""`torch.nn.attention`: which kernels attention may use. weft has one, so that the choice has no effect."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...compat.missing import module_getattr
from ...core.restoring import contextmanager

__all__ = [
    "SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "activate_flash_attention_impl",
    "current_flash_attention_impl", "list_flash_attention_impls", "register_flash_attention_impl",
    "restore_flash_attention_impl", "sdpa_kernel",
]  # fmt: skip


class SDPBackend(enum.Enum):
    """Lists PyTorch's kernels for `scaled_dot_product_attention`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


# Whether PyTorch says why a kernel was not taken; there is nothing to say here.
WARN_FOR_UNFUSED_KERNELS = False

_ORDER = ("CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH", "OVERRIDEABLE")
_allowed: list[SDPBackend] = [SDPBackend[name] for name in _ORDER]


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """Return the backends that the innermost `sdpa_kernel` asked for; with_priority: in the order that was given."""
    return list(_allowed) if with_priority else sorted(_allowed, key=lambda each: _ORDER.index(each.name))


@contextmanager
def sdpa_kernel(backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """A context, or a decorator, for attention; weft has one kernel, which serves all backends.

    Raises: AssertionError if `backends` is neither an `SDPBackend` nor a list of them.

    >>> import weft as torch
    >>> from weft.nn.attention import SDPBackend, sdpa_kernel
    >>> q = torch.ones(1, 1, 2, 4)
    >>> with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    ...     torch.nn.functional.scaled_dot_product_attention(q, q, q).shape
    torch.Size([1, 1, 2, 4])
    """
    global _allowed
    listed = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(listed, (list, tuple)) or not all(isinstance(each, SDPBackend) for each in listed):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    outer, _allowed = _allowed, list(dict.fromkeys(listed))
    try:
        yield
    finally:
        _allowed = outer


# ---- Implementations of flash attention for CUDA ---------------------------------------------------------------------

_registered: dict[str, Callable[..., Any]] = {}
_active: str | None = None
_handle: Any = None  # the result of the registered function, which must live as long as it is active


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Note the function that `activate_flash_attention_impl(impl)` calls."""
    _registered[impl] = register_fn


def list_flash_attention_impls() -> list[str]:
    """Return the names that were registered. PyTorch comes with two, for CUDA."""
    return sorted(_registered)


def current_flash_attention_impl() -> str | None:
    """Return the name that was activated."""
    return _active


def activate_flash_attention_impl(impl: str) -> None:
    """Call the function that was registered under this name.

    Raises: ValueError if there is none.
    """
    global _active, _handle
    if impl not in _registered:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations: {list_flash_attention_impls()}"
        )
    _handle, _active = _registered[impl](), impl


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Undo `activate_flash_attention_impl`."""
    global _active, _handle
    if _handle is not None and hasattr(_handle, "remove"):
        _handle.remove()
    _active = _handle = None


__getattr__ = module_getattr(__name__, ("bias", "experimental", "flex_attention", "varlen"))
