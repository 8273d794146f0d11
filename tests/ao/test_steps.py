"""The steps of the workflow in their details: what is observed, which hooks stay, and the layers that are made of several."""

import importlib
import operator
import re

import numpy as np
import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
LIBRARIES = weft, torch
RANDOM = np.random.default_rng(6)
IMAGES = RANDOM.standard_normal((3, 2, 4, 6, 5)).astype(np.float32)
ROWS = (RANDOM.standard_normal((3, 5, 4)) * 2).astype(np.float32)


def shown(module):
    """The text of a module without the last digits of its numbers."""
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda found: f"{float(found[0]):.3g}", repr(module))


def filled(library, module):
    """The module with parameters and statistics that depend on their names."""
    random = np.random.default_rng(8)
    with library.no_grad():
        for name, value in module.state_dict().items():
            if "num_batches" not in name:
                made = random.standard_normal(tuple(value.shape)).astype(np.float32)
                value.copy_(library.from_numpy(np.abs(made) + 0.5 if "var" in name else made))
    return module


FUSED = {
    "BNReLU2d": ("t.nn.BatchNorm2d(4), t.nn.ReLU()", IMAGES),
    "BNReLU3d": ("t.nn.BatchNorm3d(4), t.nn.ReLU()", IMAGES[..., None] * np.float32([1, -1])),
    "LinearLeakyReLU": ("t.nn.Linear(4, 3), t.nn.LeakyReLU(0.2)", ROWS),
    "LinearTanh": ("t.nn.Linear(4, 3), t.nn.Tanh()", ROWS),
    "LinearReLU": ("t.nn.Linear(4, 3), t.nn.ReLU()", ROWS),
}


@pytest.mark.parametrize("name", FUSED)
def test_layers_of_two_parts(name):
    text, batches = FUSED[name]
    if name in ("LinearLeakyReLU", "LinearTanh"):
        torch.backends.quantized.engine = "onednn"
    found = []
    for library in LIBRARIES:
        ao = library.ao
        layer = filled(library, eval(f"n.{name}({text})", {"t": library, "n": ao.nn.intrinsic}))
        model = library.nn.Sequential(ao.quantization.QuantStub(), layer).eval()
        model.qconfig = ao.quantization.default_qconfig
        model = ao.quantization.prepare(model)
        for batch in batches:
            model(library.from_numpy(batch))
        model = ao.quantization.convert(model)
        results = [model(library.from_numpy(batch)).int_repr().numpy().astype(int) for batch in batches]
        found.append((shown(model), np.stack(results)))
    assert found[0][0] == found[1][0]
    # A library of kernels of PyTorch rounds a few results of tanh to the neighbouring integer.
    differences = np.abs(found[0][1] - found[1][1])
    assert differences.max() <= (name == "LinearTanh") and differences.mean() < 0.02


@pytest.mark.parametrize("name", ["ConvAdd2d", "ConvAddReLU2d"])
def test_convolutions_that_add(name):
    torch.backends.quantized.engine = "onednn"
    found = []
    for library in LIBRARIES:
        ao = library.ao
        parts = [library.nn.Conv2d(4, 3, 3, padding=1), operator.add] + [library.nn.ReLU()] * ("ReLU" in name)
        floats = filled(library, getattr(ao.nn.intrinsic, name)(*parts)).eval()
        x, y = library.from_numpy(IMAGES[0]), library.from_numpy(IMAGES[1][:, :3].copy())
        floats.qconfig = ao.quantization.default_qconfig
        for each in floats.modules():
            each.qconfig = floats.qconfig
        wanted = floats(x, y)
        floats.activation_post_process = floats.qconfig.activation()
        floats.activation_post_process(wanted)
        layer = getattr(ao.nn.intrinsic.quantized, name).from_float(floats)
        quantized = [library.quantize_per_tensor(each, 0.05, 64, library.quint8) for each in (x, y)]
        found.append(
            (shown(layer), wanted.detach().numpy(), layer(*quantized).int_repr().numpy().astype(int))
        )
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4, atol=1e-5)
    assert np.abs(found[0][2] - found[1][2]).max() <= 1 and (found[0][2] != found[1][2]).mean() < 0.02


def structure(model):
    """The names and classes of all modules, and the hooks of each."""
    return [
        (
            name,
            type(each).__name__,
            len(each._forward_hooks),
            len(each._forward_pre_hooks),
            hasattr(each, "qconfig"),
        )
        for name, each in model.named_modules()
    ]


MODELS = {
    "activations": "t.nn.Sequential(t.nn.Linear(4, 4), t.nn.Sigmoid(), t.nn.Dropout(0.5), t.nn.Tanh(), t.nn.ReLU6())",
    "children": "t.nn.Sequential(t.nn.Sequential(t.nn.Linear(4, 4), t.nn.Softmax(1)), t.nn.BatchNorm1d(4), t.nn.Identity())",
    "attention": "t.nn.MultiheadAttention(4, 2)",
    "function": "t.ao.nn.quantized.FloatFunctional()",
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("qconfig", ["default_qconfig", "default_qat_qconfig", "default_dynamic_qat_qconfig"])
@pytest.mark.parametrize("trains", [False, True])
def test_what_is_observed(name, qconfig, trains):
    found = []
    for library in LIBRARIES:
        ao = library.ao.quantization
        model = library.nn.Sequential(ao.QuantStub(), eval(MODELS[name], {"t": library}), ao.DeQuantStub())
        model.train(trains)
        model.qconfig = getattr(ao.qconfig, qconfig)
        custom = {"float_to_observed_custom_module_class": {}}
        prepared = ao.prepare(model, prepare_custom_config_dict=custom)
        notes = [structure(model), structure(prepared)]
        if trains and name != "attention":
            notes.append(structure(ao.convert(prepared, ao.get_default_qat_module_mappings())))
        found.append(notes)
    assert found[0] == found[1]


def test_quantize_qat_and_hooks():
    found = []
    for library in LIBRARIES:
        nn, ao = library.nn, library.ao.quantization
        calls = []
        layers = [ao.QuantStub(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2), ao.DeQuantStub()]
        model = filled(library, nn.Sequential(*layers))
        model[1].register_forward_pre_hook(lambda *args, calls=calls: calls.append("before"))
        model[2].register_forward_hook(lambda *args, calls=calls: calls.append("after"))
        model = ao.fuse_modules_qat(model.train(), [["1", "2"]])
        model.qconfig = ao.get_default_qat_qconfig("fbgemm")

        def calibrate(model, batches, library=library):
            for batch in batches:
                model(library.from_numpy(batch))

        made = ao.quantize_qat(model, calibrate, [ROWS])
        found.append((structure(made), made(library.from_numpy(ROWS[0])).tolist(), calls, shown(made)))
    assert found[0][0] == found[1][0] and found[0][2:] == found[1][2:]
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=2e-6)


