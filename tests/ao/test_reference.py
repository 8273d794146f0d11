"""Quantized layers made of reference layers, which say how their weight is quantized."""

from types import SimpleNamespace

import pytest
import torch

import weft


def layer_of(lib, kind):
    quantized = lib.ao.nn.quantized
    weight = lib.arange(8.0).reshape(2, 4) / 7 - 0.5
    found = dict(
        in_features=4, out_features=2, bias=lib.tensor([0.25, -1.0]), weight_dtype=lib.qint8, weight=weight
    )
    if kind == "Conv1d":
        weight = weight.reshape(2, 2, 2)
        found |= dict(
            in_channels=2,
            out_channels=2,
            kernel_size=(2,),
            stride=(1,),
            padding=(0,),
            dilation=(1,),
            groups=1,
        )
        found |= dict(padding_mode="zeros", weight=weight)
    packed = lib.quantize_per_tensor(weight, 0.01, 0, lib.qint8)
    reference = SimpleNamespace(**found, get_quantized_weight=lambda: packed)
    if kind == "dynamic":
        return quantized.dynamic.Linear.from_reference(reference)
    return getattr(quantized, kind).from_reference(reference, 0.05, 100)


@pytest.mark.parametrize("kind", ["Linear", "Conv1d", "dynamic"])
def test_as_in_pytorch(kind):
    def result(lib):
        x = lib.arange(8.0).reshape(2, 4) / 5 if kind != "Conv1d" else lib.arange(8.0).reshape(1, 2, 4) / 5
        if kind == "dynamic":
            return layer_of(lib, kind)(x).tolist()
        return layer_of(lib, kind)(lib.quantize_per_tensor(x, 0.02, 5, lib.quint8)).int_repr().tolist()

    assert result(weft) == result(torch)
