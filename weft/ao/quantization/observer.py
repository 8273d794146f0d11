"""Observers: modules that note the range of the tensors that pass them, and choose scales and zero points for it."""

from __future__ import annotations

import math
import warnings
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...core.dtype import (
    QUANTIZED,
    DType,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    int8,
    int16,
    int32,
    qint8,
    quint4x2,
    quint8,
    uint8,
    uint16,
)
from ...core.qscheme import SCHEMES, qscheme
from ...core.tensor import Tensor
from ...core.warn import user_level
from ...layouts.quantized.ranges import EPSILON
from ...nn import Module
from ...nn.factory import factory_kwargs as nn_factory_kwargs
from ...ops.creation.from_data import tensor
from ...ops.reductions.histograms import histc
from .utils import calculate_qmin_qmax, check_min_max_valid, qparams_of_range, validate_qmin_qmax

FLOAT_QPARAMS = SCHEMES["per_channel_affine_float_qparams"]
PER_TENSOR, PER_CHANNEL = SCHEMES["per_tensor_affine"], SCHEMES["per_channel_affine"]
# The schemes with one scale, and those with one for each channel.
WHOLE: tuple[qscheme, ...] = PER_TENSOR, SCHEMES["per_tensor_symmetric"]
EACH_CHANNEL = tuple(each for each in SCHEMES.values() if each not in WHOLE)
# The dtypes of observed ranges, but those of which PyTorch has no ranges.
_DTYPES = (
    *(each for each in QUANTIZED if each.name != "quint2x4"),
    int8,
    uint8,
    int16,
    int32,
    float8_e5m2,
    float8_e4m3fn,
    uint16,
)
SYMMETRIC = SCHEMES["per_tensor_symmetric"], SCHEMES["per_channel_symmetric"]


class _PartialWrapper:
    """A class of modules with some arguments of its constructor. The functions in `callable_args` are called for each module."""

    def __init__(self, p: partial):
        self.p = p
        self.callable_args: dict[str, Callable[[], Any]] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        found = {name: get() for name, get in self.callable_args.items() if name not in keywords}
        return self.p(*args, **keywords, **found)

    def __repr__(self) -> str:
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs: Any) -> _PartialWrapper:
        """The same with further arguments."""
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs: Callable[[], Any]) -> _PartialWrapper:
        """The same with further arguments, which functions give."""
        made = _PartialWrapper(self.p)
        made.callable_args = {**self.callable_args, **kwargs}
        return made


def _with_args(cls: Any, **kwargs: Any) -> _PartialWrapper:
    return _PartialWrapper(partial(cls, **kwargs))


def _with_callable_args(cls: Any, **kwargs: Callable[[], Any]) -> _PartialWrapper:
    return _with_args(cls).with_callable_args(**kwargs)


class ActivationPostProcess(Module):
    """The base of modules that observe, and perhaps round, the result of another module."""

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)


class ObserverBase(ActivationPostProcess):
    """The base of observers: `forward` notes a tensor and returns it, `calculate_qparams` gives scale and zero point."""

    def __init__(self, dtype: DType, is_dynamic: bool = False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic


class UniformQuantizationObserverBase(ObserverBase):
    """The base of observers that choose equal steps between the least and the greatest number."""

    _version = 3
    _schemes: ClassVar[tuple[qscheme, ...]] = (*SCHEMES.values(),)
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
        factory = nn_factory_kwargs(factory_kwargs)
        self.register_buffer("eps", tensor([eps], **factory))
        if qscheme not in self._schemes:
            raise NotImplementedError(f"{type(self).__name__} has the schemes {self._schemes}, not {qscheme}")
        if dtype not in _DTYPES:
            raise AssertionError(f"Default Observer only works for {_DTYPES} data type, got {dtype}")
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if quant_min is not None and quant_max is not None:
            validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = calculate_qmin_qmax(
            quant_min, quant_max, self.has_customized_qrange, dtype, reduce_range
        )
        self.register_buffer("min_val", tensor(float("inf"), **factory))
        self.register_buffer("max_val", tensor(float("-inf"), **factory))

    def _calculate_qparams(self, least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
        if not check_min_max_valid(least, most):
            return tensor([1.0]), tensor([0])
        return qparams_of_range(
            least, most, self.quant_min, self.quant_max, self.dtype, float(self.eps), self.has_customized_qrange,
            self.qscheme,
        )  # fmt: skip

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scales and the zero points of the range that was observed."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *rest: Any) -> None:
        if (local_metadata.get("version") or 1) < 2:
            state_dict.setdefault(f"{prefix}eps", tensor([EPSILON]))
        for name in ("min_val", "max_val"):
            if (old := f"{prefix}{name}s") in state_dict:  # the name in files before version 3
                state_dict[prefix + name] = state_dict.pop(old)
            # A range for each channel has the shape of the file.
            if (found := state_dict.get(prefix + name)) is not None:
                getattr(self, name).resize_(found.shape)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def reset_min_max_vals(self) -> None:
        """Forget what was observed."""
        self.min_val, self.max_val = tensor(float("inf")), tensor(float("-inf"))


class MinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest number of all tensors."""

    _schemes = WHOLE

    def _merged(self, least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
        return least.minimum(self.min_val), most.maximum(self.max_val)

    def _ends(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.amin(), x.amax()

    def forward(self, x_orig: Tensor) -> Tensor:
        """Note the tensor, and return it."""
        if x_orig.numel() == 0:
            return x_orig
        least, most = self._merged(*self._ends(x_orig.detach().to(self.min_val.dtype)))
        for name, value in (("min_val", least), ("max_val", most)):
            kept = getattr(self, name)
            kept.resize_(value.shape).copy_(value)
        return x_orig


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Moving averages of the least and the greatest numbers."""

    def __init__(self, averaging_constant: float = 0.01, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.averaging_constant = averaging_constant

    def _merged(self, least: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
        is_unset = self.min_val.numel() == 0 or bool(
            (self.min_val == math.inf).all() & (self.max_val == -math.inf).all()
        )
        if is_unset:
            return least, most
        share = self.averaging_constant
        return self.min_val + share * (least - self.min_val), self.max_val + share * (most - self.max_val)


class PerChannelMinMaxObserver(MinMaxObserver):
    """The least and the greatest number of each channel."""

    _schemes = EACH_CHANNEL

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: DType = quint8,
        qscheme: qscheme = PER_CHANNEL,
        *args: Any,
        **kwargs: Any,
    ):
        super().__init__(dtype, qscheme, *args, **kwargs)
        self.ch_axis = ch_axis
        self.min_val, self.max_val = self.min_val.new_empty(0), self.max_val.new_empty(0)

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

    def __init__(self, averaging_constant: float = 0.01, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.averaging_constant = averaging_constant

    _merged = MovingAverageMinMaxObserver._merged


class HistogramObserver(UniformQuantizationObserverBase):
    """A histogram of all numbers, and the range in which rounding costs the least error."""

    _schemes = WHOLE
    histogram: Tensor

    def __init__(self, bins: int = 2048, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.bins, self.upsample_rate = bins, 16
        self.dst_nbins = 2 ** (8 * QUANTIZED.get(self.dtype, self.dtype).itemsize)
        self.register_buffer("histogram", tensor([0.0] * bins))

    def forward(self, x_orig: Tensor) -> Tensor:
        """Note the tensor, and return it."""
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach().to(float32)
        least, most = x.amin().item(), x.amax().item()
        if math.inf in (-least, most):
            warnings.warn("HistogramObserver: infinite numbers are not counted", stacklevel=user_level())
            x = x[x.isfinite()]
            if x.numel() == 0:
                return x_orig
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
            error = self._compute_quantization_error(start, stop)
            if error > best:
                break
            best, first, last = error, start, stop
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * first, self.min_val + width * (last + 1)

    def _compute_quantization_error(self, first: int, last: int) -> float:
        """The squared error of rounding to the steps of the bins `first` to `last`, with equal density within each bin."""
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        step = width * (last - first + 1) / self.dst_nbins
        if step == 0:
            return 0.0
        begin = ((np.arange(self.bins) - first) * np.float32(width)).astype(np.float32)
        end = begin + np.float32(width)
        steps = [np.clip(np.floor(each / np.float32(step)), 0, self.dst_nbins - 1) for each in (begin, end)]
        middles = [(each + np.float32(0.5)) * np.float32(step) for each in steps]
        density = self.histogram.numpy() / np.float32(width)
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
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", tensor([scale], dtype=float32))
        self.register_buffer("zero_point", tensor([zero_point], dtype=int32))

    def forward(self, X: Tensor) -> Tensor:
        return X

    def calculate_qparams(self) -> tuple[Any, Any]:
        """The scale and the zero point that were given."""
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """An observer that notes nothing: it says which dtype a tensor is to have."""

    chooses_parameters = False

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

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


class NoopObserver(ObserverBase):
    """An observer that notes nothing."""

    def __init__(self, dtype: DType = float16, custom_op_name: str = ""):
        super().__init__(dtype)
        self.custom_op = custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> Any:
        raise RuntimeError("calculate_qparams should not be called for NoopObserver")


class ReuseInputObserver(ObserverBase):
    """An observer that notes nothing, because the input of the layer has been observed."""

    def __init__(self) -> None:
        super().__init__(quint8)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> Any:
        raise RuntimeError("calculate_qparams should not be called for ReuseInputObserver")


class RecordingObserver(ObserverBase):
    """An observer that keeps copies of all tensors."""

    def __init__(self, dtype: DType = quint8):
        super().__init__(dtype)
        self.tensor_val: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self) -> Any:
        raise RuntimeError("calculate_qparams should not be called for RecordingObserver")

    def get_tensor_value(self) -> list[Tensor]:
        """The copies."""
        return self.tensor_val


# ---- The numbers of observers in files -----------------------------------------------------------------------------------


def get_observer_state_dict(mod: Module) -> OrderedDict:
    """The entries of the state_dict that belong to observers."""
    state = mod.state_dict()
    found = OrderedDict((name, value) for name, value in state.items() if "activation_post_process" in name)
    found._metadata = state._metadata  # type: ignore[attr-defined]
    return found


def load_observer_state_dict(mod: Module, obs_dict: dict) -> None:
    """Give the observers of a model what `get_observer_state_dict` found.

    Raises: Exception if an entry is missing, or has no observer.
    """
    missing: list[str] = []
    unexpected: list[str] = []
    for name, module in mod.named_modules():
        if isinstance(module, ActivationPostProcess):
            module._load_from_state_dict(obs_dict, f"{name}.", {}, False, missing, unexpected, [])
    for kind, names in (("Missing", missing), ("Unexpected", unexpected)):
        for name in names:
            if "observer" in name or "activation_post_process" in name:
                raise Exception(f"{kind} keys for observer {name} in state_dict")  # noqa: TRY002 (PyTorch's class)


# ---- Constructors with the usual arguments -------------------------------------------------------------------------------

# XNNPACK's weights have no -128, and its scales have a lower bound.
_NARROW: dict[str, Any] = {"dtype": qint8, "quant_min": -127, "quant_max": 127, "eps": 2**-12}
_BYTES: dict[str, Any] = {"dtype": quint8, "quant_min": 0, "quant_max": 255}

default_observer: Any = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer: Any = PlaceholderObserver
default_debug_observer: Any = RecordingObserver
default_reuse_input_observer: Any = ReuseInputObserver
default_weight_observer: Any = MinMaxObserver.with_args(dtype=qint8, qscheme=SYMMETRIC[0])
weight_observer_range_neg_127_to_127: Any = MinMaxObserver.with_args(qscheme=SYMMETRIC[0], **_NARROW)
default_histogram_observer: Any = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer: Any = PerChannelMinMaxObserver.with_args(
    dtype=qint8, qscheme=SYMMETRIC[1]
)
per_channel_weight_observer_range_neg_127_to_127: Any = PerChannelMinMaxObserver.with_args(
    qscheme=SYMMETRIC[1], **_NARROW
)
default_dynamic_quant_observer: Any = PlaceholderObserver.with_args(**_BYTES, is_dynamic=True)
default_float_qparams_observer: Any = PerChannelMinMaxObserver.with_args(
    dtype=quint8, qscheme=FLOAT_QPARAMS, ch_axis=0
)
default_float_qparams_observer_4bit: Any = PerChannelMinMaxObserver.with_args(
    dtype=quint4x2, qscheme=FLOAT_QPARAMS, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer: Any = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, **_BYTES
)
default_fixed_qparams_range_0to1_observer: Any = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, **_BYTES
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
