"""Operators whose kernels are written in Triton, for GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def triton_op(
    name: str, fn: Callable | None = None, /, *, mutates_args: str | Iterable[str], schema: str | None = None
) -> Callable:
    """Define an operator whose function launches Triton kernels. It can be defined here; its kernels cannot run.

    The function runs when the operator is called, so that parts without Triton work.
    """

    def decorate(fn: Callable) -> Any:
        from .custom_ops import custom_op

        return custom_op(name, fn, mutates_args=mutates_args, schema=schema)

    return decorate if fn is None else decorate(fn)


class _Launch:
    """A Triton kernel that `wrap_triton` was given."""

    def __init__(self, kernel: Callable):
        self.kernel = kernel

    def __getitem__(self, grid: Any) -> _Launch:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = getattr(self.kernel, "__name__", repr(self.kernel))
        raise NotImplementedError(
            f"wrap_triton({name}): weft has no GPU that Triton could compile for; use a kernel for the CPU"
        )


def wrap_triton(triton_kernel: Callable, /) -> Any:
    """The Triton kernel as an operator launches it.

    Raises: NotImplementedError when it is launched.
    """
    return _Launch(triton_kernel)
