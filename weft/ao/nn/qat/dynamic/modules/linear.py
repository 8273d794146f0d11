"""The linear layer for quantization-aware training whose input is quantized when it is called."""

from __future__ import annotations

from typing import Any

from ....layers import activation_is_memoryless
from ...modules.linear import Linear as StaticLinear


class Linear(StaticLinear):
    """A linear layer whose weight is rounded. The QConfig must observe each input anew (averaging_constant=1)."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(in_features, out_features, bias, qconfig, device, dtype)
        if not activation_is_memoryless(qconfig):
            raise ValueError(
                "Dynamic QAT requires a memoryless observer.This means a MovingAverage observer with averaging constant equal to 1"
            )
