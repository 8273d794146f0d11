"""LSTM and attention whose steps are observed and quantized one by one: texts, states, results and files are PyTorch's."""

import io
import re

import numpy as np
import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
BATCHES = np.random.default_rng(10).standard_normal((3, 5, 2, 4)).astype(np.float32)
LSTMS = "LSTM(4,6) LSTM(4,6,2,batch_first=True,dropout=0.5) LSTM(4,6,bidirectional=True) LSTM(4,6,bias=False)".split()
ATTENTIONS = "MultiheadAttention(4,2) MultiheadAttention(4,2,add_zero_attn=True) MultiheadAttention(4,1,bias=False)".split()


def layer(library, text):
    random = np.random.default_rng(11)
    found = eval(f"nn.{text}", {"nn": library.nn}).eval()
    for each in found.parameters():
        each.data.copy_(
            library.from_numpy((random.standard_normal(tuple(each.shape)) * 0.4).astype(np.float32))
        )
    return found


def network(library, text):
    nn, ao = library.nn, library.ao.quantization

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant, self.inner = ao.QuantStub(), ao.DeQuantStub(), layer(library, text)

        def forward(self, x):
            x = self.quant(x)
            found = self.inner(x, x, x) if "Attention" in text else self.inner(x)
            return self.dequant(found[0])

    return Net().eval()


def converted(library, text):
    ao = library.ao.quantization
    model = network(library, text)
    model.qconfig = ao.default_qconfig
    model = ao.prepare(model)
    for batch in BATCHES:
        model(library.from_numpy(batch))
    return ao.convert(model)


def shown(model):
    """The text of a model, without the last digits of scales."""
    return re.sub(r"\d\.\d+", lambda number: f"{float(number[0]):.4f}", repr(model))


@pytest.mark.parametrize("text", LSTMS + ATTENTIONS)
def test_quantized(text):
    own, other = (converted(library, text) for library in (weft, torch))
    assert shown(own) == shown(other)
    assert list(own.state_dict()) == list(other.state_dict())
    for batch in BATCHES:
        found, wanted = own(weft.from_numpy(batch)).numpy(), other(torch.from_numpy(batch)).numpy()
        # An integer of a state that is one off moves later steps.
        assert np.mean(np.abs(found - wanted) > 1e-5) < 0.05
        np.testing.assert_allclose(found, wanted, atol=0.05)


@pytest.mark.parametrize("text", ["LSTM(4,6,bidirectional=True)", "MultiheadAttention(4,2)"])
@pytest.mark.parametrize("direction", [(weft, torch), (torch, weft)], ids=str)
def test_files(direction, text):
    writer, reader = direction
    written, file = converted(writer, text), io.BytesIO()
    writer.save(written.state_dict(), file)
    file.seek(0)
    model = converted(reader, text)
    model.load_state_dict(reader.load(file))
    found, wanted = model(reader.from_numpy(BATCHES[0])), written(writer.from_numpy(BATCHES[0]))
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), atol=0.05)


@pytest.mark.parametrize("split", [False, True])
def test_floats_are_those_of_the_layer(split):
    lstm = layer(weft, "LSTM(4,6,2,bidirectional=True)")
    lstm.qconfig = weft.ao.quantization.default_qconfig
    made = weft.ao.nn.quantizable.LSTM.from_float(lstm, split_gates=split)
    x, state = weft.from_numpy(BATCHES[0]), (weft.ones(4, 2, 6), weft.zeros(4, 2, 6))
    for found, wanted in zip((made(x)[0], *made(x, state)[1]), (lstm(x)[0], *lstm(x, state)[1]), strict=True):
        np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("split", [False, True])
def test_cells(split):
    results = []
    for library in (weft, torch):
        cell = layer(library, "LSTMCell(4,6)")
        cell.qconfig = library.ao.quantization.default_qconfig
        made = library.ao.nn.quantizable.LSTMCell.from_float(cell, split_gates=split)
        found = [each.detach().numpy() for each in made(library.from_numpy(BATCHES[0, 0]))]
        results.append((repr(made), list(made.state_dict()), found))
    assert results[0][:2] == results[1][:2]
    np.testing.assert_allclose(results[0][2], results[1][2], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("batch_first", [False, True])
def test_attention_of_floats(batch_first):
    """Masks, batch_first and averages are those of the layer of floats."""
    attention = layer(
        weft, f"MultiheadAttention(4,2,batch_first={batch_first},kdim=4,vdim=4,add_bias_kv=True)"
    )
    attention.qconfig = weft.ao.quantization.default_qconfig
    made = weft.ao.nn.quantizable.MultiheadAttention.from_float(attention)
    x = weft.from_numpy(BATCHES[0])
    x = x.transpose(0, 1) if batch_first else x
    padding = weft.tensor([[False, False, True, True, False]] * 2)
    mask = weft.ones(5, 5).tril() == 0
    for options in ({}, {"attn_mask": mask}, {"key_padding_mask": padding, "average_attn_weights": False}):
        for found, wanted in zip(made(x, x, x, **options), attention(x, x, x, **options), strict=True):
            np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-4, atol=1e-6)


def test_biases_of_keys_and_values_have_their_own_ranges():
    """PyTorch quantizes the bias of the values with the range of the bias of the keys."""
    text = "MultiheadAttention(4,2,add_bias_kv=True)"
    model, floats, x = converted(weft, text), network(weft, text), weft.from_numpy(BATCHES[0])
    np.testing.assert_allclose(model(x).numpy(), floats(x).detach().numpy(), atol=0.1)


def test_dequantized_attention():
    quantized = converted(weft, "MultiheadAttention(4,2,add_bias_kv=True)").inner
    floats, found = layer(weft, "MultiheadAttention(4,2,add_bias_kv=True)"), quantized.dequantize()
    assert type(found) is weft.nn.MultiheadAttention
    for name, each in floats.state_dict().items():
        np.testing.assert_allclose(found.state_dict()[name].numpy(), each.numpy(), atol=0.02)


ERRORS = """
n.quantizable.LSTM.from_float(t.nn.LSTM(3,4))
n.quantizable.LSTM.from_float(t.nn.Linear(3,4))
n.quantizable.LSTMCell.from_float(t.nn.LSTMCell(3,4))
n.quantizable.MultiheadAttention.from_float(t.nn.MultiheadAttention(4,2))
n.quantizable.LSTM(3,4,dropout=2.0)
n.quantizable.LSTM.from_observed(t.nn.LSTM(3,4))
n.quantized.LSTM.from_float(t.nn.LSTM(3,4))
n.quantized.LSTM.from_observed(t.nn.LSTM(3,4))
n.quantized.MultiheadAttention.from_float(t.nn.MultiheadAttention(4,2))
n.quantizable.MultiheadAttention(4,2)(t.ones(3,1,4),t.ones(3,1,4),t.ones(3,1,4),attn_mask=t.ones(2,2,2,2))
n.quantizable.MultiheadAttention(4,2)(t.ones(3,1,4),t.ones(3,1,4),t.ones(3,1,4),is_causal=True)
""".split("\n")[1:-1]


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text):
    raised = []
    for library in (weft, torch):
        with pytest.raises(Exception) as error:  # noqa: B017 (its type is compared)
            eval(text, {"t": library, "n": library.ao.nn})
        raised.append(error.type)
    assert raised[0] is raised[1]
