"""Windows by their old names: `hann_window` and the like. `torch.signal.windows` has more of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core.arguments import integer
from ...core.dtype import DType, get_default_dtype
from ...core.public import public
from ...core.tensor import Tensor
from ..assembly.joining import cat
from .creation import check_dtype, check_layout, full, ones, with_grad
from .ranges import arange


def _window(
    name: str, length: Any, periodic: bool, shape: Callable[[Tensor, int], Tensor], options: dict
) -> Tensor:
    """`shape(positions, n)` at n positions; a periodic window is one longer, without its last element."""
    length = integer(length, name, "window_length")
    dtype = check_dtype(options["dtype"]) or get_default_dtype()
    check_layout(options["layout"])
    if dtype.category < 2 or dtype.is_complex:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if length < 2:
        window = ones(length, dtype=dtype, device=options["device"])
    else:
        n = length + bool(periodic)
        window = shape(arange(n, dtype=dtype, device=options["device"]), n).narrow(0, 0, length)
    return with_grad(window, options["requires_grad"])


def _define(name: str, parameters: dict[str, float], shape: Callable, what: str) -> None:
    """Window `name`(window_length, periodic, *parameters); `shape(positions, n, *parameters)` gives its elements."""

    @public("function", name=name, words={"what": what})
    def window(
        window_length: int,
        periodic: bool = True,
        *positional: float,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool | None = False,
        **named: float,
    ) -> Tensor:
        """Return {what}

        periodic: one period, for Fourier transforms; else symmetric. dtype: the default float unless given.

        >>> import weft as torch
        >>> torch.{name}(8).shape
        torch.Size([8])
        """
        if len(positional) > len(parameters) or not set(named) <= set(parameters):
            raise TypeError(f"{name}() received an invalid combination of arguments: {positional} {named}")
        values = {**parameters, **dict(zip(parameters, positional, strict=False)), **named}
        options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
        return _window(
            name, window_length, periodic, lambda steps, n: shape(steps, n, *values.values()), options
        )


def _bartlett(steps: Tensor, n: int) -> Tensor:
    rising = steps * (2 / (n - 1))
    first = (n - 1) // 2 + 1
    return cat([rising.narrow(0, 0, first), 2 - rising.narrow(0, first, n - first)])


def _hamming(steps: Tensor, n: int, alpha: float, beta: float) -> Tensor:
    return (steps * (2 * math.pi / (n - 1))).cos() * -beta + alpha


def _blackman(steps: Tensor, n: int) -> Tensor:
    angle = steps * (math.pi / (n - 1))
    return (angle * 4).cos() * 0.08 - (angle * 2).cos() * 0.5 + 0.42


def _kaiser(steps: Tensor, n: int, beta: float) -> Tensor:
    offset = steps * (2 / (n - 1)) - 1
    inside = (1 - offset * offset).clamp(min=0)
    centre = full((), beta, dtype=steps.spec.dtype, device=steps.spec.device)
    return (inside.sqrt() * beta).i0() / centre.i0()


_define("bartlett_window", {}, _bartlett, "a triangle from 0 to 1 and back.")
_define("hann_window", {}, lambda steps, n: _hamming(steps, n, 0.5, 0.5), "Hann's window, a raised cosine.")
_define(
    "hamming_window",
    {"alpha": 0.54, "beta": 0.46},
    _hamming,
    "Hamming's window, alpha - beta * cos(2 pi k / n).",
)
_define(
    "blackman_window", {}, _blackman, "Blackman's window, 0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n)."
)
_define(
    "kaiser_window",
    {"beta": 12.0},
    _kaiser,
    "Kaiser's window, i0(beta * sqrt(1 - x * x)) / i0(beta) for x from -1 to 1.",
)
