"""FakeQuantize: a module that observes tensors and rounds them to the numbers that the quantized model will have."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...core.dtype import QUANTIZED, float32, int32, qint8, quint4x2, quint8, uint8
from ...core.limits import iinfo
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...ops.creation.from_data import tensor
from ...ops.elementwise.fake_quantization import fused_moving_avg_obs_fake_quant
from .observer import (
    FLOAT_QPARAMS,
    PER_TENSOR,
    SYMMETRIC,
    ActivationPostProcess,
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)


class FakeQuantizeBase(ActivationPostProcess):
    """The base: whether the module observes, and whether it rounds, are buffers of one element."""

    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", tensor([1], dtype=uint8))
        self.register_buffer("observer_enabled", tensor([1], dtype=uint8))

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Round from now on."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        """Let tensors pass as they are."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Observe from now on."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        """Keep the scales and the zero points."""
        self.enable_observer(False)

    def _switches(self) -> str:
        return f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}"


def _check_range(quant_min: int, quant_max: int, *keywords: dict[str, Any]) -> None:
    """Raise AssertionError unless the observer's dtype, quint8 by default, has the numbers. keywords: the observer's."""
    if quant_min > quant_max:
        raise AssertionError("quant_min must be less than or equal to quant_max")
    dtype = next((each["dtype"] for each in keywords if "dtype" in each), quint8)
    bounds = iinfo(QUANTIZED.get(dtype, dtype))
    if bounds.min > quant_min or quant_max > bounds.max:
        raise AssertionError(
            f"quant_min and quant_max out of bound: {quant_min}, {quant_max}, but {dtype} is given"
        )


