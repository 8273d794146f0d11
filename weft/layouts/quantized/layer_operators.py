"""Defines operators of `torch.ops.quantized` with prepared weights: linear layers and convolutions."""

from __future__ import annotations

from typing import Any

from ...core.dtype import quint8
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...ops.elementwise.qparams import QParams
from .operators import operator, relu_forms
from .packed import ConvPackedParams, LinearPackedParams, LinearPackedParamsFp16
from .tensors import quantize

# ---- Linear layers -------------------------------------------------------------------------------------------------------


@operator("linear_prepack(Tensor W, Tensor? B=None) -> Linear W_prepack")
def linear_prepack(W: Tensor, B: Tensor | None = None) -> LinearPackedParams:
    return LinearPackedParams(W, B)


@operator("linear_prepack_fp16(Tensor W, Tensor? B=None) -> Linear W_prepack")
def linear_prepack_fp16(W: Tensor, B: Tensor | None = None) -> LinearPackedParamsFp16:
    return LinearPackedParamsFp16(W, B)


@operator("linear_unpack(Linear W_prepack) -> (Tensor W_origin, Tensor? B_origin)")
def linear_unpack(W_prepack: Any) -> tuple[Tensor, Tensor | None]:
    return W_prepack.unpack()


@operator("linear_unpack_fp16(Linear W_prepack) -> (Tensor W_origin, Tensor? B_origin)")
def linear_unpack_fp16(W_prepack: Any) -> tuple[Tensor, Tensor | None]:
    return W_prepack.unpack()


@relu_forms("linear", "(Tensor X, Linear W_prepack, float Y_scale_i, int Y_zero_point_i) -> Tensor Y")
def linear(X: Tensor, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int, relu: bool = False) -> Tensor:
    return W_prepack(X, QParams(Y_scale_i, Y_zero_point_i), relu)


@operator(
    "linear_leaky_relu(Tensor X, Linear W_prepack, float Y_scale_i, int Y_zero_point_i, float negative_slope) -> Tensor Y"
)
def linear_leaky_relu(
    X: Tensor, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int, negative_slope: float
) -> Tensor:
    return _quantized_like(
        X,
        FUNCTIONS["nn.functional.leaky_relu"](W_prepack.in_floats(X), negative_slope),
        Y_scale_i,
        Y_zero_point_i,
    )


@operator("linear_tanh(Tensor X, Linear W_prepack, float Y_scale_i, int Y_zero_point_i) -> Tensor Y")
def linear_tanh(X: Tensor, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int) -> Tensor:
    return _quantized_like(X, W_prepack.in_floats(X).tanh(), Y_scale_i, Y_zero_point_i)


def _quantized_like(input: Tensor, result: Tensor, scale: float, zero_point: int) -> Tensor:
    return FUNCTIONS["quantize_per_tensor"](result, scale, zero_point, input.dtype)


@operator("linear_dynamic(Tensor X, Linear W_prepack, bool reduce_range=False) -> Tensor Y")
def linear_dynamic(X: Tensor, W_prepack: Any, reduce_range: bool = False) -> Tensor:
    return W_prepack.dynamic(X, reduce_range)


@operator("linear_relu_dynamic(Tensor X, Linear W_prepack, bool reduce_range=False) -> Tensor Y")
def linear_relu_dynamic(X: Tensor, W_prepack: Any, reduce_range: bool = False) -> Tensor:
    return W_prepack.dynamic(X, reduce_range, relu=True)


@operator("linear_dynamic_fp16(Tensor X, Linear W_prepack) -> Tensor Y")
def linear_dynamic_fp16(X: Tensor, W_prepack: Any) -> Tensor:
    return W_prepack.dynamic(X)


@operator("linear_relu_dynamic_fp16(Tensor X, Linear W_prepack) -> Tensor Y")
def linear_relu_dynamic_fp16(X: Tensor, W_prepack: Any) -> Tensor:
    return W_prepack.dynamic(X, relu=True)


