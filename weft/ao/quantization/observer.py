"""Observers: modules that note the range of the tensors that pass them, and choose scales and zero points for it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...compat.missing import module_getattr
from ...core.dtype import QUANTIZED, DType, float32, quint8, uint8
from ...core.qscheme import SCHEMES, qscheme
from ...core.tensor import Tensor
from ...layouts.quantized.numbers import RANGES
from ...layouts.quantized.ranges import EPSILON, observed_qparams
from ...nn import Module
from ...ops.creation.from_data import tensor
from ...ops.reductions.histograms import histc

PER_TENSOR, PER_CHANNEL = SCHEMES["per_tensor_affine"], SCHEMES["per_channel_affine"]
SYMMETRIC = SCHEMES["per_tensor_symmetric"], SCHEMES["per_channel_symmetric"]


class _PartialWrapper:
    """A class of modules with some arguments of its constructor."""

    def __init__(self, p: partial):
        self.p = p

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.p(*args, **keywords)

    def __repr__(self) -> str:
        return repr(self.p)

    def with_args(self, **kwargs: Any) -> _PartialWrapper:
        """The same with further arguments."""
        return _PartialWrapper(partial(self, **kwargs))


def _with_args(cls: Any, **kwargs: Any) -> _PartialWrapper:
    return _PartialWrapper(partial(cls, **kwargs))


class ObserverBase(Module):
    """The base of observers: `forward` notes a tensor and returns it, `calculate_qparams` gives scale and zero point."""

    with_args = classmethod(_with_args)

    def __init__(self, dtype: DType, is_dynamic: bool = False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic


class UniformQuantizationObserverBase(ObserverBase):
    """The base of observers that choose equal steps between the least and the greatest number."""

    eps: Tensor
    min_val: Tensor
    max_val: Tensor

    def __init__(
        self,
        dtype: DType = quint8,
        qscheme: qscheme = PER_TENSOR,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: Any = None,
        eps: float = EPSILON,
        is_dynamic: bool = False,
        **kwargs: Any,
    ):
        super().__init__(dtype, is_dynamic)
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.register_buffer("eps", tensor([eps]))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        low, high = RANGES[QUANTIZED.get(dtype, dtype)] if dtype not in (float32,) else (0, 255)
        if quant_min is not None and quant_max is not None:
            low, high = quant_min, quant_max
        if reduce_range:
            low, high = low // 2, high // 2
        self.quant_min, self.quant_max = low, high
        self.register_buffer("min_val", tensor(float("inf")))
        self.register_buffer("max_val", tensor(float("-inf")))

    def _calculate_qparams(self, least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
        if least.numel() == 0 or bool((least > most).all()):
            return tensor([1.0]), tensor([0])
        middle = 0
        if self.qscheme in SYMMETRIC and QUANTIZED.get(self.dtype, self.dtype) is uint8:
            middle = (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
        least, most = least.reshape(-1), most.reshape(-1)
        return observed_qparams(
            least, most, self.quant_min, self.quant_max, self.qscheme, middle, float(self.eps)
        )

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scales and the zero points of the range that was observed."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *args: Any) -> None:
        for name in ("min_val", "max_val"):  # a range for each channel has the shape of the file
            if (found := state_dict.get(prefix + name)) is not None:
                getattr(self, name).resize_(found.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def reset_min_max_vals(self) -> None:
        """Forget what was observed."""
        self.min_val, self.max_val = tensor(float("inf")), tensor(float("-inf"))


class MinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest number of all tensors."""

    def _merged(self, least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
        return least.minimum(self.min_val), most.maximum(self.max_val)

    def _ends(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.amin(), x.amax()

    def forward(self, x_orig: Tensor) -> Tensor:
        """Note the tensor, and return it."""
        if x_orig.numel() == 0:
            return x_orig
        least, most = self._merged(*self._ends(x_orig.detach().to(float32)))
        for name, value in (("min_val", least), ("max_val", most)):
            kept = getattr(self, name)
            kept.resize_(value.shape).copy_(value)
        return x_orig


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Moving averages of the least and the greatest numbers."""

    def __init__(self, averaging_constant: float = 0.01, **kwargs: Any):
        self.averaging_constant = averaging_constant
        super().__init__(**kwargs)
        self.averaging_constant = averaging_constant

    def _merged(self, least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
        if self.min_val.numel() == 0 or bool(self.min_val.isinf().all()):
            return least, most
        share = self.averaging_constant
        return self.min_val + share * (least - self.min_val), self.max_val + share * (most - self.max_val)


class PerChannelMinMaxObserver(MinMaxObserver):
    """The least and the greatest number of each channel."""

    def __init__(self, ch_axis: int = 0, **kwargs: Any):
        super().__init__(**{"qscheme": PER_CHANNEL, **kwargs})
        self.ch_axis = ch_axis
        self.min_val, self.max_val = tensor([]), tensor([])

    def _ends(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows = x.movedim(self.ch_axis, 0).flatten(1) if x.dim() > 1 else x.reshape(-1, 1)
        return rows.amin(1), rows.amax(1)

    def _merged(self, least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
        return (least, most) if self.min_val.numel() == 0 else super()._merged(least, most)

    def reset_min_max_vals(self) -> None:
        """Forget what was observed."""
        self.min_val, self.max_val = tensor([]), tensor([])


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Moving averages of the least and the greatest number of each channel."""

    def __init__(self, averaging_constant: float = 0.01, **kwargs: Any):
        super().__init__(**kwargs)
        self.averaging_constant = averaging_constant

    _merged = MovingAverageMinMaxObserver._merged


class HistogramObserver(UniformQuantizationObserverBase):
    """A histogram of all numbers, and the range in which rounding costs the least error."""

    histogram: Tensor

    def __init__(self, bins: int = 2048, **kwargs: Any):
        super().__init__(**kwargs)
        self.bins, self.upsample_rate = bins, 16
        self.dst_nbins = 2 ** (8 * QUANTIZED.get(self.dtype, self.dtype).itemsize)
        self.register_buffer("histogram", tensor([0.0] * bins))

    def forward(self, x_orig: Tensor) -> Tensor:
        """Note the tensor, and return it."""
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach().to(float32)
        least, most = x.amin().item(), x.amax().item()
        counts: Any = None
        if float(self.min_val) <= float(self.max_val):
            before = self.min_val.item(), self.max_val.item()
            least, most = min(least, before[0]), max(most, before[1])
            counts = self.histogram
            if before != (least, most):
                counts = self._spread(counts, before, (least, most))
        found = histc(x, self.bins, min=least, max=most)
        self.histogram.copy_(found if counts is None else found + counts)
        self.min_val.fill_(least)
        self.max_val.fill_(most)
        return x_orig

    def _spread(self, counts: Tensor, before: tuple[float, float], after: tuple[float, float]) -> Tensor:
        """The histogram of one range over the bins of a wider one: each bin in parts, which go where their middles lie."""
        parts = counts.repeat_interleave(self.upsample_rate) / self.upsample_rate
        width = np.float32((before[1] - before[0]) / len(parts))
        middles = np.linspace(*before, len(parts) + 1, dtype=np.float32)[:-1] + np.float32(0.5) * width
        ends = np.linspace(*after, self.bins + 1, dtype=np.float32)
        places = np.clip(np.searchsorted(ends, middles, side="right") - 1, 0, self.bins - 1)
        return tensor(places).bincount(weights=parts, minlength=self.bins).to(float32)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point of the range with the least error."""
        if not float(self.min_val) <= float(self.max_val):
            return tensor([1.0]), tensor([0])
        return self._calculate_qparams(*self._non_linear_param_search())

    def _non_linear_param_search(self) -> tuple[Tensor, Tensor]:
        """The range with the least error: bins are left out at the end where more of them hold a given share of all numbers."""
        counts = self.histogram.numpy()
        sums = self.histogram.cumsum(0).numpy()
        total, share = float(self.histogram.sum()), 1e-5
        low_share, high_share, first, last, best = 0.0, 1.0, 0, self.bins - 1, float("inf")
        while low_share < high_share:
            next_low, next_high = low_share + share, high_share - share
            # Of a sum in float32 and a product in float64, PyTorch compares the float32 values.
            left = first + int(np.argmax(np.append(sums[first:last] >= np.float32(next_low * total), True)))
            reached = np.nonzero(sums[first + 1 : last + 1] <= np.float32(next_high * total))[0]
            right = first + 1 + int(reached[-1]) if len(reached) else first
            start, stop = first, last
            if left - first > last - right:
                start, low_share = left, next_low
            else:
                stop, high_share = right, next_high
            if (start, stop) == (first, last):
                continue
            error = self._error(counts, start, stop)
            if error > best:
                break
            best, first, last = error, start, stop
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * first, self.min_val + width * (last + 1)

    def _error(self, counts: np.ndarray, first: int, last: int) -> float:
        """The squared error of rounding to the steps of the bins `first` to `last`, with equal density within each bin."""
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        step = width * (last - first + 1) / self.dst_nbins
        if step == 0:
            return 0.0
        begin = ((np.arange(self.bins) - first) * np.float32(width)).astype(np.float32)
        end = begin + np.float32(width)
        steps = [np.clip(np.floor(each / np.float32(step)), 0, self.dst_nbins - 1) for each in (begin, end)]
        middles = [(each + np.float32(0.5)) * np.float32(step) for each in steps]
        density = counts / np.float32(width)
        half = np.float32(step / 2)

        def norm(low: Any, high: Any) -> np.ndarray:
            return density * (high * high * high - low * low * low) / np.float32(3)

        found = norm(begin - middles[0], half)
        found = found + (steps[1] - steps[0] - 1) * norm(-half, half)
        return float((found + norm(-half, end - middles[1])).sum(dtype=np.float32))


class FixedQParamsObserver(ObserverBase):
    """A scale and a zero point that are known beforehand."""

    def __init__(
        self, scale: float, zero_point: int, dtype: DType = quint8, qscheme: qscheme = PER_TENSOR,
        quant_min: int = 0, quant_max: int = 255, is_dynamic: bool = False, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(dtype, is_dynamic)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", tensor([scale]))
        self.register_buffer("zero_point", tensor([zero_point]))

    def forward(self, X: Tensor) -> Tensor:
        return X

    def calculate_qparams(self) -> tuple[Any, Any]:
        """The scale and the zero point that were given."""
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """An observer that notes nothing: it says which dtype a tensor is to have."""

    def __init__(self, dtype: DType = float32, custom_op_name: str = "", compute_dtype: Any = None, quant_min: Any = None,
                 quant_max: Any = None, qscheme: Any = None, eps: Any = None, is_dynamic: bool = False):  # fmt: skip
        super().__init__(dtype, is_dynamic)
        self.qscheme, self.quant_min, self.quant_max, self.eps = (
            qscheme or PER_TENSOR,
            quant_min,
            quant_max,
            eps,
        )
        self.custom_op = custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> Any:
        raise RuntimeError("calculate_qparams should not be called for PlaceholderObserver")


class NoopObserver(ObserverBase):
    """An observer that notes nothing."""

    def __init__(self, dtype: Any = None, custom_op_name: str = ""):
        super().__init__(dtype)
        self.custom_op = custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> Any:
        raise RuntimeError("calculate_qparams should not be called for NoopObserver")


_QINT8 = next(dtype for dtype in QUANTIZED if dtype.name == "qint8")
default_observer: Any = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer: Any = PlaceholderObserver
default_weight_observer: Any = MinMaxObserver.with_args(dtype=_QINT8, qscheme=SYMMETRIC[0])
default_histogram_observer: Any = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer: Any = PerChannelMinMaxObserver.with_args(
    dtype=_QINT8, qscheme=SYMMETRIC[1]
)
default_dynamic_quant_observer: Any = PlaceholderObserver.with_args(
    dtype=quint8, quant_min=0, quant_max=255, is_dynamic=True
)

__getattr__ = module_getattr(__name__)
