"""Fake quantization of NaN, infinite, empty, narrow and 0-d tensors, as in PyTorch."""

import math

import numpy as np
import pytest
import torch

import weft

LIBRARIES = weft, torch
VALUES = {
    "nan": "t.tensor([1.0, math.nan, -2.0, 3.0])",
    "negative infinity": "t.tensor([1.0, -math.inf, -2.0, 3.0])",
    "empty": "t.zeros(0)",
    "rows without elements": "t.zeros(4, 0)",
    "float16": "t.tensor([1.0, -2.0, 3.3, 4.4]).half()",
    "bfloat16": "t.tensor([1.0, -2.0, 3.3, 4.4]).bfloat16()",
    "float64": "t.tensor([1.0, -2.0, 3.3, 4.4], dtype=t.float64)",
    "no dims": "t.tensor(1.5)",
    "tiny": "t.tensor([1e-30, -1e-38, 2e-39, 0.0])",
    "huge": "t.tensor([3e38, -3e38, 0.0, 1.0])",
    "transposed": "(t.arange(24.0).reshape(2, 3, 4) - 11).transpose(0, 2)",
    "expanded": "t.arange(4.0).expand(3, 4)",
}
OBSERVED = {
    name: text for name, text in VALUES.items() if "float" not in name
}  # PyTorch observes float32 only


def compare(function, text):
    results = []
    for library in LIBRARIES:
        x = eval(text, {"t": library, "math": math}).requires_grad_()
        found = function(library, x)
        found[0].sum().backward()
        results.append(
            [
                str(found[0].dtype).split(".")[1],
                *(each.detach().double().numpy() for each in (*found, x.grad)),
            ]
        )
    assert results[0][0] == results[1][0]
    for own, other in zip(results[0][1:], results[1][1:]):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("scale, zero_point", [(0.1, 3), (math.nan, 0), (math.inf, 0)])
def test_whole_tensors(name, scale, zero_point):
    compare(lambda t, x: [t.fake_quantize_per_tensor_affine(x, scale, zero_point, 0, 200)], VALUES[name])

    def by_tensors(t, x):
        given = t.tensor([scale]), t.tensor([zero_point], dtype=t.int32)
        return [t.fake_quantize_per_tensor_affine(x, *given, 0, 200)]

    compare(by_tensors, VALUES[name])


@pytest.mark.parametrize(
    "name", [name for name in VALUES if name not in ("no dims", "huge", "empty", "rows without elements")]
)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_channels(name, dtype):
    def function(t, x):
        scales = t.arange(1.0, x.shape[-1] + 1) / 8
        points = t.arange(x.shape[-1]).to(getattr(t, dtype)) + (0.25 if dtype == "float32" else 0)
        return [t.fake_quantize_per_channel_affine(x, scales, points, x.dim() - 1, -100, 200)]

    compare(function, VALUES[name])


@pytest.mark.parametrize("name", OBSERVED)
@pytest.mark.parametrize("symmetric", [False, True])
def test_observed_tensors(name, symmetric):
    def function(t, x):
        low, high, scale = t.tensor(math.inf), t.tensor(-math.inf), t.tensor([1.0])
        point, on = t.tensor([0], dtype=t.int32), t.tensor([1])
        bounds = (-128, 127) if symmetric else (0, 255)
        for _ in range(2):
            found = t.fused_moving_avg_obs_fake_quant(
                x, on, on, low, high, scale, point, 0.01, *bounds, -1, False, symmetric
            )
        return found, low, high, scale, point

    compare(function, OBSERVED[name])


@pytest.mark.parametrize("name", ["transposed", "expanded", "rows without elements"])
def test_observed_channels(name):
    def function(t, x):
        low, high, scale = t.tensor([]), t.tensor([]), t.tensor([1.0])
        point, on = t.tensor([0], dtype=t.int32), t.tensor([1])
        for _ in range(2):
            found = t.fused_moving_avg_obs_fake_quant(
                x, on, on, low, high, scale, point, 0.01, 0, 255, 0, True, False
            )
        return found, low, high, scale, point

    compare(function, OBSERVED[name])


def test_vectors_have_a_range_for_each_element():
    low, high, scale = weft.tensor([]), weft.tensor([]), weft.tensor([1.0])
    point, on = weft.tensor([0], dtype=weft.int32), weft.tensor([1])
    x = weft.tensor([1.0, -2.0])
    found = weft.fused_moving_avg_obs_fake_quant(x, on, on, low, high, scale, point, 1.0, 0, 255, 0, True)
    assert low.tolist() == high.tolist() == found.tolist() == [1.0, -2.0] and scale.shape == point.shape == (
        2,
    )
