"""Layers of quantized tensors that `convert` makes, and functions of quantized tensors: integers, texts, states and files are PyTorch's."""

import io
import re

import numpy as np
import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
IMAGES = np.random.default_rng(7).standard_normal((3, 2, 4, 6, 6)).astype(np.float32)
LAYERS = """
ELU(0.5) Hardswish() LeakyReLU(0.2) PReLU() PReLU(4) ReLU6() Sigmoid() Dropout(0.5) GroupNorm(2,4) InstanceNorm2d(4,affine=True) InstanceNorm2d(4)
LayerNorm([6,6]) ConvTranspose2d(4,6,3,2,1,1) ConvTranspose2d(4,4,2,groups=2,bias=False,dilation=2) Flatten(2)|ConvTranspose1d(4,3,4,2,padding=1)
Unflatten(1,(1,4))|ConvTranspose3d(1,2,2) Flatten(2)|InstanceNorm1d(4,affine=True) Unflatten(1,(2,2))|InstanceNorm3d(2)
""".split()
SAME_INTEGERS = 1  # a float32 that differs in its last bit may be rounded to the next integer


def model(library, text):
    nn, ao = library.nn, library.ao.quantization
    random = np.random.default_rng(8)
    layers = [eval(f"nn.{each}", {"nn": nn}) for each in text.split("|")]
    found = nn.Sequential(ao.QuantStub(), *layers, ao.DeQuantStub()).eval()
    for each in found.parameters():
        each.data.copy_(
            library.from_numpy((random.standard_normal(tuple(each.shape)) * 0.3).astype(np.float32))
        )
    found.qconfig = ao.default_qconfig
    found = ao.prepare(found)
    for batch in IMAGES:
        found(library.from_numpy(batch))
    return ao.convert(found)


def shown(found):
    """The text of a model, without the last digits of scales."""
    return re.sub(r"\d\.\d+", lambda number: f"{float(number[0]):.5f}", repr(found))


@pytest.mark.parametrize("text", LAYERS)
def test_layers(text):
    own, other = (model(library, text) for library in (weft, torch))
    assert shown(own) == shown(other)
    assert list(own.state_dict()) == list(other.state_dict())
    for batch in IMAGES:
        found, wanted = own[:-1](weft.from_numpy(batch)), other[:-1](torch.from_numpy(batch))
        assert abs(found.q_scale() - wanted.q_scale()) <= 1e-6 * wanted.q_scale()
        integers = [each.int_repr().numpy().astype(int) for each in (found, wanted)]
        assert np.abs(integers[0] - integers[1]).max() <= SAME_INTEGERS
        # PyTorch cuts results off, instead of rounding them, in the last elements of a PReLU, which do not fill a vector.
        assert np.mean(integers[0] != integers[1]) < (0.1 if text.startswith("PReLU") else 0.01)


@pytest.mark.parametrize("text", ["ConvTranspose2d(4,6,3,2,1,1)", "LayerNorm([6,6])", "Hardswish()"])
@pytest.mark.parametrize("direction", [(weft, torch), (torch, weft)], ids=str)
def test_files(direction, text):
    writer, reader = direction
    written, file = model(writer, text), io.BytesIO()
    writer.save(written.state_dict(), file)
    file.seek(0)
    made = model(reader, text)
    made.load_state_dict(reader.load(file))
    found, wanted = made(reader.from_numpy(IMAGES[0])), written(writer.from_numpy(IMAGES[0]))
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=0, atol=0.03)


DYNAMIC = "Conv1d(4,6,3,2) Conv2d(4,6,3,padding=1) Conv2d(4,4,3,groups=2,bias=False) Conv3d(4,6,2) ConvTranspose1d(4,6,3) ConvTranspose2d(4,6,3,2,1,1) ConvTranspose3d(4,2,2)"


