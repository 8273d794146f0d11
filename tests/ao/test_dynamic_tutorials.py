"""PyTorch's tutorials of dynamic quantization: a language model with LSTMs, and a model like BERT."""

import io

import numpy as np
import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
WORDS = 200


def language_model(library):
    nn = library.nn

    class LSTMModel(nn.Module):
        """An encoder, recurrent layers, and a decoder, as in the tutorial "Dynamic Quantization on an LSTM Word Language Model"."""

        def __init__(self, ninp=64, nhid=96, nlayers=2):
            super().__init__()
            self.drop, self.encoder = nn.Dropout(0.5), nn.Embedding(WORDS, ninp)
            self.rnn, self.decoder = nn.LSTM(ninp, nhid, nlayers, dropout=0.5), nn.Linear(nhid, WORDS)
            self.nhid, self.nlayers = nhid, nlayers

        def init_hidden(self, batch):
            weight = next(self.encoder.parameters())
            return tuple(weight.new_zeros(self.nlayers, batch, self.nhid) for _ in range(2))

        def forward(self, words, hidden):
            output, hidden = self.rnn(self.drop(self.encoder(words)), hidden)
            return self.decoder(self.drop(output)), hidden

    return LSTMModel()


def encoder(library):
    nn = library.nn

    class Block(nn.Module):
        def __init__(self, size=64, heads=4):
            super().__init__()
            self.query, self.key, self.value, self.dense = (nn.Linear(size, size) for _ in range(4))
            self.norm, self.out_norm = nn.LayerNorm(size), nn.LayerNorm(size)
            self.intermediate, self.output, self.heads = (
                nn.Linear(size, 4 * size),
                nn.Linear(4 * size, size),
                heads,
            )

        def forward(self, x):
            q, k, v = (
                each(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                for each in (self.query, self.key, self.value)
            )
            weights = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1)
            x = self.norm(x + self.dense((weights @ v).transpose(1, 2).flatten(2)))
            return self.out_norm(x + self.output(nn.functional.gelu(self.intermediate(x))))

    class Encoder(nn.Module):
        """Blocks of attention with a classifier, as in the tutorial "Dynamic Quantization on BERT"."""

        def __init__(self, size=64):
            super().__init__()
            self.words, self.positions = nn.Embedding(WORDS, size), nn.Embedding(16, size)
            self.layer, self.classifier = nn.Sequential(Block(), Block()), nn.Linear(size, 2)

        def forward(self, words):
            x = self.words(words) + self.positions(library.arange(words.shape[1]))
            return self.classifier(self.layer(x)[:, 0].tanh())

    return Encoder()


def filled(library, model):
    random = np.random.default_rng(20)
    for each in model.parameters():
        spread = 1.0 if each.dim() < 2 else each.shape[-1] ** -0.5
        each.data.copy_(
            library.from_numpy((random.standard_normal(tuple(each.shape)) * spread).astype(np.float32))
        )
    return model.eval()


def size_of_file(library, model):
    file = io.BytesIO()
    library.save(model.state_dict(), file)
    return len(file.getvalue())


def test_language_model():
    words = np.random.default_rng(21).integers(0, WORDS, (10, 4))
    results, sizes = [], []
    for library in (weft, torch):
        nn, model = library.nn, filled(library, language_model(library))
        quantized = library.ao.quantization.quantize_dynamic(model, {nn.LSTM, nn.Linear}, dtype=library.qint8)
        outputs = [each(library.from_numpy(words), each.init_hidden(4)) for each in (model, quantized)]
        results.append([each.detach().numpy() for each in (outputs[0][0], outputs[1][0], *outputs[1][1])])
        sizes.append([size_of_file(library, each) for each in (model, quantized)])
        assert "DynamicQuantizedLSTM(64, 96, num_layers=2, dropout=0.5)" in repr(quantized)
    floats, *own = results[0]
    for found, wanted in zip(own, results[1][1:], strict=True):
        np.testing.assert_allclose(found, wanted, atol=2e-3)  # a rounded state that is one of 128 steps off
    assert 0 < np.abs(own[0] - floats).max() < 0.2
    # The embedding stays as it is, which is a sixth of the parameters.
    assert sizes[0][1] < 0.4 * sizes[0][0] and abs(sizes[0][1] - sizes[1][1]) < 0.05 * sizes[1][1]


def test_encoder():
    words = np.random.default_rng(22).integers(0, WORDS, (8, 12))
    results, sizes = [], []
    for library in (weft, torch):
        model = filled(library, encoder(library))
        quantized = library.ao.quantization.quantize_dynamic(model, {library.nn.Linear}, dtype=library.qint8)
        results.append([each(library.from_numpy(words)).detach().numpy() for each in (model, quantized)])
        sizes.append([size_of_file(library, each) for each in (model, quantized)])
    np.testing.assert_allclose(results[0][1], results[1][1], atol=2e-2)
    assert np.mean(results[0][0].argmax(1) == results[0][1].argmax(1)) >= 0.75
    assert sizes[0][1] < 0.5 * sizes[0][0] and abs(sizes[0][1] - sizes[1][1]) < 0.05 * sizes[1][1]
