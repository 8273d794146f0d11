"""Embeddings with quantized tables: the values, the state_dicts and the files are PyTorch's."""

import io

import numpy as np
import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
TABLE = np.random.default_rng(6).standard_normal((9, 8)).astype(np.float32)


def model(library, kind, dtype):
    nn, ao = library.nn, library.ao.quantization
    layer = nn.EmbeddingBag(9, 8, mode="sum") if kind == "bag" else nn.Embedding(9, 8)
    layer.weight.data.copy_(library.from_numpy(TABLE))
    qconfig = (
        ao.float_qparams_weight_only_qconfig_4bit
        if dtype == "quint4x2"
        else ao.float_qparams_weight_only_qconfig
    )
    return ao.quantize_dynamic(nn.Sequential(layer), {type(layer): qconfig})


def results(library, made, kind):
    indices = library.tensor([1, 4, 8, 0, 2])
    if kind != "bag":
        return [made(indices).numpy(), made(indices.reshape(5, 1).int()).numpy()]
    bag, weights = made[0], library.arange(5.0)
    return [
        bag(indices, library.tensor([0, 2])).numpy(),
        bag(indices, library.tensor([0, 2]), per_sample_weights=weights).numpy(),
        bag(indices.reshape(1, 5)).numpy(),
        bag(indices.int(), library.tensor([0, 3, 3]).int()).numpy(),
    ]


@pytest.mark.parametrize("kind, dtype", [("rows", "quint8"), ("bag", "quint8"), ("bag", "quint4x2")])
def test_as_in_pytorch(kind, dtype):
    own, other = (model(library, kind, dtype) for library in (weft, torch))
    assert repr(own) == repr(other) and list(own.state_dict()) == list(other.state_dict())
    for found, wanted in zip(results(weft, own, kind), results(torch, other, kind), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("direction", [(weft, torch), (torch, weft)], ids=str)
def test_files(direction):
    writer, reader = direction
    file = io.BytesIO()
    writer.save(model(writer, "bag", "quint8").state_dict(), file)
    file.seek(0)
    made = model(reader, "bag", "quint8")
    made.load_state_dict(reader.load(file))
    np.testing.assert_array_equal(
        made[0].weight().int_repr().numpy(), model(writer, "bag", "quint8")[0].weight().int_repr().numpy()
    )


def test_means_and_maxima_are_computed():
    """PyTorch adds up the rows in these modes, too."""
    for mode in ("mean", "max"):
        layer = weft.nn.EmbeddingBag(9, 8, mode=mode, _weight=weft.from_numpy(TABLE))
        layer.qconfig = weft.ao.quantization.float_qparams_weight_only_qconfig
        made = weft.ao.nn.quantized.EmbeddingBag.from_float(layer)
        arguments = weft.tensor([1, 4, 8, 0]), weft.tensor([0, 3])
        np.testing.assert_allclose(made(*arguments).numpy(), layer(*arguments).detach().numpy(), atol=0.02)


@pytest.mark.parametrize(
    "text",
    [
        "n.Embedding(3, 4, dtype=t.qint8)",
        "n.Embedding(3, 4, _weight=t.quantize_per_tensor(t.randn(3, 4), 0.1, 0, t.quint8))",
        "n.Embedding(3, 4, _weight=t.randn(4, 4))",
        "n.EmbeddingBag(3, 4)(t.tensor([1, 2]))",
        "n.EmbeddingBag.from_float(t.nn.Embedding(3, 4))",
        "n.EmbeddingBag.from_float(t.nn.EmbeddingBag(3, 4))",
        "t.ao.quantization.quantize_dynamic(t.nn.Sequential(t.nn.EmbeddingBag(3, 4)), {t.nn.EmbeddingBag})",
    ],
)
def test_errors(text):
    raised = []
    for library in (weft, torch):
        with pytest.raises(Exception) as error:  # noqa: B017 (its type is compared)
            eval(text, {"t": library, "n": library.ao.nn.quantized})
        raised.append(error.type)
    assert raised[0] is raised[1]
