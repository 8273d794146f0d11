"""Two layers of floats, one after the other, that are quantized as one."""

from __future__ import annotations

from typing import Any

from .....compat.missing import module_getattr
from .....nn import (
    Conv1d,
    Conv2d,
    Conv3d,
    Linear,
    Module,
    ReLU,
    Sequential,
)


class _FusedModule(Sequential):
    _first: type[Module]

    def __init__(self, first: Any, relu: Any):
        if type(first) is not self._first or type(relu) is not ReLU:
            raise AssertionError(
                f"Incorrect types for input modules: {type(first).__name__} and {type(relu).__name__}, but {type(self).__name__} holds "
                f"{self._first.__name__} and ReLU"
            )
        super().__init__(first, relu)


class LinearReLU(_FusedModule):
    """Linear, then ReLU."""

    _first = Linear

    def __init__(self, linear: Any, relu: Any):
        super().__init__(linear, relu)


class ConvReLU1d(_FusedModule):
    """Conv1d, then ReLU."""

    _first = Conv1d

    def __init__(self, conv: Any, relu: Any):
        super().__init__(conv, relu)


class ConvReLU2d(_FusedModule):
    """Conv2d, then ReLU."""

    _first = Conv2d

    def __init__(self, conv: Any, relu: Any):
        super().__init__(conv, relu)


class ConvReLU3d(_FusedModule):
    """Conv3d, then ReLU."""

    _first = Conv3d

    def __init__(self, conv: Any, relu: Any):
        super().__init__(conv, relu)


__getattr__ = module_getattr(__name__)
