"""Recurrent layers with quantized weights: the values, the texts, the errors and the files are PyTorch's."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
INPUT = np.random.default_rng(3).standard_normal((7, 3, 5)).astype(np.float32)
LAYERS = """
LSTM(5,6) LSTM(5,6,2,bidirectional=True) LSTM(5,4,2,batch_first=True,dropout=0.5) GRU(5,6) GRU(5,6,2,batch_first=True) GRU(5,6,2,bidirectional=True)
""".split()
CELLS = ["LSTMCell(5,6)", "GRUCell(5,6)", "RNNCell(5,6)", "RNNCell(5,6,nonlinearity='relu')"]
# A hidden state whose last bit differs may be rounded to the next of 128 integers, which moves the results by a part of a weight's scale.
CLOSE = {"rtol": 0, "atol": 2e-6}


def floats(library, text):
    """A layer of floats whose parameters are the same in both libraries."""
    random = np.random.default_rng(4)
    layer = eval(f"nn.{text}", {"nn": library.nn})
    for each in layer.parameters():
        each.data.copy_(
            library.from_numpy((random.standard_normal(tuple(each.shape)) * 0.3).astype(np.float32))
        )
    return layer


def quantized(library, text, dtype="qint8"):
    model = library.nn.Sequential(floats(library, text))
    return library.ao.quantization.quantize_dynamic(model, dtype=getattr(library, dtype))


def arrays(result):
    """The tensors of a result, nested tuples among them, as arrays."""
    if isinstance(result, tuple):
        return [each for part in result for each in arrays(part)]
    return [result.detach().numpy()] if hasattr(result, "detach") else []


def assert_close(found, wanted):
    for own, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(own, other, **CLOSE)


def packed(library, batch_first):
    sequence = library.nn.utils.rnn.pack_padded_sequence
    lengths = [3, 1, 2] if batch_first else [4, 7, 2]
    data = INPUT[:3] if batch_first else INPUT
    return sequence(library.from_numpy(data), lengths, batch_first=batch_first, enforce_sorted=False)


@pytest.mark.parametrize("dtype", ["qint8", "float16"])
@pytest.mark.parametrize("text", LAYERS)
def test_layers(text, dtype):
    results = []
    for library in (weft, torch):
        model = quantized(library, text, dtype)
        output, state = model(library.from_numpy(INPUT))
        again = model[0](library.from_numpy(INPUT), state)
        of_packed = model(packed(library, "batch_first" in text))
        results.append((repr(model), arrays((output, state, again, (of_packed[0].data, of_packed[1])))))
    assert results[0][0] == results[1][0]
    assert_close(results[0][1], results[1][1])


@pytest.mark.parametrize("dtype", ["qint8", "float16"])
@pytest.mark.parametrize("text", CELLS)
def test_cells(text, dtype):
    results = []
    for library in (weft, torch):
        cell = quantized(library, text, dtype)[0]
        state = None
        for step in INPUT:
            state = cell(library.from_numpy(step), state)
        named = {**cell.get_weight(), **cell.get_bias()}
        results.append((repr(cell), list(cell.state_dict()), list(named), arrays(state)))
    assert results[0][:3] == results[1][:3]
    assert_close(results[0][3], results[1][3])


def test_channels_have_scales_of_their_own():
    results = []
    for library in (weft, torch):
        layer = floats(library, "GRU(5,6)")
        layer.qconfig = library.ao.quantization.per_channel_dynamic_qconfig
        made = library.ao.nn.quantized.dynamic.GRU.from_float(layer)
        weights = {name: each.int_repr().tolist() for name, each in made.get_weight().items()}
        results.append((weights, list(made.get_bias()), arrays(made(library.from_numpy(INPUT)))))
    assert results[0][:2] == results[1][:2]
    assert_close(results[0][2], results[1][2])


# ---- Files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["qint8", "float16"])
@pytest.mark.parametrize("text", ["LSTM(5,6,2,bidirectional=True)", "GRU(5,6)", "LSTMCell(5,6)"])
@pytest.mark.parametrize("direction", [(weft, torch), (torch, weft), (weft, weft)], ids=str)
def test_files(direction, text, dtype):
    writer, reader = direction
    written, file = quantized(writer, text, dtype), io.BytesIO()
    writer.save(written.state_dict(), file)
    file.seek(0)
    model = library_model(reader, text, dtype)
    model.load_state_dict(reader.load(file, weights_only=False))
    step = INPUT[0] if "Cell" in text else INPUT
    assert_close(arrays(model(reader.from_numpy(step))), arrays(written(writer.from_numpy(step))))


def library_model(library, text, dtype):
    """A quantized model with other parameters."""
    model = library.nn.Sequential(eval(f"nn.{text}", {"nn": library.nn}))
    return library.ao.quantization.quantize_dynamic(model, dtype=getattr(library, dtype))


@pytest.mark.parametrize("direction", [(weft, torch), (torch, weft)], ids=str)
def test_files_of_whole_models(direction):
    writer, reader = direction
    written, file = quantized(writer, "LSTM(5,6)"), io.BytesIO()
    writer.save(written, file)
    file.seek(0)
    model = reader.load(file, weights_only=False)
    assert repr(model) == repr(written)
    assert_close(arrays(model(reader.from_numpy(INPUT))), arrays(written(writer.from_numpy(INPUT))))


def test_weights_only_asks_for_the_class():
    file = io.BytesIO()
    weft.save(quantized(weft, "LSTM(5,6)").state_dict(), file)
    with pytest.raises(pickle.UnpicklingError, match="ScriptObject"):
        file.seek(0)
        weft.load(file)
    with weft.serialization.safe_globals([weft.ScriptObject]):
        file.seek(0)
        assert list(weft.load(file)) == ["0._all_weight_values.0.param"]


def test_copies():
    model = quantized(weft, "GRU(5,6)")
    wanted = arrays(model(weft.from_numpy(INPUT)))
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert_close(arrays(copied(weft.from_numpy(INPUT))), wanted)


# ---- Errors ----------------------------------------------------------------------------------------------------------


ERRORS = [
    "quantize(nn.LSTM(3,2,bias=False))",
    "quantize(nn.GRUCell(3,2,bias=False))",
    "quantize(nn.LSTM(3,2))(t.randn(2,3))",
    "quantize(nn.LSTM(3,2))(t.randn(2,3,4))",
    "quantize(nn.LSTM(3,2))(t.randn(2,3,3).double())",
    "quantize(nn.LSTM(3,2))(t.randn(0,3,3))",
    "quantize(nn.LSTM(3,2))[0](t.randn(2,3,3), (t.zeros(1,2,2), t.zeros(1,3,2)))",
    "quantize(nn.LSTM(3,2))[0](t.randn(2,3,3), (t.zeros(1,3,2), t.zeros(1,2,2)))",
    "quantize(nn.LSTMCell(3,2))(t.randn(2,4))",
    "quantize(nn.LSTMCell(3,2))[0](t.randn(2,3), (t.zeros(2,3), t.zeros(2,2)))",
    "d.LSTM(3,2,dropout=2.0)",
    "d.RNNCell(3,2,nonlinearity='foo')(t.randn(2,3))",
    "d.LSTM.from_float(nn.LSTM(3,2))",
    "d.LSTM.from_float(nn.Linear(3,2))",
    "d.GRUCell.from_float(nn.GRUCell(3,2))",
    "d.GRUCell.from_float(nn.Linear(3,2))",
    "q.linear_dynamic(t.randn(2,3), t.randn(2,3))",
    "q.linear_prepack(t.quantize_per_tensor(t.randn(4,3), 0.1, 0, t.qint8), t.zeros(3))",
    "q.linear_prepack(t.quantize_per_tensor(t.randn(1,4,3), 0.1, 0, t.qint8), t.zeros(4))",
    "ao.quantize_dynamic(nn.Linear(3,2), dtype=t.int8)",
    "ao.quantize_dynamic(nn.Linear(3,2), {nn.Linear}, dtype=t.int8)",
    "t.ScriptObject()",
]


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text):
    raised = []
    for library in (weft, torch):
        ao = library.ao.quantization
        names = {
            "t": library,
            "nn": library.nn,
            "d": library.ao.nn.quantized.dynamic,
            "q": library.ops.quantized,
            "ao": ao,
            "quantize": lambda layer, ao=ao, nn=library.nn: ao.quantize_dynamic(nn.Sequential(layer)),
        }
        with pytest.raises(Exception) as error:  # noqa: B017 (its type is compared)
            eval(text, names)
        raised.append(error.type)
    assert raised[0] is raised[1]


def test_cell_params():
    q = weft.ops.quantized
    weights = [weft.quantize_per_tensor(weft.randn(8, size), 0.1, 0, weft.qint8) for size in (3, 2)]
    packed = [q.linear_prepack(each, weft.zeros(8)) for each in weights]
    cell = q.make_quantized_cell_params_dynamic(*packed, weft.zeros(8), weft.zeros(8), True)
    assert cell._type() == "__torch__.torch.classes.rnn.CellParamsBase"
    assert str(cell) == "ScriptObject <__torch__.torch.classes.rnn.CellParamsBase>"
    state = weft.zeros(1, 1, 2), weft.zeros(1, 1, 2)
    output, *_ = weft.quantized_lstm(weft.ones(4, 1, 3), state, [cell], True, 1, 0.0, False, False, False)
    assert output.shape == (4, 1, 2)
    with pytest.raises(RuntimeError, match="expected 2 objects"):
        weft.quantized_lstm(weft.ones(4, 1, 3), state, [cell], True, 2, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="two weights from"):
        q.make_quantized_cell_params_dynamic(packed[0], q.linear_prepack_fp16(weft.randn(8, 2)), None, None)
