"""Collectives that autograd records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.function import Function
from ..core.tensor import Tensor


class _Collective(Function):
    @staticmethod
    def forward(ctx: Any, run: Callable, back: Callable, *tensors: Tensor) -> Any:
        ctx.back = back
        return run(*tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        found = ctx.back(*cotangents)
        return (None, None, *(found if isinstance(found, tuple) else (found,)))


def recorded(run: Callable, back: Callable, *tensors: Tensor) -> Any:
    """`run(*tensors)`, whose gradients are `back(*cotangents)`."""
    return _Collective.apply(run, back, *tensors)
