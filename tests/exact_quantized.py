"""Quantized linear layers and convolutions of PyTorch, with exact sums on every processor.

With AVX512-VNNI PyTorch (fbgemm and oneDNN) adds products of bytes in 32 bits. Without, it multiplies with `vpmaddubsw`, which adds two
neighbouring products in 16 bits and clamps the sum to them, so that PyTorch's integers depend on the processor. The functions here add
up in float64, which is exact, and then round as fbgemm does. Each compares its result with PyTorch's wherever PyTorch's sums are exact:
with integers for which no sum of two products leaves 16 bits, and with all integers on a processor that adds in 32 bits.
"""

import functools

import numpy as np
import pytest
import torch

# 2 * 255 * 64 < 2**15: with weights from -64 to 64 the sum of two products has 16 bits, whatever the other bytes are.
SMALL_WEIGHT = 64

_linear_of_pytorch = torch.ops.quantized.linear  # also while `exact_layers` replaces it


@functools.cache
def _adds_in_32_bits(engine):
    """Whether PyTorch's sums are exact for all integers, on this processor with this engine, which must be the one that is set."""
    a = torch._make_per_tensor_quantized_tensor(torch.full((1, 64), 255, dtype=torch.uint8), 1.0, 0)
    w = torch._make_per_tensor_quantized_tensor(torch.full((1, 64), 127, dtype=torch.int8), 1.0, 0)
    found = _linear_of_pytorch(a, torch.ops.quantized.linear_prepack(w, None), 2.0**14, 0)
    return found.int_repr().item() == round(64 * 255 * 127 / 2**14)


def _is_exact(input, weight):
    """Whether PyTorch's sums of these integers are exact."""
    a, w = input.int_repr().long().abs(), weight.int_repr().long().abs()
    fit = not a.numel() or not w.numel() or 2 * a.max() * w.max() < 2**15
    return fit or _adds_in_32_bits(torch.backends.quantized.engine)


def _scales(weight):
    """The scales and the zero points of a weight, one for each column or one for all."""
    if weight.qscheme() is torch.per_tensor_affine:
        return np.float32([weight.q_scale()]), torch.tensor([weight.q_zero_point()])
    return weight.q_per_channel_scales().numpy().astype(np.float32), weight.q_per_channel_zero_points()


def _linear_sums(input, weight, points):
    a = input.int_repr().double() - input.q_zero_point()
    return (a @ (weight.int_repr().double() - points[:, None]).T).numpy()


def _convolution_sums(input, packed, weight, points):
    """The sums of a convolution, with the columns of the weight in the last dim."""
    dims = weight.dim() - 2
    a, w = input.int_repr().double() - input.q_zero_point(), weight.int_repr().double()
    # fbgemm has one scale for a transposed convolution, so its columns need not be in the first dim.
    w = w - (points if len(points) == 1 else points.reshape(-1, *(1,) * (1 + dims)))
    window = packed.stride(), packed.padding()
    if packed.transpose():
        more = packed.output_padding(), packed.groups(), packed.dilation()
        found = getattr(torch.nn.functional, f"conv_transpose{dims}d")(a, w, None, *window, *more)
    else:
        more = packed.dilation(), packed.groups()
        found = getattr(torch.nn.functional, f"conv{dims}d")(a, w, None, *window, *more)
    return found.movedim(1, -1).numpy()


def _integers(sums, scales, bias, scale, zero_point, relu):
    """Sums as integers, rounded as fbgemm rounds them: all in float32, in this order. scales: of a unit of the sums, by column."""
    values = sums.astype(np.float32)
    if bias is not None:
        values = values + bias.detach().numpy() / scales
    values = np.rint(values * (scales / np.float32(scale))) + zero_point
    return values.clip(zero_point if relu else 0, 255).astype(np.uint8)


