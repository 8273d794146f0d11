"""What quantized layers share: weights that are observed and quantized, and the parameters of results."""

from __future__ import annotations

from typing import Any

from .....compat.missing import module_getattr
from .....core.dtype import float32
from .....core.registry import FUNCTIONS
from .....core.tensor import Tensor
from .....nn import Module


class WeightedQuantizedModule(Module):
    """The base of layers with quantized weights."""

    @classmethod
    def from_reference(cls, ref_module: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The layer of a reference layer, which says how its weight is quantized, with the parameters of the result."""
        raise NotImplementedError(f"{cls.__name__}.from_reference")


def _quantize_weight(float_wt: Tensor, observer: Any) -> Tensor:
    """The weight with the scales and the zero points that an observer has chosen."""
    scale, zero_point = observer.calculate_qparams()
    weight = float_wt.detach().to(float32)
    if str(observer.qscheme).startswith("torch.per_tensor"):
        return FUNCTIONS["quantize_per_tensor"](weight, float(scale), int(zero_point), observer.dtype)
    if not zero_point.is_floating_point():
        scale, zero_point = scale.double(), zero_point.long()
    return FUNCTIONS["quantize_per_channel"](weight, scale, zero_point, observer.ch_axis, observer.dtype)


def observed_weight(weight: Tensor, observer: Any) -> Tensor:
    """The quantized weight. An observer that has seen nothing notes the weight first."""
    observer(weight)
    return _quantize_weight(weight, observer)


def result_parameters(module: Any) -> tuple[float, int]:
    """The scale and the zero point for the results of a module that was observed."""
    scale, zero_point = module.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


__getattr__ = module_getattr(__name__)
