"""What quantized tensors tell of themselves: their integers, their numbers, the parameters of their quantizers."""

from __future__ import annotations

from typing import Any

from ...core.device import device
from ...core.dtype import LEGACY_NAMES, DType
from ...core.qscheme import qscheme
from ...core.tensor import Tensor
from ...ops.assembly.copying import parse_to
from .quantizers import PerChannel, scheme_of
from .rules import QUANTIZED
from .tensors import BITS, dequantize, plain, quantized, quantizer_of
from .tensors import per_tensor as require_per_tensor

rule = QUANTIZED.rule


@rule("int_repr")
def int_repr(self: Tensor) -> Tensor:
    return plain(self).clone()


@rule("dequantize")
def _dequantize(input: Any) -> Any:
    if isinstance(input, Tensor):
        return dequantize(input)
    return [each.dequantize() for each in input]


@rule("qscheme")
def _qscheme(self: Tensor) -> qscheme:
    return scheme_of(quantizer_of(self))


@rule("q_scale")
def q_scale(self: Tensor) -> float:
    return require_per_tensor(self, "q_scale").scale


@rule("q_zero_point")
def q_zero_point(self: Tensor) -> int:
    return require_per_tensor(self, "q_zero_point").zero_point


def _channels(self: Tensor, function: str) -> PerChannel:
    quantizer = quantizer_of(self)
    if not isinstance(quantizer, PerChannel):
        raise RuntimeError(
            f"{function}: expected a tensor with parameters per channel, but this one has the scheme torch.per_tensor_affine: "
            "write x.q_scale() and x.q_zero_point()"
        )
    return quantizer


@rule("q_per_channel_scales")
def q_per_channel_scales(self: Tensor) -> Tensor:
    return _channels(self, "q_per_channel_scales").scales_on(self.device)


@rule("q_per_channel_zero_points")
def q_per_channel_zero_points(self: Tensor) -> Tensor:
    return _channels(self, "q_per_channel_zero_points").zero_points_on(self.device)


@rule("q_per_channel_axis")
def q_per_channel_axis(self: Tensor) -> int:
    return _channels(self, "q_per_channel_axis").axis


# ---- Python's numbers ----------------------------------------------------------------------------------------------------


def _number(name: str) -> Any:
    def method(self: Tensor) -> Any:
        return getattr(dequantize(self), name)()

    return method


for _name in "item __float__ __int__ __bool__ __complex__ is_nonzero".split():
    rule(_name)(_number(_name))


@rule("tolist")
def tolist(self: Tensor) -> Any:
    raise RuntimeError(
        "tolist: a quantized tensor has integers and numbers: write x.dequantize().tolist() or x.int_repr().tolist()"
    )


@rule("numpy", "__array__", "__dlpack__")
def numpy(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    raise TypeError(
        f"Got unsupported ScalarType {LEGACY_NAMES[self.dtype]}: write x.dequantize().numpy() or x.int_repr().numpy()"
    )


# ---- Conversion ----------------------------------------------------------------------------------------------------------


def _moved(self: Tensor, where: device | None, dtype: DType | None, copy: bool, memory_format: Any) -> Tensor:
    if dtype is not None and dtype is not self.dtype:
        raise RuntimeError(
            f"a quantized tensor cannot be converted to {dtype}: write x.dequantize() for its numbers, or x.int_repr() for its integers"
        )
    before = plain(self)
    after = before.to(device=where or self.device, copy=copy, memory_format=memory_format)
    if after is before:
        return self
    return quantized(after, quantizer_of(self), self.dtype, self.shape if self.dtype in BITS else None)


@rule("to")
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return _moved(self, *parse_to(args, kwargs))


@rule("type_as")
def type_as(self: Tensor, other: Tensor) -> Tensor:
    return to(self, other)


@rule(*"float double half bfloat16 int long short char byte bool cfloat cdouble chalf".split())
def _converted(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    raise RuntimeError(
        "a quantized tensor has no other dtype: write x.dequantize() for its numbers, or x.int_repr() for its integers"
    )


@rule("type")
def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    place = "" if self.device.type == "cpu" else f"{self.device.type}."
    name = f"torch.{place}quantized.{LEGACY_NAMES[self.dtype]}Tensor"
    if dtype is None:
        return name
    return self if dtype == name else to(self, dtype)