def _linear(call, relu, input, packed, scale, zero_point):
    theirs = call(input, packed, scale, zero_point)
    weight, bias = packed.unpack()
    scales, points = _scales(weight)
    sums, scales = _linear_sums(input, weight, points), scales * np.float32(input.q_scale())
    found = _integers(sums, scales, bias, scale, zero_point, relu)
    if _is_exact(input, weight):
        # oneDNN adds the bias in another place: 7 of 2.6 million results differ by 1.
        room = int(torch.backends.quantized.engine != "fbgemm" and bias is not None)
        assert np.abs(found.astype(int) - theirs.int_repr().numpy()).max(initial=0) <= room
    return torch._make_per_tensor_quantized_tensor(torch.from_numpy(found), scale, zero_point)


def _linear_dynamic(call, relu, input, packed, reduce_range=False):
    theirs = call(input, packed, reduce_range).detach().numpy()
    weight, bias = packed.unpack()
    scales, points = _scales(weight)
    fbgemm = torch.backends.quantized.engine == "fbgemm"  # only this engine reduces the range of the input
    integers = torch.quantize_per_tensor_dynamic(input.detach(), torch.quint8, reduce_range and fbgemm)
    sums, factors = _linear_sums(integers, weight, points), scales * np.float32(integers.q_scale())
    # fbgemm rounds once, after both steps. 64 bits hold the product.
    values = sums.astype(np.float32).astype(np.longdouble) * factors
    if bias is not None:
        values = values + bias.detach().numpy()
    found = (values.clip(0) if relu else values).astype(np.float32)
    if _is_exact(integers, weight):
        # oneDNN multiplies by one scale after the other.
        tolerance = {"rtol": 0, "atol": 0} if fbgemm else {"rtol": 1e-5, "atol": 1e-4}
        np.testing.assert_allclose(found, theirs, **tolerance)
    return torch.from_numpy(found)


def _convolution(call, relu, input, packed, scale, zero_point):
    theirs = call(input, packed, scale, zero_point)
    weight, bias = packed.unpack()
    scales, points = _scales(weight)
    # PyTorch packs convolutions of one dim as those of two.
    image = input.unsqueeze(2) if weight.dim() > input.dim() else input
    sums = _convolution_sums(image, packed, weight, points)
    found = _integers(sums, scales * np.float32(input.q_scale()), bias, scale, zero_point, relu)
    found = torch.from_numpy(found).movedim(-1, 1).reshape(theirs.shape)
    if _is_exact(input, weight):
        np.testing.assert_array_equal(found.numpy(), theirs.int_repr().numpy())
    # The strides of PyTorch's result are right on every processor.
    return theirs.copy_(torch._make_per_tensor_quantized_tensor(found, scale, zero_point))


def _convolution_dynamic(static, call, relu, input, packed, reduce_range=False):
    """`static` of the input's integers. The result has the input's scale and zero point."""
    theirs = call(input, packed, reduce_range)
    integers = torch.quantize_per_tensor_dynamic(input, torch.quint8, reduce_range)
    found = _convolution(static, relu, integers, packed, integers.q_scale(), integers.q_zero_point())
    return theirs.copy_(found.dequantize())


def _functions():
    """Each function by its name in `torch.ops.quantized`."""
    rows = {"linear": _linear, "linear_relu": _linear}
    rows |= {"linear_dynamic": _linear_dynamic, "linear_relu_dynamic": _linear_dynamic}
    for dims in (1, 2, 3):
        rows |= {f"conv{dims}d": _convolution, f"conv{dims}d_relu": _convolution}
        rows[f"conv_transpose{dims}d"] = _convolution
        for kind in (f"conv{dims}d", f"conv_transpose{dims}d"):
            static = getattr(torch.ops.quantized, kind)
            rows[f"{kind}_dynamic"] = functools.partial(_convolution_dynamic, static)
    return {
        name: functools.partial(function, getattr(torch.ops.quantized, name), "_relu" in name)
        for name, function in rows.items()
    }


exact = _functions()


@pytest.fixture
def exact_layers(monkeypatch):
    """PyTorch's quantized layers have exact sums while a test runs."""
    for name, function in exact.items():
        monkeypatch.setattr(torch.ops.quantized, name, function)
