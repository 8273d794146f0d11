"""FakeQuantize: a module that observes tensors and rounds them to the numbers that the quantized model will have."""

from __future__ import annotations

from typing import Any

from ...compat.missing import module_getattr
from ...core.dtype import QUANTIZED, int32, uint8
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...nn import Module
from ...ops.creation.from_data import tensor
from .observer import (
    PER_TENSOR,
    SYMMETRIC,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    _with_args,
)


class FakeQuantizeBase(Module):
    """The base: whether the module observes, and whether it rounds, are buffers of one element."""

    with_args = classmethod(_with_args)
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
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        self.activation_post_process = observer(is_dynamic=is_dynamic, **observer_kwargs)
        made = self.activation_post_process
        self.quant_min, self.quant_max, self.is_dynamic = made.quant_min, made.quant_max, is_dynamic
        self.dtype, self.qscheme = made.dtype, made.qscheme
        self.ch_axis = getattr(made, "ch_axis", -1)
        self.is_per_channel = self.qscheme not in (PER_TENSOR, SYMMETRIC[0])
        self.register_buffer("scale", tensor([1.0]))
        self.register_buffer("zero_point", tensor([0], dtype=int32))

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
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={self.quant_min}, quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *args: Any) -> None:
        for name in ("scale", "zero_point"):
            if (found := state_dict.get(prefix + name)) is not None:
                getattr(self, name).resize_(found.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)


_QINT8 = next(dtype for dtype in QUANTIZED if dtype.name == "qint8")
default_fake_quant: Any = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, reduce_range=True
)
default_weight_fake_quant: Any = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=_QINT8,
    qscheme=SYMMETRIC[0],
    reduce_range=False,
)
default_per_channel_weight_fake_quant: Any = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127, dtype=_QINT8, qscheme=SYMMETRIC[1],
    reduce_range=False, ch_axis=0,
)  # fmt: skip


def _switch(name: str) -> Any:
    def switch(mod: Any) -> None:
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()

    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = f"`model.apply({name})`: call the method of this name of each FakeQuantize."
    return switch


enable_fake_quant, disable_fake_quant = _switch("enable_fake_quant"), _switch("disable_fake_quant")
enable_observer, disable_observer = _switch("enable_observer"), _switch("disable_observer")

__getattr__ = module_getattr(__name__)
