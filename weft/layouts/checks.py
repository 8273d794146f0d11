"""Whether functions that make sparse tensors check their indices: `torch.sparse.check_sparse_tensor_invariants`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class Switch:
    """What holds where no argument `check_invariants` says otherwise."""

    on = False


class check_sparse_tensor_invariants:
    """Turn the checks of sparse tensors on or off: for good with `enable()`, or in a `with` block or a decorated function.

    >>> import weft as torch
    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     torch.sparse_coo_tensor([[2]], [1.0], (2,))
    Traceback (most recent call last):
        ...
    RuntimeError: size is inconsistent with indices: for dim 0, size is 2 but found index 2
    """

    def __init__(self, enable: bool = True):
        self.state = enable
        self.saved: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether sparse tensors are checked."""
        return Switch.on

    @staticmethod
    def enable() -> None:
        """Check sparse tensors from now on, which reads their indices."""
        Switch.on = True

    @staticmethod
    def disable() -> None:
        """Check no sparse tensors from now on."""
        Switch.on = False

    def __enter__(self) -> None:
        if self.saved is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for nesting."
            )
        self.saved, Switch.on = Switch.on, self.state

    def __exit__(self, *error: Any) -> None:
        assert self.saved is not None
        Switch.on, self.saved = self.saved, None

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked
