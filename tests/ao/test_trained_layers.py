"""The layers of torch.ao.nn.qat and torch.ao.nn.intrinsic, one by one: they compute, train, load and become quantized as PyTorch's."""

import io
import re

import numpy as np
import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
LIBRARIES = weft, torch
RANDOM = np.random.default_rng(4)
INPUTS = {
    0: (RANDOM.standard_normal((3, 6, 4)) * 2).astype(np.float32),
    1: RANDOM.standard_normal((3, 4, 4, 9)).astype(np.float32),
    2: RANDOM.standard_normal((3, 2, 4, 7, 6)).astype(np.float32),
    3: RANDOM.standard_normal((3, 2, 4, 4, 5, 3)).astype(np.float32),
}


# The layers of floats from which each is made, and the number of dims of its input behind the channels.
LAYERS = {
    "qat.Linear": ("t.nn.Linear(4, 3)", 0),
    "intrinsic.qat.LinearReLU": ("n.intrinsic.LinearReLU(t.nn.Linear(4, 3), t.nn.ReLU())", 0),
    "intrinsic.qat.LinearBn1d": ("n.intrinsic.LinearBn1d(t.nn.Linear(4, 3), t.nn.BatchNorm1d(3, momentum=0.3))", 0),
    "intrinsic.qat.LinearBn1d no bias": ("n.intrinsic.LinearBn1d(t.nn.Linear(4, 3, bias=False), t.nn.BatchNorm1d(3))", 0),
}  # fmt: skip
for dims in (1, 2, 3):
    conv, bn = f"t.nn.Conv{dims}d(4, 6, 2, stride=2, padding=1, groups=2)", f"t.nn.BatchNorm{dims}d(6)"
    LAYERS |= {
        f"qat.Conv{dims}d": (conv, dims),
        f"intrinsic.qat.ConvReLU{dims}d": (f"n.intrinsic.ConvReLU{dims}d({conv}, t.nn.ReLU())", dims),
        f"intrinsic.qat.ConvBn{dims}d": (f"n.intrinsic.ConvBn{dims}d({conv}, {bn})", dims),
        f"intrinsic.qat.ConvBnReLU{dims}d": (
            f"n.intrinsic.ConvBnReLU{dims}d({conv}, {bn}, t.nn.ReLU())",
            dims,
        ),
    }
LAYERS["intrinsic.qat.ConvBn2d border"] = (
    "n.intrinsic.ConvBn2d(t.nn.Conv2d(4, 3, 3, padding=1, padding_mode='reflect', bias=False), t.nn.BatchNorm2d(3))", 2,
)  # fmt: skip


def find(library, path):
    found = library.ao.nn
    for name in path.split():
        for each in name.split("."):
            found = getattr(found, each)
        return found


def made(library, name, seed=7):
    library.manual_seed(seed)
    text, _ = LAYERS[name]
    layers = eval(text, {"t": library, "n": library.ao.nn})
    layers.qconfig = library.ao.quantization.get_default_qat_qconfig("fbgemm")
    for each in layers.modules():
        each.qconfig = layers.qconfig
        if hasattr(each, "running_var"):
            with library.no_grad():
                each.weight.uniform_(0.5, 1.5)
                each.bias.uniform_(-1, 1)
                each.running_mean.uniform_(-1, 1)
                each.running_var.uniform_(0.5, 2)
    return find(library, name).from_float(layers)


def states(module):
    return {name: value.detach().clone().numpy() for name, value in module.state_dict().items()}


def compare(own, other, **tolerance):
    assert list(own) == list(other)
    for name in other:
        assert own[name].shape == other[name].shape and own[name].dtype == other[name].dtype, name
        np.testing.assert_allclose(own[name], other[name], err_msg=name, **tolerance)


def shown(module):
    """The text of a module without the last digits of its numbers."""
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda found: f"{float(found[0]):.3g}", repr(module))


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    modules = [made(library, name) for library in LIBRARIES]
    compare(*map(states, modules), rtol=1e-6)
    assert shown(modules[0]) == shown(modules[1])
    for step, batch in enumerate(INPUTS[LAYERS[name][1]]):
        noted = []
        for library, module in zip(LIBRARIES, modules):
            if step == 2 and hasattr(module, "freeze_bn_stats"):
                module.freeze_bn_stats()
                module.train()
            x = library.from_numpy(batch).requires_grad_()
            out = module(x)
            (out * out).sum().backward()
            gradients = {each: value.grad.numpy() for each, value in module.named_parameters()}
            noted.append({"out": out.detach().numpy(), "x": x.grad.numpy(), **gradients})
            module.zero_grad()
        compare(*noted, rtol=1e-4, atol=1e-4)
        compare(*map(states, modules), rtol=1e-5, atol=1e-6)
    # Files go both ways.
    for i in (0, 1):
        file = io.BytesIO()
        LIBRARIES[i].save(modules[i].state_dict(), file)
        file.seek(0)
        modules[1 - i].load_state_dict(LIBRARIES[1 - i].load(file))
    floats = [module.to_float() for module in modules]
    assert repr(floats[0]) == repr(floats[1])
    compare(*map(states, floats), rtol=1e-5, atol=1e-6)
    assert floats[0].training == floats[1].training
    # The integers of the quantized layer.
    found = []
    for library, module in zip(LIBRARIES, modules):
        model = library.nn.Sequential(library.ao.quantization.QuantStub(), module)
        model.qconfig = module.qconfig
        mapping = library.ao.quantization.get_default_static_quant_module_mappings()
        if type(module) not in mapping:  # the layers of one dim
            kind = type(module).__name__
            mapping[type(module)] = find(
                library, f"intrinsic.quantized.{kind}" if "ReLU" in kind else f"quantized.{kind}"
            )
        library.ao.quantization.prepare(model, inplace=True, observer_non_leaf_module_list={type(module)})
        for batch in INPUTS[LAYERS[name][1]]:
            model(library.from_numpy(batch))
        model = library.ao.quantization.convert(model.eval(), mapping)
        out = model(library.from_numpy(INPUTS[LAYERS[name][1]][0]))
        found.append((shown(model), model[1].weight().int_repr().tolist(), out.int_repr().tolist()))
    assert found[0] == found[1]


