"""Layers of floats, one after the other, that are quantized as one."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any, ClassVar

from .....core.tensor import Tensor
from .....nn import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    Conv3d,
    LeakyReLU,
    Linear,
    Module,
    ReLU,
    Sequential,
    Tanh,
)
from .....nn.utils.parametrize import type_before_parametrizations


class _FusedModule(Sequential):
    """The base of all layers that are quantized as one."""


class _Layers(_FusedModule):
    """Layers of given classes. The keywords of a subclass are the names of the arguments and the class of each layer."""

    _layers: ClassVar[dict[str, type[Module]]]
    __signature__: ClassVar[Signature]

    def __init_subclass__(cls, **layers: type[Module]) -> None:
        super().__init_subclass__()
        if layers:
            cls._layers = layers
            cls.__signature__ = Signature(
                [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in layers]
            )

    def __init__(self, *args: Any, **kwargs: Any):
        given = self.__signature__.bind(*args, **kwargs).arguments.values()
        found = [type_before_parametrizations(layer) for layer in given]
        if found != [*self._layers.values()]:
            names, wanted = (
                ", ".join(each.__name__ for each in kinds) for kinds in (found, self._layers.values())
            )
            raise AssertionError(
                f"Incorrect types for input modules: {names}, but {type(self).__name__} holds {wanted}"
            )
        super().__init__(*given)


class ConvReLU1d(_Layers, conv=Conv1d, relu=ReLU):
    """Conv1d, then ReLU."""


class ConvReLU2d(_Layers, conv=Conv2d, relu=ReLU):
    """Conv2d, then ReLU."""


class ConvReLU3d(_Layers, conv=Conv3d, relu=ReLU):
    """Conv3d, then ReLU."""


class LinearReLU(_Layers, linear=Linear, relu=ReLU):
    """Linear, then ReLU."""


class ConvBn1d(_Layers, conv=Conv1d, bn=BatchNorm1d):
    """Conv1d, then BatchNorm1d."""


class ConvBn2d(_Layers, conv=Conv2d, bn=BatchNorm2d):
    """Conv2d, then BatchNorm2d."""


class ConvBn3d(_Layers, conv=Conv3d, bn=BatchNorm3d):
    """Conv3d, then BatchNorm3d."""


class ConvBnReLU1d(_Layers, conv=Conv1d, bn=BatchNorm1d, relu=ReLU):
    """Conv1d, BatchNorm1d, then ReLU."""


class ConvBnReLU2d(_Layers, conv=Conv2d, bn=BatchNorm2d, relu=ReLU):
    """Conv2d, BatchNorm2d, then ReLU."""


class ConvBnReLU3d(_Layers, conv=Conv3d, bn=BatchNorm3d, relu=ReLU):
    """Conv3d, BatchNorm3d, then ReLU."""


class BNReLU2d(_Layers, batch_norm=BatchNorm2d, relu=ReLU):
    """BatchNorm2d, then ReLU."""


class BNReLU3d(_Layers, batch_norm=BatchNorm3d, relu=ReLU):
    """BatchNorm3d, then ReLU."""


class LinearBn1d(_Layers, linear=Linear, bn=BatchNorm1d):
    """Linear, then BatchNorm1d."""


class LinearLeakyReLU(_Layers, linear=Linear, leaky_relu=LeakyReLU):
    """Linear, then LeakyReLU."""


class LinearTanh(_Layers, linear=Linear, tanh=Tanh):
    """Linear, then Tanh."""


class ConvAdd2d(_FusedModule):
    """A convolution, whose result is added to a second input by `add(result, x2)`."""

    def __init__(self, conv: Any, add: Any):
        super().__init__(conv)
        self.add = add

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:  # type: ignore[override]  # of two inputs
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """ConvAdd2d, then `relu`."""

    def __init__(self, conv: Any, add: Any, relu: Any):
        super().__init__(conv)
        self.add, self.relu = add, relu

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:  # type: ignore[override]  # of two inputs
        return self.relu(self.add(self[0](x1), x2))