@operator("linear_dynamic_fp16_unpacked_weight(Tensor X, Tensor weight, Tensor? bias) -> Tensor Y")
def linear_dynamic_fp16_unpacked_weight(X: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return LinearPackedParamsFp16(weight, bias).dynamic(X)


_OF_FLOATS = "(Tensor X, float X_scale, int X_zero_point, Linear W_prepack) -> Tensor Y"


@operator(f"linear_with_input_q_dq_qweight_dq_output_fp32{_OF_FLOATS}")
def linear_of_floats(X: Tensor, X_scale: float, X_zero_point: int, W_prepack: Any) -> Tensor:
    """The layer of a float32 input, which is quantized with these parameters. The result is of floats."""
    return W_prepack.in_floats(quantize(X, QParams(X_scale, X_zero_point), quint8))


@operator(f"linear_with_input_q_dq_qweight_dq_relu_output_fp32{_OF_FLOATS}")
def linear_relu_of_floats(X: Tensor, X_scale: float, X_zero_point: int, W_prepack: Any) -> Tensor:
    return linear_of_floats(X, X_scale, X_zero_point, W_prepack).relu()


# ---- Convolutions --------------------------------------------------------------------------------------------------------


def _conv(
    qx: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int, relu: bool = False
) -> Tensor:
    return packed_weight(qx, QParams(output_scale, output_zero_point), relu)


def _conv_add(
    qx: Tensor,
    qaccum: Tensor,
    packed_weight: Any,
    output_scale: float,
    output_zero_point: int,
    relu: bool = False,
) -> Tensor:
    found = packed_weight.in_floats(qx) + qaccum.dequantize()
    return _quantized_like(qx, found.relu() if relu else found, output_scale, output_zero_point)


relu_forms(
    "conv2d_add",
    "(Tensor qx, Tensor qaccum, Conv2 packed_weight, float output_scale, int output_zero_point) -> Tensor",
)(_conv_add)


def _dynamic(qx: Tensor, packed_weight: Any, reduce_range: bool = False) -> Tensor:
    return packed_weight.dynamic(qx, reduce_range)


def _prepack(weight, bias, stride, padding, dilation, groups) -> ConvPackedParams:
    return ConvPackedParams(weight, bias, stride, padding, (0,) * len(stride), dilation, groups, False)


def _transposed_prepack(weight, bias, stride, padding, output_padding, dilation, groups) -> ConvPackedParams:
    return ConvPackedParams(weight, bias, stride, padding, output_padding, dilation, groups, True)


def _unpack(packed_weights: Any) -> tuple[Tensor, Tensor | None]:
    return packed_weights.unpack()


def _unpack_1d(packed_weights: Any) -> tuple[Tensor, Tensor | None]:
    weight, bias = packed_weights.unpack()
    return weight.squeeze(2) if weight.dim() == 4 else weight, bias  # a file has one dim of size 1 more


def _members(name: str, kind: str) -> None:
    """Operators that tell how the kernel moves."""
    for member in ("stride", "padding", "dilation", "output_padding"):
        operator(f"{name}_{member}({kind} packed_weights) -> int[]")(
            lambda packed, member=member: getattr(packed, member)()
        )
    operator(f"{name}_groups({kind} packed_weights) -> int")(lambda packed: packed.groups())
    operator(f"{name}_transpose({kind} packed_weights) -> int")(lambda packed: int(packed.transpose()))


def _family(name: str, kind: str, prepack: Any, more: str) -> None:
    call = f"(Tensor qx, {kind} packed_weight, float output_scale, int output_zero_point) -> Tensor"
    geometry = f"int[] stride, int[] padding, {more}int[] dilation, int groups"
    operator(f"{name}_prepack(Tensor weight, Tensor? bias, {geometry}) -> {kind}")(prepack)
    operator(f"{name}_unpack({kind} packed_weights) -> (Tensor unpacked_weights, Tensor? B_origin)")(
        _unpack_1d if name[-2] == "1" else _unpack
    )
    operator(f"{name}_dynamic(Tensor qx, {kind} packed_weight, bool reduce_range=False) -> Tensor")(_dynamic)
    if more:
        operator(f"{name}{call}")(_conv)
    else:
        relu_forms(f"{name}.new" if name != "conv1d" else name, call)(_conv)
    if name[-2] != "1":
        _members(name, kind)


for _dims in (1, 2, 3):
    _kind = f"Conv{max(_dims, 2)}"
    _family(f"conv{_dims}d", _kind, _prepack, "")
    _family(f"conv_transpose{_dims}d", _kind, _transposed_prepack, "int[] output_padding, ")


# ---- Older names -----------------------------------------------------------------------------------------------------

_OLD = "int[] stride, int[] padding, int[] dilation, int groups"
operator(f"conv_prepack(Tensor weight, Tensor? bias, {_OLD}) -> Conv2")(_prepack)
operator("conv_unpack(Conv2 packed_weights) -> (Tensor unpacked_weights, Tensor? B_origin)")(_unpack)


def _old_conv(
    qx, weight, stride, padding, dilation, groups, output_scale, output_zero_point, relu=False
) -> Tensor:
    """The prepared weight says how the kernel moves."""
    return _conv(qx, weight, output_scale, output_zero_point, relu)


for _dims in (2, 3):
    _call = f"(Tensor qx, Conv{_dims} weight, {_OLD}, float output_scale, int output_zero_point) -> Tensor"
    relu_forms(f"conv{_dims}d", _call)(_old_conv)