def embedding(library, name):
    library.manual_seed(3)
    qconfig = library.ao.quantization.qconfig.default_embedding_qat_qconfig
    table = getattr(library.nn, name)(6, 8, **({"mode": "sum"} if "Bag" in name else {"padding_idx": 2}))
    table.qconfig = qconfig
    return getattr(library.ao.nn.qat, name).from_float(table)


@pytest.mark.parametrize("name", ["Embedding", "EmbeddingBag"])
def test_embeddings(name):
    found = []
    for library in LIBRARIES:
        module = embedding(library, name)
        out = module(library.tensor([[1, 2, 0], [5, 5, 3]]))
        (out * out).sum().backward()
        noted = {"out": out.detach().numpy(), "grad": module.weight.grad.numpy(), **states(module)}
        model = library.nn.Sequential(module)
        model.qconfig = module.qconfig
        mapping = library.ao.quantization.get_embedding_static_quant_module_mappings()
        quantized = library.ao.quantization.convert(model, mapping)[0]
        noted["weight of bytes"] = quantized.weight().int_repr().numpy()
        found.append((noted, repr(module.to_float()), shown(quantized)))
    compare(found[0][0], found[1][0], rtol=1e-5)
    assert found[0][1:] == found[1][1:]


@pytest.mark.parametrize(
    "name",
    [
        "qat.Conv2d(3, 4, (1, 2), bias=False, qconfig=q)",
        "intrinsic.qat.ConvBn2d(3, 4, 3, bias=True, qconfig=q)",
        "intrinsic.qat.LinearBn1d(3, 4, bias=False, freeze_bn=True, qconfig=q)",
        "intrinsic.qat.ConvBnReLU1d(2, 2, 1, momentum=0.5, eps=0.1, freeze_bn=True, qconfig=q)",
        "intrinsic.qat.LinearReLU(3, 2, qconfig=q)",
        "qat.dynamic.Linear(3, 2, qconfig=d)",
        "qat.EmbeddingBag(3, 2, qconfig=e)",
    ],
)
def test_constructors_draw_the_same_numbers(name):
    found = []
    for library in LIBRARIES:
        ao = library.ao.quantization
        names = {
            "q": ao.default_qat_qconfig,
            "d": ao.qconfig.default_dynamic_qat_qconfig,
            "e": ao.qconfig.default_embedding_qat_qconfig,
        }
        library.manual_seed(11)
        module = eval(f"n.{name}", {"n": library.ao.nn, **names})
        noted = {**states(module), "next": library.rand(3).numpy()}
        found.append((noted, shown(module), getattr(module, "freeze_bn", None)))
    compare(found[0][0], found[1][0], rtol=1e-6)
    assert found[0][1:] == found[1][1:]


REFUSED = {
    "qat.Linear(2, 2)": AssertionError,
    "intrinsic.qat.ConvBn1d(2, 2, 1)": AssertionError,
    "qat.dynamic.Linear(2, 2, qconfig=q)": ValueError,
    "qat.Embedding(2, 2, qconfig=q)": AssertionError,
    "qat.Linear.from_float(t.nn.Linear(2, 2))": AssertionError,
    "qat.Conv2d.from_float(t.nn.Conv1d(2, 2, 2))": AssertionError,
    "intrinsic.qat.ConvBn2d.from_float(t.nn.Conv2d(2, 2, 2))": AssertionError,
    "intrinsic.ConvBn2d(t.nn.BatchNorm2d(2), t.nn.Conv2d(2, 2, 2))": AssertionError,
    "intrinsic.LinearReLU(t.nn.Linear(2, 2))": TypeError,
    "quantized.Linear.from_float(t.nn.Conv1d(2, 2, 2))": AssertionError,
    "quantized.Conv2d.from_float(t.nn.Conv2d(2, 2, 2))": AssertionError,
    "intrinsic.quantized.ConvReLU2d.from_float(t.nn.Conv2d(2, 2, 2))": AssertionError,
}


@pytest.mark.parametrize("call", REFUSED)
def test_errors(call):
    for library in LIBRARIES:
        names = {"n": library.ao.nn, "t": library, "q": library.ao.quantization.default_qat_qconfig}
        with pytest.raises(REFUSED[call]):
            eval(f"n.{call}", names)
