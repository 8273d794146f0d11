"""Operators that call a function, with gradients on or off, or under autocast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...amp.autocast_mode import autocast
from ...core.grad_mode import set_grad_enabled
from ..namespaces import HigherOrderOperator


class Wrap(HigherOrderOperator):
    """`torch.ops.higher_order.wrap`: calls a function."""

    def __init__(self) -> None:
        super().__init__("wrap")

    def __call__(self, func: Callable, *args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)


class WrapWithSetGradEnabled(HigherOrderOperator):
    """`torch.ops.higher_order.wrap_with_set_grad_enabled`: calls a function with gradients on or off."""

    def __init__(self) -> None:
        super().__init__("wrap_with_set_grad_enabled")

    def __call__(self, enable_grad: bool, wrapped_func: Callable, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(enable_grad):
            return wrapped_func(*args, **kwargs)


class WrapWithAutocast(HigherOrderOperator):
    """`torch.ops.higher_order.wrap_with_autocast`: calls a function under autocast."""

    def __init__(self) -> None:
        super().__init__("wrap_with_autocast")

    def __call__(
        self,
        device_type: str,
        dtype: Any,
        enabled: bool,
        cache_enabled: bool | None,
        wrapped_func: Callable,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        with autocast(device_type, dtype, enabled, cache_enabled):
            return wrapped_func(*args, **kwargs)


wrap = Wrap()
wrap_with_set_grad_enabled = WrapWithSetGradEnabled()
wrap_with_autocast = WrapWithAutocast()
