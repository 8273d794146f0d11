"""The observers, FakeQuantizes and QConfigs that have names: what they note, round and show is PyTorch's."""

import importlib
import re
import warnings

import numpy as np
import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
LIBRARIES = weft, torch
RANDOM = np.random.default_rng(3)
ROWS = (RANDOM.standard_normal((4, 5, 8)) * 2).astype(np.float32)
NAMES = sorted(set(dir(torch.ao.quantization)) | set(torch.ao.quantization.qconfig.__all__))
QCONFIGS = [
    name
    for name in NAMES
    if name.startswith(("default", "float", "per_channel")) and name.endswith(("qconfig", "4bit", "v2"))
]
CONSTRUCTORS = [
    name for name in NAMES if name.startswith(("default", "fused", "weight_", "per_channel_weight")) and name not in QCONFIGS
    and name not in ("default_eval_fn", "fused_moving_avg_obs_fake_quant")
]  # fmt: skip


def text(value):
    """What a value shows, without the places of classes and the last digits of numbers."""
    shown = re.sub(r"<class '(?:\w+\.)*(\w+)'>|\b(?:weft|torch)\.(?:\w+\.)*(\w+)", r"\1\2", repr(value))
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda found: f"{float(found[0]):.5g}", shown)


def described(value):
    """A constructor, or several, as its class and its arguments."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [described(each) for each in value]
    if hasattr(value, "p"):
        return described(value.p.func), {name: described(each) for name, each in value.p.keywords.items()}
    return text(value)


def results(library, make):
    """What an observer notes of some batches, and what comes out of it."""
    found = [described(make)]
    module = make()
    found.append(sorted(module.state_dict()))
    for batch in ROWS:
        x = library.from_numpy(batch).requires_grad_()
        out = module(x)
        out.sum().backward()
        found += [out.detach().numpy(), x.grad.numpy()]
    try:
        found += [each.numpy() for each in module.calculate_qparams()]
    except Exception as error:
        found.append(str(error).split(" for ")[0])
    found.append(text(module))
    return found


def compare(own, other):
    assert len(own) == len(other)
    for found, wanted in zip(own, other):
        if isinstance(wanted, np.ndarray):
            assert found.dtype == wanted.dtype and found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
        else:
            assert found == wanted


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_constructors(name):
    compare(*(results(library, getattr(library.ao.quantization, name)) for library in LIBRARIES))


@pytest.mark.parametrize("name", QCONFIGS)
def test_qconfigs(name):
    own, other = (getattr(library.ao.quantization.qconfig, name) for library in LIBRARIES)
    assert described(own) == described(other)


@pytest.mark.parametrize("function", ["get_default_qconfig", "get_default_qat_qconfig"])
@pytest.mark.parametrize("backend", ["fbgemm", "x86", "qnnpack", "onednn", "other"])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_default_qconfigs(function, backend, version):
    found = []
    for library in LIBRARIES:
        ao = library.ao.quantization
        try:
            made = getattr(ao, function)(backend, version)
            mapping = getattr(ao, f"{function}_mapping")(backend, version)
            types = [
                (getattr(key, "__name__", key), described(each))
                for key, each in mapping.object_type_qconfigs.items()
            ]
            found.append((described(made), described(mapping.global_qconfig), types))
        except AssertionError:
            found.append("refused")
    assert found[0] == found[1]


def test_mappings_are_made_of_dicts():
    found = []
    for library in LIBRARIES:
        ao = library.ao.quantization
        mapping = ao.get_default_qconfig_mapping("x86").set_module_name_regex("a.*", None)
        mapping.set_module_name("b", ao.default_qconfig).set_module_name_object_type_order(
            "c", library.nn.Linear, 0, None
        )
        made = ao.QConfigMapping.from_dict(mapping.to_dict())
        assert made.to_dict() == mapping.to_dict()
        found.append(len(repr(made).splitlines()))
    assert found[0] == found[1]


LEARNABLE = {
    "whole": "dict(observer=ao.MovingAverageMinMaxObserver, dtype=t.quint8)",
    "symmetric": "dict(observer=ao.MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=t.qint8, qscheme=t.per_tensor_symmetric, use_grad_scaling=True)",
    "channels": "dict(observer=ao.MovingAveragePerChannelMinMaxObserver, dtype=t.quint8, channel_len=5, zero_point=3.4, scale=0.11, use_grad_scaling=True)",
}


@pytest.mark.parametrize("name", LEARNABLE)
def test_learned_parameters(name):
    found = []
    for library in LIBRARIES:
        ao = library.ao.quantization
        learnable = importlib.import_module(f"{library.__name__}.ao.quantization._learnable_fake_quantize")
        module = learnable._LearnableFakeQuantize(**eval(LEARNABLE[name], {"ao": ao, "t": library}))
        noted = [sorted(module.state_dict()), module.bitwidth]
        for learns in (False, True):
            module.enable_param_learning() if learns else module.enable_static_estimate()
            x = library.from_numpy(ROWS[int(learns)] * 1.5).requires_grad_()
            out = module(x)
            weight = library.arange(float(out.numel())).reshape(out.shape)
            (out * weight).sum().backward()
            noted += [
                out.detach().numpy(),
                x.grad.numpy(),
                *(each.numpy() for each in module.calculate_qparams()),
            ]
            if learns:
                noted += [module.scale.grad.numpy(), module.zero_point.grad.numpy()]
        found.append(noted)
    for own, other in zip(*found):
        if isinstance(other, np.ndarray):
            assert own.shape == other.shape and own.dtype == other.dtype
            np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-4)
        else:
            assert own == other


@pytest.mark.parametrize(
    "name",
    [
        "default_qat_qconfig",
        "default_dynamic_qconfig",
        "float16_static_qconfig",
        "float16_dynamic_qconfig",
        "float_qparams_weight_only_qconfig_4bit",
        "default_weight_only_qconfig",
    ],
)
def test_questions_about_qconfigs(name):
    functions = """activation_dtype weight_dtype activation_is_statically_quantized activation_is_dynamically_quantized
    activation_is_int8_quantized activation_is_int32_quantized weight_is_quantized weight_is_statically_quantized
    op_is_int8_dynamically_quantized get_qconfig_dtypes get_quant_type""".split()
    for function in functions:
        found = []
        for library in LIBRARIES:
            ao = library.ao.quantization
            try:
                found.append(text(getattr(ao.utils, function)(getattr(ao.qconfig, name))))
            except Exception as error:
                found.append(type(error))
        assert found[0] == found[1], function


def test_states_of_observers():
    states = []
    for library in LIBRARIES:
        ao = library.ao.quantization
        model = library.nn.Sequential(library.nn.Linear(8, 3))
        model.qconfig = ao.default_qconfig
        first, second = ao.prepare(model), ao.prepare(model)
        first(library.from_numpy(ROWS[0]))
        state = ao.get_observer_state_dict(first)
        ao.load_observer_state_dict(second, state)
        assert float(second[0].activation_post_process.max_val) == float(
            first[0].activation_post_process.max_val
        )
        states.append((sorted(state), sorted(state._metadata)))
        qparams = ao.utils.get_qparam_dict(ao.default_per_channel_weight_observer())
        states[-1] += (text({name: qparams[name] for name in ("qscheme", "dtype", "axis", "quant_min")}),)
    assert states[0] == states[1]


def test_observers_say_what_they_cannot_do():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        weft.ao.quantization.MinMaxObserver().calculate_qparams()
    assert "must run observer" in str(seen[0].message)
    refused = {
        AssertionError: ["MinMaxObserver(dtype=t.float32)", "MinMaxObserver(quant_min=3, quant_max=9)", "FakeQuantize(quant_min=0, quant_max=300)"],
        NotImplementedError: [f"{name}(qscheme={scheme})" for name, scheme in (
            ("MinMaxObserver", "3"), ("MovingAverageMinMaxObserver", "t.per_channel_affine"),
            ("PerChannelMinMaxObserver", "t.per_tensor_affine"), ("HistogramObserver", "t.per_channel_symmetric"),
            ("MovingAveragePerChannelMinMaxObserver", "t.per_tensor_symmetric"),
        )],
        ValueError: ["QConfig(ao.MinMaxObserver(), None)"],
    }  # fmt: skip
    for error, calls in refused.items():
        for call in calls:
            for library in LIBRARIES:
                names = {"ao": library.ao.quantization, "t": library}
                with pytest.raises(error):
                    eval(f"ao.{call}", names)
