"""`torch.backends.python_native`: kernels that PyTorch has in languages inside of Python. weft's are not among those."""

from __future__ import annotations

from collections.abc import Iterator

from weft.core.restoring import contextmanager

all_dsls: list[str] = ["cutedsl", "triton"]
available_dsls: list[str] = []
_disabled: set[str] = set()


def get_dsl_operations(dsl_name: str) -> list[str]:
    """The operations that a language has kernels for: none."""
    return []


def is_dsl_disabled(dsl_name: str) -> bool:
    """Whether a language is switched off."""
    return False


def disable_operations(*op_symbols: str) -> None:
    """Switch kernels off by operation."""
    _disabled.update(op_symbols)


def enable_operations(*op_symbols: str) -> None:
    """Switch kernels on again."""
    _disabled.difference_update(op_symbols)


def is_operation_disabled(op_symbol: str) -> bool:
    """Whether the kernels of an operation are switched off."""
    return op_symbol in _disabled


@contextmanager
def operations_disabled(*op_symbols: str) -> Iterator[None]:
    """A context in which the kernels of these operations are switched off."""
    outer = set(_disabled)
    disable_operations(*op_symbols)
    try:
        yield
    finally:
        _disabled.clear()
        _disabled.update(outer)


def disable_dispatch_keys(*dispatch_keys: str) -> None:
    """Switch kernels off by dispatch key; there are none."""


def enable_dispatch_keys(*dispatch_keys: str) -> None:
    """Switch kernels on again; there are none."""