class FakeQuantize(FakeQuantizeBase):
    """Rounds as quantizing and dequantizing would, with the scale and the zero point of an observer."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ):
        super().__init__()
        if quant_min is not None and quant_max is not None:
            _check_range(
                quant_min, quant_max, getattr(observer, "p", partial(observer)).keywords, observer_kwargs
            )
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        self.activation_post_process = observer(is_dynamic=is_dynamic, **observer_kwargs)
        made = self.activation_post_process
        self.quant_min, self.quant_max, self.is_dynamic = made.quant_min, made.quant_max, made.is_dynamic
        self.dtype, self.qscheme = made.dtype, made.qscheme
        self.ch_axis = getattr(made, "ch_axis", -1)
        self.is_per_channel = self.qscheme not in (PER_TENSOR, SYMMETRIC[0])
        self.register_buffer("scale", tensor([1.0]))
        self.register_buffer(
            "zero_point", tensor([0], dtype=float32 if self.qscheme is FLOAT_QPARAMS else int32)
        )

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point of what was observed."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X: Tensor) -> Tensor:
        if int(self.observer_enabled[0]):
            self.activation_post_process(X.detach())
            scale, zero_point = self.calculate_qparams()
            self.scale.resize_(scale.shape).copy_(scale)
            self.zero_point.resize_(zero_point.shape).copy_(zero_point)
        if not int(self.fake_quant_enabled[0]):
            return X
        name = f"fake_quantize_per_{'channel' if self.is_per_channel else 'tensor'}_affine"
        axis = (self.ch_axis,) if self.is_per_channel else ()
        return FUNCTIONS[name](X, self.scale, self.zero_point, *axis, self.quant_min, self.quant_max)

    def extra_repr(self) -> str:
        return (
            f"{self._switches()}, "
            f"quant_min={self.quant_min}, quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *args: Any) -> None:
        for name in ("scale", "zero_point"):
            if (found := state_dict.get(prefix + name)) is not None:
                getattr(self, name).resize_(found.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds with the scale and the zero point of a FixedQParamsObserver."""

    def __init__(self, observer: Any):
        super().__init__(observer=observer)
        made = self.activation_post_process
        if type(made) is not FixedQParamsObserver:
            raise AssertionError(f"{type(self).__name__}'s observer must be a FixedQParamsObserver")
        if self.is_per_channel:
            raise AssertionError(
                f"{type(self).__name__} rounds whole tensors only, got qscheme: {self.qscheme}"
            )
        self._observer_ctr = observer
        self.scale, self.zero_point = made.scale, made.zero_point

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point that were given."""
        return self.scale, self.zero_point

    def extra_repr(self) -> str:
        return (
            f"{self._switches()}, scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}, "
            f"quant_min={self.quant_min}, quant_max={self.quant_max}, qscheme={self.qscheme}"
        )


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """A FakeQuantize with a moving average, which observes and rounds in one step.

    The scale and the zero point are computed as those of quantized tensors that are quantized when they are used, in
    float64, and not as the observer's.
    """

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int = 0,
        quant_max: int = 255,
        **observer_kwargs: Any,
    ):
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        made = self.activation_post_process
        if not isinstance(made, (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)):
            raise AssertionError(
                "Fused observer+fake_quant module only works with MovingAverageMinMaxObserver"
            )
        for name in ("fake_quant_enabled", "observer_enabled"):
            self.register_buffer(name, tensor([1]))
        self.is_symmetric_quant = made.qscheme in SYMMETRIC

    def forward(self, X: Tensor) -> Tensor:
        made = self.activation_post_process
        return fused_moving_avg_obs_fake_quant(
            X, self.observer_enabled, self.fake_quant_enabled, made.min_val, made.max_val, self.scale, self.zero_point,
            made.averaging_constant, made.quant_min, made.quant_max, self.ch_axis, self.is_per_channel,
            self.is_symmetric_quant,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"{self._switches()}, scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}, "
            f"quant_min={self.quant_min}, quant_max={self.quant_max}, qscheme={self.qscheme}, "
            f"reduce_range={self.activation_post_process.reduce_range}"
        )


# ---- Constructors with the usual arguments ------------------------------------------------------------------------------

_BYTES: dict[str, Any] = {"quant_min": 0, "quant_max": 255, "dtype": quint8}
_SIGNED: dict[str, Any] = {"quant_min": -128, "quant_max": 127, "dtype": qint8}
# XNNPACK's weights have no -128, and its scales have a lower bound.
_NARROW: dict[str, Any] = {"quant_min": -127, "quant_max": 127, "dtype": qint8, "eps": 2**-12}
_AVERAGE: dict[str, Any] = {"observer": MovingAverageMinMaxObserver}
_WEIGHT: dict[str, Any] = {"observer": MovingAverageMinMaxObserver, "qscheme": SYMMETRIC[0]}
_ROWS: dict[str, Any] = {"observer": MovingAveragePerChannelMinMaxObserver, "qscheme": SYMMETRIC[1]}
_TABLE: dict[str, Any] = {
    "observer": MovingAveragePerChannelMinMaxObserver,
    "qscheme": FLOAT_QPARAMS,
    "ch_axis": 0,
    "averaging_constant": 1,
}

default_fake_quant: Any = FakeQuantize.with_args(**_AVERAGE, **_BYTES, qscheme=PER_TENSOR, reduce_range=True)
default_weight_fake_quant: Any = FakeQuantize.with_args(**_WEIGHT, **_SIGNED, reduce_range=False)
default_dynamic_fake_quant: Any = FakeQuantize.with_args(
    **_AVERAGE, **_BYTES, is_dynamic=True, averaging_constant=1
)
default_per_channel_weight_fake_quant: Any = FakeQuantize.with_args(
    **_ROWS, **_SIGNED, reduce_range=False, ch_axis=0
)
default_embedding_fake_quant: Any = FakeQuantize.with_args(**_TABLE, **_BYTES)
default_embedding_fake_quant_4bit: Any = FakeQuantize.with_args(**_TABLE, dtype=quint4x2)
default_histogram_fake_quant: Any = FakeQuantize.with_args(
    observer=HistogramObserver, **_BYTES, qscheme=PER_TENSOR, reduce_range=True
)
default_fixed_qparams_range_neg1to1_fake_quant: Any = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant: Any = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_fused_act_fake_quant: Any = FusedMovingAvgObsFakeQuantize.with_args(**_AVERAGE, **_BYTES)
default_fused_wt_fake_quant: Any = FusedMovingAvgObsFakeQuantize.with_args(**_WEIGHT, **_SIGNED)
default_fused_per_channel_wt_fake_quant: Any = FusedMovingAvgObsFakeQuantize.with_args(**_ROWS, **_SIGNED)
fused_wt_fake_quant_range_neg_127_to_127: Any = FusedMovingAvgObsFakeQuantize.with_args(**_WEIGHT, **_NARROW)
fused_per_channel_wt_fake_quant_range_neg_127_to_127: Any = FusedMovingAvgObsFakeQuantize.with_args(
    **_ROWS, **_NARROW
)


def _switch(name: str) -> Any:
    def switch(mod: Any) -> None:
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()

    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = f"`model.apply({name})`: call the method of this name of each FakeQuantize."
    return switch


enable_fake_quant = _switch("enable_fake_quant")
disable_fake_quant = _switch("disable_fake_quant")
enable_observer = _switch("enable_observer")
disable_observer = _switch("disable_observer")