def test_dynamic_training():
    found = []
    for library in LIBRARIES:
        ao = library.ao
        model = filled(
            library,
            library.nn.Sequential(library.nn.Linear(4, 3), library.nn.ReLU(), library.nn.Linear(3, 2)),
        )
        model.qconfig = ao.quantization.qconfig.default_dynamic_qat_qconfig
        model = ao.quantization.prepare_qat(model.train(), {library.nn.Linear: ao.nn.qat.dynamic.Linear})
        out = model(library.from_numpy(ROWS[0]))
        out.sum().backward()
        grads = [each.grad.tolist() for each in model.parameters()]
        mapping = ao.quantization.get_default_dynamic_quant_module_mappings()
        text = structure(model)
        for each in model.modules():
            if hasattr(each, "qconfig"):
                each.qconfig = ao.quantization.default_dynamic_qconfig
        made = ao.quantization.convert(model.eval(), mapping)
        found.append((text, structure(made), out.tolist(), grads, made(library.from_numpy(ROWS[1])).tolist()))
    assert found[0][:2] == found[1][:2]
    for own, other in zip(found[0][2:], found[1][2:]):
        for one, two in zip(own, other):
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


class Own(weft.nn.Linear):
    """A user's layer."""


class Observed(weft.nn.Linear):
    @classmethod
    def from_float(cls, mod):
        made = cls(mod.in_features, mod.out_features)
        made.qconfig = mod.qconfig
        return made


class Quantized(weft.nn.Identity):
    @classmethod
    def from_observed(cls, mod):
        return cls()


def test_classes_of_users():
    ao = weft.ao.quantization
    model = weft.nn.Sequential(Own(2, 2))
    model.qconfig = ao.default_qconfig
    custom = {"float_to_observed_custom_module_class": {Own: Observed}}
    prepared = ao.prepare(model.eval(), prepare_custom_config_dict=custom)
    assert type(prepared[0]) is Observed and hasattr(prepared[0], "activation_post_process")
    custom = {"observed_to_quantized_custom_module_class": {Observed: Quantized}}
    assert type(ao.convert(prepared, convert_custom_config_dict=custom)[0]) is Quantized


def test_fusing_says_what_it_cannot_do():
    calls = {
        "fuse_modules": ("Conv2d(2, 3, 1)", "BatchNorm2d(3)", True),
        "fuse_modules_qat": ("Conv2d(2, 3, 1)", "BatchNorm2d(4)", True),
        "fuse_modules_qat ": ("Linear(2, 3)", "BatchNorm1d(3, affine=False)", True),
        "fuse_modules_qat  ": ("ConvTranspose1d(2, 3, 1)", "BatchNorm1d(3)", True),
    }
    for name, (*layers, trains) in calls.items():
        errors = []
        for library in LIBRARIES:
            model = library.nn.Sequential(*(eval(f"nn.{each}", {"nn": library.nn}) for each in layers))
            with pytest.raises(Exception) as error:
                getattr(library.ao.quantization, name.strip())(model.train(trains), ["0", "1"])
            errors.append(error.type)
        assert errors[0] is errors[1], name


def test_old_names():
    for old, new in {
        "nn.qat.Linear": "ao.nn.qat.Linear",
        "nn.qat.dynamic.Linear": "ao.nn.qat.dynamic.Linear",
        "nn.intrinsic.ConvBn2d": "ao.nn.intrinsic.ConvBn2d",
        "nn.intrinsic.qat.ConvBn2d": "ao.nn.intrinsic.qat.ConvBn2d",
        "nn.intrinsic.quantized.BNReLU2d": "ao.nn.intrinsic.quantized.BNReLU2d",
        "quantization.prepare_qat": "ao.quantization.prepare_qat",
        "quantization.observer.MinMaxObserver": "ao.quantization.MinMaxObserver",
        "quantization.fake_quantize.FakeQuantize": "ao.quantization.FakeQuantize",
        "quantization.qconfig.default_qat_qconfig": "ao.quantization.default_qat_qconfig",
        "quantization.quantization_mappings.get_default_qat_module_mappings": "ao.quantization.get_default_qat_module_mappings",
        "quantization.default_fake_quant": "ao.quantization.default_fake_quant",
        "quantization.fuse_modules": "ao.quantization.fuse_modules",
    }.items():  # fmt: skip
        assert operator.attrgetter(old)(weft) is operator.attrgetter(new)(weft), old
    assert importlib.import_module("weft.quantization.quantize").convert is weft.ao.quantization.convert
