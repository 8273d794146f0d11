"""Windows of `M` samples, `torch.signal.windows`: symmetric, or (`sym=False`) one period of a periodic one.

All take `dtype` (float32 or float64; the default float unless given), `layout`, `device` and `requires_grad`.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from weft.core.checking import checked
from weft.core.dtype import DType, float32, float64, get_default_dtype
from weft.core.layout import strided
from weft.core.tensor import Tensor
from weft.ops.creation.creation import empty, full
from weft.ops.creation.ranges import linspace

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming",
    "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


def _window(shape: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorator: `shape(M, sym, steps, **parameters)` becomes the public function.

    `steps(start, end)` are M equidistant numbers.
    """
    name = shape.__name__
    checked_shape = checked(shape, f"signal.windows.{name}")

    @functools.wraps(shape)
    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: DType | None = None,
        layout: Any = strided,
        device: Any = None,
        requires_grad: bool = False,
        **parameters: Any,
    ) -> Tensor:
        dtype = dtype or get_default_dtype()
        if M < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={M}")
        if layout is not strided:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        if dtype not in (float32, float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")

        def steps(start: float, end: float) -> Tensor:
            return linspace(start, end, M, dtype=dtype, device=device, requires_grad=requires_grad)

        found = checked_shape(M, bool(sym), steps, **parameters)
        return found if M else empty(0, dtype=dtype, device=device, requires_grad=requires_grad)

    own = [
        each
        for each in inspect.signature(shape).parameters.values()
        if each.name not in ("M", "sym", "steps")
    ]
    first, *common = inspect.signature(window, follow_wrapped=False).parameters.values()
    own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    window.__signature__ = inspect.Signature([first, *own, *common[:-1]])  # type: ignore[attr-defined]
    return window


def _span(M: int, sym: bool) -> int:
    """The number of intervals that a window of more than one sample stretches over; 1 for an empty window."""
    return 1 if M == 0 else M - 1 if sym or M == 1 else M


@_window
def exponential(
    M: int, sym: bool, steps: Callable, *, center: float | None = None, tau: float = 1.0
) -> Tensor:
    """exp(-|n - center| / tau); the middle unless given, which needs sym=False."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if center is None:
        center = _span(M, sym) / 2
    return (-steps(-center / tau, (-center + (M - 1)) / tau).abs()).exp()


@_window
def cosine(M: int, sym: bool, steps: Callable) -> Tensor:
    """sin(pi * (n + 0.5) / M), half a period of a sine."""
    unit = math.pi / (_span(M, sym) + 1)
    return steps(0.5 * unit, (0.5 + (M - 1)) * unit).sin()


@_window
def gaussian(M: int, sym: bool, steps: Callable, *, std: float = 1.0) -> Tensor:
    """exp(-(n / std)**2 / 2), n counted from the middle."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    start, unit = -_span(M, sym) / 2, 1 / (std * math.sqrt(2))
    position = steps(start * unit, (start + (M - 1)) * unit)
    return (-(position * position)).exp()


@_window
def kaiser(M: int, sym: bool, steps: Callable, *, beta: float = 12.0) -> Tensor:
    """i0(sqrt(beta**2 - x**2)) / i0(beta) for x from -beta to beta."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M == 1 or beta == 0:
        return steps(1.0, 1.0)
    end = min(beta, -beta + (M - 1) * (2 * beta / _span(M, sym)))
    position = steps(-beta, end)
    inside = (beta * beta - position * position).clamp(min=0)
    return inside.sqrt().i0() / full((), beta, dtype=position.dtype, device=position.device).i0()


@_window
def bartlett(M: int, sym: bool, steps: Callable) -> Tensor:
    """1 - |x| for x from -1 to 1, a triangle."""
    if M == 1:
        return steps(1.0, 1.0)
    return 1 - steps(-1.0, -1 + (M - 1) * (2 / _span(M, sym))).abs()


@_window
def general_cosine(M: int, sym: bool, steps: Callable, *, a: Sequence[float]) -> Tensor:
    """sum of (-1)**i * a[i] * cos(2 pi i n / M)."""
    if M <= 1:  # PyTorch does not look at the coefficients then
        return steps(1.0, 1.0)
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    angle = steps(0.0, (M - 1) * (2 * math.pi / _span(M, sym)))
    total = (angle * 0).cos() * a[0]
    for i, weight in enumerate(a[1:], 1):
        total = total + (angle * i).cos() * ((-1) ** i * weight)
    return total


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """alpha - (1 - alpha) * cos(2 pi n / M)."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """`general_hamming` with alpha = 0.54."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """`general_hamming` with alpha = 0.5: a raised cosine.

    >>> import weft as torch
    >>> torch.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """`general_cosine` with the weights 0.42, 0.5, 0.08."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Nuttall's minimal 4-term window, `general_cosine` with the weights 0.3635819, 0.4891775, 0.1365995, 0.0106411."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)
