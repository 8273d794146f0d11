"""Fake kernels: what an operator's result looks like, computed without its data."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any


class _Open(threading.local):
    context: FakeImplCtx | None = None


_open = _Open()


class FakeImplCtx:
    """What a fake kernel that runs gets from `torch.library.get_ctx()`."""

    def __init__(self, _fake_mode: Any = None, _op: Any = None):
        self._fake_mode, self._op = _fake_mode, _op
        self._shape_env = None

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> Any:  # noqa: A002 (PyTorch's names)
        """A size that depends on data. Here fake kernels run on tensors whose sizes are numbers, so there is none.

        Raises: NotImplementedError.
        """
        raise NotImplementedError(
            f"{self._op}: new_dynamic_size(): the size of a result that depends on data has no meaning for tensors on the "
            "device meta; call the operator with data"
        )

    create_unbacked_symint = new_dynamic_size


@contextlib.contextmanager
def set_ctx_getter(context: FakeImplCtx) -> Iterator[None]:
    """`get_ctx()` gives `context` inside."""
    outer = _open.context
    _open.context = context
    try:
        yield
    finally:
        _open.context = outer


def get_ctx() -> FakeImplCtx | None:
    """The context of the fake kernel that runs; None outside of one, or where it has no tracing to serve."""
    return _open.context
