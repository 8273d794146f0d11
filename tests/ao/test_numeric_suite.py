"""Layers of floats beside quantized ones: the names and the numbers are PyTorch's."""

import copy
import importlib

import numpy as np
import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
RANDOM = np.random.default_rng(1)
WEIGHT, MATRIX = (RANDOM.standard_normal(size).astype(np.float32) for size in ((3, 2, 2, 2), (2, 12)))
IMAGES = RANDOM.standard_normal((2, 2, 3, 3)).astype(np.float32)


def suite(lib):
    return importlib.import_module(f"{lib.__name__}.ao.ns._numeric_suite")


def models(lib):
    """A model of floats whose convolution and ReLU are fused, and the quantized one."""
    nn, ao = lib.nn, lib.ao.quantization

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = ao.QuantStub(), ao.DeQuantStub()
            self.conv, self.relu = nn.Conv2d(2, 3, 2, bias=False), nn.ReLU()
            self.sum, self.fc = lib.ao.nn.quantized.FloatFunctional(), nn.Linear(12, 2, bias=False)

        def forward(self, x):
            x = self.relu(self.conv(self.quant(x)))
            return self.dequant(self.fc(self.sum.add(x, x).flatten(1)))

    model = Model().eval()
    with lib.no_grad():
        model.conv.weight.copy_(lib.from_numpy(WEIGHT))
        model.fc.weight.copy_(lib.from_numpy(MATRIX))
    model = ao.fuse_modules(model, [["conv", "relu"]])
    model.qconfig = ao.get_default_qconfig("x86")
    prepared = ao.prepare(copy.deepcopy(model))
    prepared(lib.from_numpy(IMAGES))
    return model, ao.convert(prepared)


def numbers(found):
    def of(value):
        if isinstance(value, list):
            return [of(each) for each in value]
        return (value.dequantize() if value.is_quantized else value).detach().numpy().round(4).tolist()

    return {name: {kind: of(value) for kind, value in each.items()} for name, each in found.items()}


COMPARISONS = {
    "weights": lambda lib, model, other: suite(lib).compare_weights(model.state_dict(), other.state_dict()),
    "outputs": lambda lib, model, other: suite(lib).compare_model_outputs(
        model, other, lib.from_numpy(IMAGES)
    ),
    "stubs": lambda lib, model, other: suite(lib).compare_model_stub(
        model, other, [type(model.conv), lib.ao.nn.quantized.FloatFunctional], lib.from_numpy(IMAGES[:1])
    ),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name):
    found, expected = (numbers(COMPARISONS[name](lib, *models(lib))) for lib in (weft, torch))
    assert found.keys() == expected.keys() and len(found) > 1
    for key, each in expected.items():
        for kind, value in each.items():
            np.testing.assert_allclose(found[key][kind], value, atol=2e-4, err_msg=f"{key} {kind}")


@pytest.mark.parametrize("lib", [weft, torch])
def test_layers_of_an_lstm(lib):
    lib.manual_seed(0)
    model = lib.nn.Sequential(lib.nn.LSTM(3, 2), lib.nn.Identity())
    other = lib.ao.quantization.quantize_dynamic(model)
    ((name, pair),) = suite(lib).compare_weights(model.state_dict(), other.state_dict()).items()
    assert name == "0._all_weight_values.0.param" and pair["float"] is not None
    lib.testing.assert_close(
        pair["quantized"].dequantize(), model[0].weight_hh_l0.detach(), atol=0.01, rtol=0
    )
    found = suite(lib).compare_model_stub(model, other, [lib.nn.LSTM], lib.ones(1, 1, 3))
    assert list(found) == ["0.stats"] and {*found["0.stats"]} == {"float", "quantized"}