@pytest.mark.parametrize("text", DYNAMIC.split())
def test_dynamic_convolutions(text):
    dims = int(text[text.index("d(") - 1])
    results = []
    for library in (weft, torch):
        layer = eval(f"nn.{text}", {"nn": library.nn})
        random = np.random.default_rng(8)
        for each in layer.parameters():
            each.data.copy_(
                library.from_numpy((random.standard_normal(tuple(each.shape)) * 0.3).astype(np.float32))
            )
        layer.qconfig = library.ao.quantization.default_dynamic_qconfig
        made = getattr(library.ao.nn.quantized.dynamic, text.partition("(")[0]).from_float(layer)
        x = library.from_numpy(IMAGES[0]).reshape(2, 4, *{1: (36,), 2: (6, 6), 3: (3, 3, 4)}[dims])
        results.append(
            (repr(made), list(made.state_dict()), made(x).detach().numpy(), made(x, False).detach().numpy())
        )
    assert results[0][:2] == results[1][:2]
    for found, wanted in zip(results[0][2:], results[1][2:], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


FUNCTIONS = """
F.conv2d(x,w,b,scale=0.1,zero_point=90)
F.conv2d(x,w,None,stride=(2,1),padding=1,dilation=2,scale=0.1,zero_point=90)
F.conv1d(x[:,:,0],w[:,:,0],b,scale=0.1,zero_point=90)
F.conv3d(x.unsqueeze(2),w.unsqueeze(2),b,scale=0.1,zero_point=90)
F.linear(x,l)
F.linear(x,l,b,scale=0.1,zero_point=3)
F.avg_pool2d(x,2)
F.avg_pool3d(x.unsqueeze(0),2,ceil_mode=True)
F.adaptive_avg_pool2d(x,3)
F.adaptive_avg_pool3d(x,(2,2,2))
F.max_pool1d(x[0],2)
F.max_pool2d(x,3,stride=[])
F.celu(x,0.1,30,alpha=0.5)
F.elu(x,0.1,30)
F.leaky_relu(x,0.1703)
F.leaky_relu(x,0.1703,scale=0.2,zero_point=4)
F.hardtanh(x,-0.5,0.5)
F.hardswish(x,0.1,30)
F.threshold(x,0.1,0.2)
F.hardsigmoid(x)
F.clamp(x,-0.1,0.2)
F.interpolate(x,scale_factor=2)
F.upsample(x,size=(9,9),mode='bilinear',align_corners=False)
F.upsample_nearest(x,scale_factor=2)
F.upsample_bilinear(x,scale_factor=2)
n.Softmax(1,1/256,0)(x)
n.Softmax()(x)
n.Sigmoid(1/256,0)(x)
q.prelu(x,t.quantize_per_tensor(t.tensor([0.25]),0.01,3,t.quint8),0.1,30)
q.prelu(x,t.quantize_per_tensor(t.tensor([0.25,-0.1,0.3,1.0]),0.01,13,t.quint8),0.1,30)
""".split("\n")[1:-1]
ERRORS = """
F.conv2d(x.dequantize(),w,b)
F.conv2d(x,w,b,padding_mode='reflect')
F.conv2d(x,w.dequantize(),b)
F.conv1d(x,w,b)
F.avg_pool2d(x.dequantize(),2)
F.adaptive_avg_pool2d(x.dequantize(),2)
F.max_pool1d(x[0],2,return_indices=True)
F.celu(x.dequantize(),0.1,3)
F.leaky_relu(x,0.1,True,0.2,4)
F.threshold(x,None,0.2)
F.hardsigmoid(x.dequantize())
F.clamp(x.dequantize(),0,1)
F.interpolate(x.dequantize(),scale_factor=2)
n.ConvTranspose2d(3,4,2,padding_mode='reflect')
n.Conv2d(3,5,2,groups=2)
n.dynamic.Conv2d(3,4,2)(t.randn(3,4,4))
n.dynamic.Conv2d.from_float(t.nn.Conv2d(3,4,2))
n.FXFloatFunctional()(1)
n.LayerNorm([4],t.ones(4),t.zeros(4),0.1,3)
""".split("\n")[1:-1]


def evaluated(library, text):
    random = np.random.default_rng(9)
    quantized = [
        library.quantize_per_tensor(library.from_numpy(random.standard_normal(shape).astype(np.float32)), *by)
        for shape, by in (
            ((2, 4, 6, 6), (0.0213, 120, library.quint8)),
            ((4, 4, 2, 2), (0.0187, 0, library.qint8)),
            ((4, 6), (0.0187, 0, library.qint8)),
        )
    ]
    bias = library.tensor([0.5, -1.0, 0.0, 2.0])
    n = library.ao.nn.quantized
    names = {"t": library, "n": n, "F": n.functional, "q": library.ops.quantized, "b": bias}
    return eval(text, names | dict(zip("xwl", quantized)))


@pytest.mark.parametrize("text", FUNCTIONS)
def test_functions(text):
    found, wanted = (evaluated(library, text) for library in (weft, torch))
    assert (found.q_scale(), found.q_zero_point()) == (wanted.q_scale(), wanted.q_zero_point())
    integers = [each.int_repr().numpy().astype(int) for each in (found, wanted)]
    assert np.abs(integers[0] - integers[1]).max() <= SAME_INTEGERS
    assert np.mean(integers[0] != integers[1]) < 0.01


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text):
    raised = []
    for library in (weft, torch):
        with pytest.raises(Exception) as error:  # noqa: B017 (its type is compared)
            evaluated(library, text)
        raised.append(error.type)
    assert raised[0] is raised[1]


def test_fx_float_functional():
    """It computes what FloatFunctional does, without an observer."""
    module, x = weft.ao.nn.quantized.FXFloatFunctional(), weft.tensor([[-1.0, 2.0], [0.5, 3.0]])
    assert not list(module.children())
    assert module.add_relu(x, x).equal((x + x).relu()) and module.matmul(x, x).equal(x @ x)
    assert module.cat([x, x], 1).shape == (2, 4) and module.mul_scalar(x, 2).equal(2 * x)
