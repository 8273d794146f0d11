"""What observers take and make, and what is built on them, beside PyTorch."""

import importlib

import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
LIBRARIES = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])
POSITIONAL = {
    "PerChannelMinMaxObserver": lambda t: (1, t.qint8, t.per_channel_symmetric, True, -10, 10),
    "MovingAverageMinMaxObserver": lambda t: (0.5, t.qint8, t.per_tensor_symmetric, True, -10, 10),
    "MovingAveragePerChannelMinMaxObserver": lambda t: (0.5, 1, t.qint8, t.per_channel_symmetric, True),
    "HistogramObserver": lambda t: (16, t.qint8, t.per_tensor_symmetric, True, -10, 10),
}


@pytest.mark.parametrize("name", POSITIONAL)
def test_positional_arguments_and_the_dtype_of_buffers(name):
    found = []
    for lib in (weft, torch):
        make = getattr(lib.ao.quantization, name)
        made = make(*POSITIONAL[name](lib), factory_kwargs={"dtype": lib.float64})
        made(lib.tensor([[1.0, 2.0, -1.5], [4.0, 0.5, 3.0]]))
        kinds = {key: str(value.dtype) for key, value in made.state_dict().items() if key != "histogram"}
        found.append(
            (made.quant_min, made.quant_max, kinds, [each.tolist() for each in made.calculate_qparams()])
        )
    assert found[0] == found[1]


@LIBRARIES
@pytest.mark.parametrize("make", ["BatchNorm2d", "GroupNorm", "ConvBn2d"])
def test_layers_have_buffers_of_the_wanted_dtype(lib, make):
    if make == "BatchNorm2d":
        made = lib.ao.nn.quantized.BatchNorm2d(3, dtype=lib.float64)
    elif make == "GroupNorm":
        one = lib.nn.Parameter(lib.ones(4, dtype=lib.float64))
        made = lib.ao.nn.quantized.GroupNorm(2, 4, one, one, 0.5, 1, dtype=lib.float64)
    else:
        made = lib.ao.nn.qat.Linear(3, 2, qconfig=lib.ao.quantization.default_qat_qconfig, dtype=lib.float64)
        made = made.weight_fake_quant.activation_post_process
    buffers = {name: value.dtype for name, value in made.named_buffers() if name != "num_batches_tracked"}
    assert buffers and set(buffers.values()) == {lib.float64}


@LIBRARIES
@pytest.mark.parametrize("kind", ["tensor", "channel"])
def test_quantized_weights_are_within_the_observers_range(lib, kind):
    names = {"tensor": "MovingAverageMinMaxObserver", "channel": "MovingAveragePerChannelMinMaxObserver"}
    observer = getattr(lib.ao.quantization, names[kind])(
        1.0, dtype=lib.qint8, qscheme=getattr(lib, f"per_{kind}_symmetric"), quant_min=-10, quant_max=10
    )
    weight = lib.tensor([[-10.0, 10.0]])
    observer(weight)
    utils = importlib.import_module(f"{lib.__name__}.ao.nn.quantized.modules.utils")
    assert utils._quantize_weight(1.2 * weight, observer).int_repr().tolist() == [[-10, 10]]


@LIBRARIES
def test_observers_and_inputs_by_the_names_of_modules(lib):
    class Model(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.inner = lib.ao.quantization.QuantStub(), lib.nn.Sequential(lib.nn.Linear(2, 3))

        def forward(self, x, *, scale=2):
            return self.inner(self.quant(x)) * scale

    model = Model()
    found = lib.ao.quantization.utils.get_fqn_to_example_inputs(model, (lib.ones(1, 2),))
    assert {name: [getattr(each, "shape", each) for each in inputs] for name, inputs in found.items()} == {
        "": [(1, 2), 2], "quant": [(1, 2)], "inner": [(1, 2)], "inner.0": [(1, 2)],
    }  # fmt: skip
    model.qconfig = lib.ao.quantization.default_qconfig
    lib.ao.quantization.prepare(model, inplace=True)
    observers = {}
    importlib.import_module(f"{lib.__name__}.ao.quantization.quantize")._get_observer_dict(model, observers)
    assert list(observers) == ["quant.activation_post_process", "inner.0.activation_post_process"]


@LIBRARIES
def test_synchronized_layers_keep_their_configuration(lib):
    layer = lib.nn.BatchNorm2d(2)
    layer.qconfig = lib.ao.quantization.default_qconfig
    assert lib.nn.SyncBatchNorm.convert_sync_batchnorm(layer).qconfig is layer.qconfig


@LIBRARIES
def test_what_a_layer_for_training_is_made_of(lib):
    make, layer = lib.ao.nn.qat.EmbeddingBag.from_float, lib.nn.EmbeddingBag(4, 2)
    with pytest.raises(AssertionError, match="must have qconfig defined"):
        make(layer)
    layer.qconfig = None
    with pytest.raises(AssertionError, match="must have a valid qconfig"):
        make(layer)
    layer.qconfig = lib.ao.quantization.default_qat_qconfig
    with pytest.raises(AssertionError, match="Embedding Bag weights requires a qscheme"):
        make(layer)


@LIBRARIES
def test_the_engine(lib):
    quantized = lib.backends.quantized
    assert {"qnnpack", "x86", "fbgemm", "onednn"} <= {*quantized.supported_engines}
    before = quantized.engine
    assert lib.ao.quantization.get_default_qconfig(before)
    try:
        quantized.engine = "fbgemm"
        assert quantized.engine == "fbgemm"
        with pytest.raises(RuntimeError, match="not a valid value for quantized engine"):
            quantized.engine = "unknown"
    finally:
        quantized.engine = before
    with pytest.raises(RuntimeError, match="Assignment not supported"):
        quantized.supported_engines = []


def test_prelu_of_quantized_tensors():
    numbers = [[[0.5, -1.0], [2.0, -3.0], [-0.5, 0.1]]]
    found = []
    for lib in (weft, torch):
        x = lib.quantize_per_tensor(lib.tensor(numbers), 0.1, 50, lib.quint8)
        weight = lib.quantize_per_tensor(lib.tensor([0.25, -0.5, 2.0]), 0.02, 3, lib.quint8)
        found.append(
            [f(x, weight).int_repr().tolist() for f in (lib.prelu, lib.nn.functional.prelu, lib.Tensor.prelu)]
        )
    assert found[0] == found[1]


def test_what_prepared_layers_tell():
    found = []
    for lib in (weft, torch):
        prepared, number = lib.ops.quantized, lib.quantize_per_tensor
        linear = prepared.linear_prepack(number(lib.ones(2, 2), 1.0, 0, lib.qint8), lib.ones(2))
        images = prepared.conv2d_prepack(
            number(lib.ones(2, 1, 2, 3), 1.0, 0, lib.qint8), lib.ones(2), [1, 2], [0, 1], [1, 3], 2
        )
        series = prepared.conv1d_prepack(number(lib.ones(2, 1, 3), 1.0, 0, lib.qint8), None, [2], [1], [3], 2)
        found.append([linear.bias().tolist(), prepared.linear_prepack_fp16(lib.ones(2, 2), None).bias()])
        for each in (images, series):
            names = ("stride", "padding", "output_padding", "dilation", "groups", "transpose")
            found[-1] += [[getattr(each, name)() for name in names], each.weight().int_repr().tolist()]
        found[-1] += [images.bias().tolist(), series.bias(), prepared.conv2d_stride(images)]
    assert found[0] == found[1]
