"""Layers of floats with rounded weights: texts, states, results, files and the quantized layers made of them are PyTorch's."""

import io

import numpy as np
import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
NUMBERS = np.random.default_rng(12).standard_normal((2, 4, 6, 6)).astype(np.float32)
SCHEMES = {
    "tensor": "{'qscheme': t.per_tensor_affine, 'dtype': t.qint8, 'scale': 0.013, 'zero_point': 3}",
    "channel": "{'qscheme': t.per_channel_affine, 'dtype': t.qint8, 'scale': t.tensor([0.01, 0.02, 0.03, 0.04]), 'zero_point': t.tensor([0, 1, 2, 3]), 'axis': 0}",
    "rows": "{'qscheme': t.per_channel_affine_float_qparams, 'dtype': t.quint8, 'scale': t.tensor([0.01, 0.02, 0.03, 0.04]), 'zero_point': t.tensor([100.5, 90, 80, 70]), 'axis': 0}",
    "float16": "{'qscheme': t.per_tensor_affine, 'dtype': t.float16, 'scale': 1.0, 'zero_point': 0}",
    "none": "{'qscheme': None, 'dtype': t.float16}",
}
LAYERS = {
    "Linear(6,4)": ("tensor", "channel", "float16", "none"),
    "Conv1d(6,4,3)": ("tensor",),
    "Conv2d(4,4,3,2,padding=1)": ("tensor", "channel"),
    "Conv3d(4,4,2)": ("tensor",),
    "ConvTranspose1d(6,4,3)": ("tensor",),
    "ConvTranspose2d(4,4,3,2,1,1,bias=False)": ("tensor", "channel"),
    "ConvTranspose3d(4,2,2)": ("tensor",),
    "Embedding(4,6)": ("tensor", "rows"),
    "EmbeddingBag(4,6,mode='sum')": ("rows",),
}
RECURRENT = [
    "LSTMCell(6,1)",
    "GRUCell(6,3)",
    "RNNCell(6,3,nonlinearity='relu')",
    "LSTM(6,2,2,batch_first=True)",
    "GRU(6,2,bidirectional=True)",
]


def floats(library, text):
    random = np.random.default_rng(13)
    found = eval(f"nn.{text}", {"nn": library.nn})
    for each in found.parameters():
        each.data.copy_(
            library.from_numpy((random.standard_normal(tuple(each.shape)) * 0.4).astype(np.float32))
        )
    return found


def reference(library, text, scheme):
    layer = floats(library, text)
    found = eval(SCHEMES[scheme], {"t": library})
    if any(each in text for each in ("LSTM", "GRU", "RNN")):
        names = [name for name, _ in layer.named_parameters() if name.startswith("weight")]
        found = {**dict.fromkeys(names, found), "is_decomposed": False}
    return getattr(library.ao.nn.quantized.reference, text.partition("(")[0]).from_float(layer, found)


def result(library, text, layer):
    x = library.from_numpy(NUMBERS)
    if "Embedding" in text:
        found = layer(library.tensor([[0, 3], [2, 2]]))
    elif "Cell" in text:
        found = layer(x[0, :, 0])
    elif "1d" in text or "LSTM" in text or "GRU" in text:
        found = layer(x[0])
    else:
        found = layer(x)
    return (found[0] if isinstance(found, tuple) else found).detach().numpy()


def volume(library, layer):
    return layer(library.from_numpy(NUMBERS).unsqueeze(2).expand(2, 4, 3, 6, 6)).detach().numpy()


@pytest.mark.parametrize(
    "text, scheme",
    [(text, scheme) for text, schemes in LAYERS.items() for scheme in schemes]
    + [(text, "tensor") for text in RECURRENT],
)
def test_layers(text, scheme):
    found = []
    for library in (weft, torch):
        layer = reference(library, text, scheme)
        numbers = volume(library, layer) if "3d" in text else result(library, text, layer)
        found.append((repr(layer), list(layer.state_dict()), numbers))
    assert found[0][:2] == found[1][:2]
    np.testing.assert_allclose(found[0][2], found[1][2], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scheme", ["tensor", "channel"])
@pytest.mark.parametrize("direction", [(weft, torch), (torch, weft)], ids=str)
def test_files(direction, scheme):
    writer, reader = direction
    written, file = reference(writer, "Linear(6,4)", scheme), io.BytesIO()
    writer.save(written.state_dict(), file)
    file.seek(0)
    made = reader.ao.nn.quantized.reference.Linear(6, 4, weight_qparams=eval(SCHEMES[scheme], {"t": reader}))
    made.load_state_dict(reader.load(file))
    found, wanted = result(reader, "", made), result(writer, "", written)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


QUANTIZED = {
    "Linear(6,4)": "n.Linear.from_reference(r, 0.05, 100)",
    "Conv2d(4,4,3)": "n.Conv2d.from_reference(r, 0.05, 100)",
    "LSTM(6,2,2)": "n.dynamic.LSTM.from_reference(r)",
    "GRUCell(6,3)": "n.dynamic.GRUCell.from_reference(r)",
    "RNNCell(6,3)": "n.dynamic.RNNCell.from_reference(r)",
}


@pytest.mark.parametrize("text", QUANTIZED)
def test_quantized_layers_of_reference_layers(text):
    shown = []
    for library in (weft, torch):
        made = eval(QUANTIZED[text], {"n": library.ao.nn.quantized, "r": reference(library, text, "tensor")})
        weight = made.get_weight() if hasattr(made, "get_weight") else {"weight": made.weight()}
        shown.append((repr(made), {name: each.int_repr().tolist() for name, each in weight.items()}))
    assert shown[0] == shown[1]


def test_convert_makes_reference_layers():
    models = []
    for library in (weft, torch):
        nn, ao = library.nn, library.ao.quantization
        model = nn.Sequential(
            ao.QuantStub(), floats(library, "Conv2d(4,4,3)"), nn.Flatten(), ao.DeQuantStub()
        ).eval()
        model.qconfig = ao.default_qconfig
        model = ao.prepare(model)
        model(library.from_numpy(NUMBERS))
        models.append(ao.convert(model, is_reference=True))
    own, other = models
    assert repr(own[1]) == repr(other[1]) and list(own.state_dict()) == list(other.state_dict())
    assert (
        own[1].get_quantized_weight().int_repr().tolist()
        == other[1].get_quantized_weight().int_repr().tolist()
    )


@pytest.mark.parametrize(
    "text",
    [
        "r.Linear(3,4,weight_qparams={'qscheme':t.per_tensor_symmetric,'dtype':t.qint8,'scale':0.1,'zero_point':0})",
        "r.Linear(3,4,weight_qparams={'dtype':t.qint8})",
        "r.GRUCell(3,4,weight_qparams_dict={})",
        "r.ConvTranspose2d(3,4,2,padding_mode='reflect')",
    ],
)
def test_errors(text):
    raised = []
    for library in (weft, torch):
        with pytest.raises(Exception) as error:  # noqa: B017 (its type is compared)
            eval(text, {"t": library, "r": library.ao.nn.quantized.reference})
        raised.append(error.type)
    assert raised[0] is raised[1]
