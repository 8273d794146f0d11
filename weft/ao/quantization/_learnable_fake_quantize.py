"""A FakeQuantize whose scale and zero point are trained."""

from __future__ import annotations

import math
from typing import Any

from ...core.dtype import QUANTIZED, uint8
from ...core.limits import iinfo
from ...core.tensor import Tensor
from ...nn import Parameter
from ...ops.creation.from_data import tensor
from ...ops.elementwise.fake_quantization import (
    _fake_quantize_learnable_per_channel_affine,
    _fake_quantize_learnable_per_tensor_affine,
)
from .fake_quantize import FakeQuantizeBase
from .observer import EPSILON, PER_CHANNEL, SYMMETRIC


class _LearnableFakeQuantize(FakeQuantizeBase):
    """Rounds with a scale and a zero point that an observer chooses first, and gradients improve later.

    channel_len: the number of scales, if there is one for each channel. use_grad_scaling: divide the gradients of scale
    and zero point by the square root of the number of elements times `quant_max`.
    Source: Esser et al. 2020, "Learned step size quantization".
    """

    static_enabled: Tensor
    learning_enabled: Tensor
    eps: Tensor

    def __init__(
        self,
        observer: Any,
        quant_min: int = 0,
        quant_max: int = 255,
        scale: float = 1.0,
        zero_point: float = 0.0,
        channel_len: int = -1,
        use_grad_scaling: bool = False,
        **observer_kwargs: Any,
    ):
        super().__init__()
        if quant_min >= quant_max:
            raise AssertionError("quant_min must be strictly less than quant_max.")
        if channel_len != -1 and not (isinstance(channel_len, int) and channel_len > 0):
            raise AssertionError("Channel size must be a positive integer.")
        self.quant_min, self.quant_max, self.use_grad_scaling = quant_min, quant_max, use_grad_scaling
        length = 1 if channel_len == -1 else channel_len
        self.scale, self.zero_point = (Parameter(tensor([each] * length)) for each in (scale, zero_point))
        made = observer(**{**observer_kwargs, "quant_min": quant_min, "quant_max": quant_max})
        self.activation_post_process = made
        bounds = iinfo(QUANTIZED.get(made.dtype, made.dtype))
        if quant_min < bounds.min or quant_max > bounds.max:
            raise AssertionError("quant_min and quant_max out of bound")
        self.dtype, self.qscheme, self.ch_axis = made.dtype, made.qscheme, getattr(made, "ch_axis", -1)
        for name, value in (("fake_quant", 1), ("static", 1), ("learning", 0)):
            self.register_buffer(f"{name}_enabled", tensor([value], dtype=uint8))
        self.bitwidth = int(math.log2(quant_max - quant_min + 1))
        self.register_buffer("eps", tensor([EPSILON]))

    def enable_param_learning(self) -> _LearnableFakeQuantize:
        """Round, and train the scale and the zero point, from now on."""
        return self.toggle_qparam_learning(True).toggle_fake_quant(True).toggle_observer_update(False)

    def enable_static_estimate(self) -> None:
        """Round, and observe, from now on."""
        self.toggle_qparam_learning(False).toggle_fake_quant(True).toggle_observer_update(True)

    def enable_static_observation(self) -> None:
        """Observe from now on, and let tensors pass as they are."""
        self.toggle_qparam_learning(False).toggle_fake_quant(False).toggle_observer_update(True)

    def toggle_observer_update(self, enabled: bool = True) -> _LearnableFakeQuantize:
        """Observe from now on, or do not."""
        self.static_enabled[0] = int(enabled)
        return self

    def enable_observer(self, enabled: bool = True) -> None:
        """Observe from now on, or do not."""
        self.toggle_observer_update(enabled)

    def toggle_qparam_learning(self, enabled: bool = True) -> _LearnableFakeQuantize:
        """Train the scale and the zero point from now on, or do not."""
        self.learning_enabled[0] = int(enabled)
        self.scale.requires_grad = self.zero_point.requires_grad = enabled
        return self

    def toggle_fake_quant(self, enabled: bool = True) -> _LearnableFakeQuantize:
        """Round from now on, or do not."""
        self.fake_quant_enabled[0] = int(enabled)
        return self

    def observe_quant_params(self) -> None:
        """Print the scale and the zero point."""
        print(f"_LearnableFakeQuantize Scale: {self.scale.detach()}")
        print(f"_LearnableFakeQuantize Zero Point: {self.zero_point.detach()}")

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point, an integer."""
        self.scale.data.clamp_(min=float(self.eps))
        return self.scale.detach(), self.zero_point.detach().round().clamp(
            self.quant_min, self.quant_max
        ).long()

    def forward(self, X: Tensor) -> Tensor:
        if int(self.static_enabled[0]):
            self.activation_post_process(X.detach())
            scale, zero_point = self.activation_post_process.calculate_qparams()
            self.scale.data.copy_(scale)
            self.zero_point.data.copy_(zero_point)
        else:
            self.scale.data.clamp_(min=float(self.eps))
        if not int(self.fake_quant_enabled[0]):
            return X
        if self.qscheme in SYMMETRIC:
            self.zero_point.data.zero_()
        factor = 1.0 / math.sqrt(X.numel() * self.quant_max) if self.use_grad_scaling else 1.0
        bounds = self.quant_min, self.quant_max, factor
        if self.qscheme in (PER_CHANNEL, SYMMETRIC[1]):
            return _fake_quantize_learnable_per_channel_affine(
                X, self.scale, self.zero_point, self.ch_axis, *bounds
            )
        return _fake_quantize_learnable_per_tensor_affine(X, self.scale, self.zero_point, *bounds)
