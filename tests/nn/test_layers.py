"""Every layer starts, prints and computes as PyTorch's."""

import io
import warnings

import layers
import oracle
import pytest
import torch

import weft
from weft import nn


@pytest.mark.parametrize("call, shapes", layers.CALLS, ids=[call for call, _ in layers.CALLS])
def test_layer(call, shapes):
    mine, theirs = layers.build(weft, call), layers.build(torch, call)
    assert float(weft.rand(())) == float(torch.rand(()))  # as many random numbers were drawn
    assert repr(mine) == repr(theirs)
    layers.same_state(mine, theirs)
    inputs = layers.inputs_of(shapes)
    for training in (True, False):
        mine.train(training)
        theirs.train(training)
        with weft.no_grad(), torch.no_grad():
            got, expected = layers.call(weft, mine, inputs), layers.call(torch, theirs, inputs)
        layers.close(got, expected)
        assert repr(mine) == repr(theirs)  # lazy layers have become ordinary ones
        for one, other in zip(mine.buffers(), theirs.buffers(), strict=True):
            layers.close(one, other)


# PyTorch's backward of CrossMapLRN2d is not the derivative of its forward.
DIFFERENTIABLE = [(call, shapes) for call, shapes in layers.CALLS if not call.startswith("CrossMapLRN2d")]


@pytest.mark.parametrize("call, shapes", DIFFERENTIABLE, ids=[call for call, _ in DIFFERENTIABLE])
def test_gradients(call, shapes):
    got, expected = (layers.gradients(library, call, shapes) for library in (weft, torch))
    assert list(got) == list(expected)
    for name, gradient in expected.items():
        if gradient is None:
            assert got[name] is None or not got[name].any()
        else:
            layers.close(got[name], gradient, rtol=1e-4, atol=1e-5)


def test_every_layer_is_there():
    tested = {call.partition("(")[0] for call, _ in layers.CALLS}
    elsewhere = {"MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "RNNBase", "RNNCellBase"}
    containers = {
        "Container", "Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential",
    }  # fmt: skip
    names = set(torch.nn.modules.__all__) - containers - {"LinearCrossEntropyOptions"}
    assert names - elsewhere == tested
    assert all(hasattr(nn, name) for name in names)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
@pytest.mark.parametrize(
    "call",
    [
        "Linear(3, 4, dtype=torch.{})", "Bilinear(2, 3, 4, dtype=torch.{})",
        "Conv2d(4, 6, 3, dtype=torch.{})", "ConvTranspose1d(4, 6, 3, dtype=torch.{})",
        "Embedding(5, 3, 1, dtype=torch.{})", "EmbeddingBag(5, 3, dtype=torch.{})",
        "BatchNorm1d(3, dtype=torch.{})", "LayerNorm(3, dtype=torch.{})", "LSTM(3, 4, 2, dtype=torch.{})",
        "GRUCell(3, 4, dtype=torch.{})", "MultiheadAttention(8, 2, add_bias_kv=True, dtype=torch.{})",
        "Transformer(8, 2, 1, 1, 16, dtype=torch.{})", "PReLU(dtype=torch.{})",
        "AdaptiveLogSoftmaxWithLoss(8, 5, [2], dtype=torch.{})",
    ],
)  # fmt: skip
def test_dtypes(call, dtype):
    layers.same_state(layers.build(weft, call.format(dtype)), layers.build(torch, call.format(dtype)))


def test_device():
    layer = nn.Linear(3, 4, device="meta")
    assert layer.weight.is_meta and layer.bias.is_meta
    assert nn.LSTM(3, 4, device="meta")(weft.empty(5, 2, 3, device="meta"))[0].shape == (5, 2, 4)
    assert nn.Conv2d(3, 4, 2, device="meta")(weft.empty(5, 3, 4, 4, device="meta")).shape == (5, 4, 3, 3)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_max_unpool(n):
    values = torch.randn(2, 3, *(6, 4, 8)[:n])
    results = []
    for library in (weft, torch):
        input = oracle.to_weft(values) if library is weft else values
        pool = getattr(library.nn, f"MaxPool{n}d")(2, 2, return_indices=True)
        unpool = getattr(library.nn, f"MaxUnpool{n}d")(2, 2)
        results += [repr(unpool), unpool(*pool(input)), unpool(*pool(input), output_size=list(values.shape))]
    assert results[0] == results[3]
    layers.close(results[1:3], results[4:])


def test_transposed_convolution_with_output_size():
    for call, shape, sizes in (
        ("ConvTranspose1d(2, 3, 3, 2)", "2,2,5", [(11,), (12,), (2, 3, 12)]),
        ("ConvTranspose2d(2, 3, 3, 2, 1, dilation=2)", "2,2,5,4", [(11, 9), (12, 10), (2, 3, 11, 10)]),
        ("ConvTranspose3d(2, 3, 2, 2)", "2,5,4,3", [(10, 8, 6), (11, 9, 7)]),
    ):
        mine, theirs = layers.build(weft, call), layers.build(torch, call)
        (input,) = layers.inputs_of([shape])
        with weft.no_grad(), torch.no_grad():
            for size in sizes:
                layers.close(mine(oracle.to_weft(input), size), theirs(input, size))
    with pytest.raises(ValueError, match="requested an output size of"):
        mine(oracle.to_weft(input), (9, 8, 6))
    with pytest.raises(ValueError, match="must have 3 or 4 elements"):
        mine(oracle.to_weft(input), (9, 8))


def test_embeddings_from_pretrained():
    table = weft.arange(6.0).view(3, 2)
    layer = nn.Embedding.from_pretrained(table, padding_idx=-1)
    assert repr(layer) == "Embedding(3, 2, padding_idx=2)"
    assert not layer.weight.requires_grad
    assert layer.weight.data_ptr() == table.data_ptr()
    assert nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad
    bag = nn.EmbeddingBag.from_pretrained(table, mode="sum")
    assert not bag.weight.requires_grad
    assert bag(weft.tensor([[0, 2]])).tolist() == [[4.0, 6.0]]


def test_sync_batch_norm_conversion():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Sequential(nn.BatchNorm1d(4, bias=False)))
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert [type(each).__name__ for each in converted.modules()].count("SyncBatchNorm") == 2
    assert converted[1].weight.data_ptr() == converted[1].running_mean.data_ptr() or converted is model
    assert list(converted.state_dict()) == list(model.state_dict())


def test_batch_norm_that_tracks_no_longer_leaves_its_statistics():
    for lib in (torch, weft):
        layer = lib.nn.BatchNorm1d(2)
        layer.track_running_stats = False
        layer(lib.tensor([[1.0, 2.0], [3.0, 5.0]]))
        assert layer.running_mean.tolist() == [0, 0] and layer.running_var.tolist() == [1, 1]
        assert layer.num_batches_tracked == 0


def test_old_batch_norm_state_gets_its_count():
    layer = nn.BatchNorm1d(2)
    state = layer.state_dict()
    del state["num_batches_tracked"], state._metadata
    layer.num_batches_tracked.fill_(7)
    layer.load_state_dict(state)
    assert int(layer.num_batches_tracked) == 7


def test_adaptive_softmax_predicts():
    call = "AdaptiveLogSoftmaxWithLoss(8, 9, [2, 5], 2.0)"
    mine, theirs = layers.build(weft, call), layers.build(torch, call)
    (input,) = layers.inputs_of(["20,8"])
    with weft.no_grad(), torch.no_grad():
        own = oracle.to_weft(input * 5)
        layers.close(mine.log_prob(own), theirs.log_prob(input * 5))
        assert mine.predict(own).tolist() == theirs.predict(input * 5).tolist()


def test_torch_import_paths():
    for layer, path in (
        (nn.Conv2d, "conv"),
        (nn.Linear, "linear"),
        (nn.BatchNorm2d, "batchnorm"),
        (nn.MultiheadAttention, "activation"),
        (nn.Module, "module"),
        (nn.Sequential, "container"),
        (nn.LSTM, "rnn"),
        (nn.Transformer, "transformer"),
        (nn.CrossEntropyLoss, "loss"),
        (nn.AdaptiveAvgPool2d, "pooling"),
        (nn.LayerNorm, "normalization"),
        (nn.Embedding, "sparse"),
    ):
        assert getattr(getattr(nn.modules, path), layer.__name__) is layer
    for path, names in (
        ("batchnorm", "_BatchNorm _NormBase"),
        ("conv", "_ConvNd _ConvTransposeNd"),
        ("dropout", "_DropoutNd"),
        ("instancenorm", "_InstanceNorm"),
        ("loss", "_Loss _WeightedLoss"),
        ("pooling", "_MaxPoolNd _AvgPoolNd"),
        ("utils", "_single _pair _triple _quadruple _ntuple"),
        ("linear", "NonDynamicallyQuantizableLinear"),
        ("lazy", "LazyModuleMixin"),
    ):
        for name in names.split():
            assert hasattr(getattr(torch.nn.modules, path), name) and hasattr(getattr(nn.modules, path), name)


def test_prefix_is_taken_off():
    for library in (weft, torch):
        model = library.nn.Sequential(library.nn.Linear(1, 1))
        wrapped = library.nn.ModuleDict({"module": model}).state_dict()
        library.nn.modules.utils.consume_prefix_in_state_dict_if_present(wrapped, "module.")
        assert list(wrapped) == ["0.weight", "0.bias"]
        assert set(wrapped._metadata) == {"", "0"}


# ---- Bad arguments ---------------------------------------------------------------------------------------------------

BAD_LAYERS = """
Bilinear(0, 1, 1) | Conv2d(3, 4, 2, groups=0) | Conv2d(3, 4, 2, groups=2) | Conv2d(4, 3, 2, groups=2)
Conv2d(4, 3, 2, padding='x') | Conv2d(4, 3, 2, 2, padding='same') | Conv2d(4, 3, 2, padding_mode='x')
ConvTranspose2d(4, 3, 2, padding_mode='reflect') | FractionalMaxPool2d(2) | FractionalMaxPool2d(2, 1, 1)
FractionalMaxPool3d(2, output_ratio=2) | Dropout(2) | Dropout(-0.5) | GroupNorm(2, 3) | Embedding(3, 4, 5)
Embedding(3, 4, -5) | Embedding(3, 4, _weight=torch.ones(2, 2)) | Embedding.from_pretrained(torch.ones(2))
Unflatten(1, 2) | Unflatten(1, (2.0, 2)) | Hardtanh(2, 1) | AdaptiveLogSoftmaxWithLoss(4, 10, [])
AdaptiveLogSoftmaxWithLoss(4, 10, [5, 2]) | AdaptiveLogSoftmaxWithLoss(4, 10, [10, 12]) | GaussianNLLLoss(True)
TripletMarginLoss(margin=-1) | TripletMarginWithDistanceLoss(margin=-1) | MultiMarginLoss(3)
MultiMarginLoss(1, weight=torch.ones(2, 2)) | RNN(0, 3) | RNN(2, 0) | RNN(2, 3.0) | RNN(2, 3, 0) | RNN(2, 3, 1, 'x')
RNN(2, 3, proj_size=2) | GRU(2, 3, proj_size=2) | LSTM(2, 3, proj_size=3) | LSTM(2, 3, proj_size=-1)
LSTM(2, 3, dropout=2) | LSTM(2, 3, dropout=True) | MultiheadAttention(4, 3) | MultiheadAttention(0, 3)
TransformerEncoderLayer(4, 2, activation='x') | LinearCrossEntropyOptions(batch_chunk_size=0)
HuberLoss(delta=1j) | HuberLoss(delta='x') | HuberLoss(delta=torch.tensor(1.0)) | LinearCrossEntropyLoss(3, 2, label_smoothing=2.0)
LinearCrossEntropyLoss(3, 2, weight=torch.ones(3)) | LinearCrossEntropyLoss(3, 2, weight=torch.ones(1, 2))
LinearCrossEntropyOptions(chunking_method='x') | LinearCrossEntropyOptions(acc_policy='x')
"""


@pytest.mark.parametrize(
    "call", [each.strip() for line in BAD_LAYERS.split("\n") for each in line.split("|") if each]
)
def test_bad_arguments(call):
    expected, got = (
        _failure(lambda library=library: layers.build(library, call)) for library in (torch, weft)
    )
    assert type(got) is type(expected)
    assert _first_words(got) == _first_words(expected)


BAD_INPUTS = [
    ("BatchNorm1d(3)", ["2,3,4,5"]),
    ("BatchNorm2d(3)", ["2,3"]),
    ("BatchNorm3d(3)", ["2,3"]),
    ("SyncBatchNorm(3)", ["3"]),
    ("InstanceNorm1d(3)", ["2,3,4,5"]),
    ("InstanceNorm2d(3, affine=True)", ["2,5,3,3"]),
    ("CrossMapLRN2d(2)", ["2,3"]),
    ("Softmax2d()", ["2"]),
    *(
        (f"CircularPad{n}d({padding})", [shape])
        for n, padding in ((1, 1), (1, (1, 1, 1, 1)), (2, 1), (2, (1, 2)), (3, 1))
        for shape in ("3", "2,3,4,3,3,2", *(["2,3"] if n > 1 else ["2,3,4,5"]))
    ),
    ("LazyConv2d(3, 2)", ["2,2"]),
    ("Linear(3, 4)", ["2,5"]),
    ("Conv2d(3, 4, 2)", ["2,5,4,4"]),
    ("EmbeddingBag(3, 4, mode='x')", ["i2:1,1"]),
    ("AdaptiveLogSoftmaxWithLoss(4, 9, [2])", ["2,4", "i3:3"]),
    ("AdaptiveLogSoftmaxWithLoss(4, 9, [2])", ["2,4", "i90:2"]),
    ("AdaptiveLogSoftmaxWithLoss(4, 9, [2])", ["4", "i3:2"]),
    ("AdaptiveLogSoftmaxWithLoss(4, 9, [2])", ["2,3,4", "i3:2,3"]),
    ("Transformer(4, 2, 1, 1, 8)", ["3,2,4", "3,3,4"]),
    ("Transformer(4, 2, 1, 1, 8)", ["3,2,5", "3,2,4"]),
    ("RNNCell(2, 3, nonlinearity='x')", ["2,2"]),
    *(
        (f"{kind}(2, 3)", [shape])
        for kind in ("RNN", "LSTM", "GRU")
        for shape in ("2", "2,2,2,2", "2,2,3", "2,3")
    ),
    *((f"{kind}Cell(2, 3)", [shape]) for kind in ("RNN", "LSTM", "GRU") for shape in ("2,2,2", "2,3")),
    *(
        (f"{kind}(2, 3)", ["4,1,2", shape])
        for kind in ("RNN", "GRU")
        for shape in ("1,3", "1,2,3", "2,1,3", "1,1,4")
    ),
    *((f"{kind}Cell(2, 3)", ["2", shape]) for kind in ("RNN", "GRU") for shape in ("1,3", "2,3")),
    *((f"{kind}(2, 3)", ["4,2", shape]) for kind in ("RNN", "GRU") for shape in ("1,2,3", "2,1,3")),
    *((f"{kind}Cell(2, 3)", ["2,2", shape]) for kind in ("RNN", "GRU") for shape in ("2,4", "3,3", "1,2,3")),
]


@pytest.mark.parametrize("call, shapes", BAD_INPUTS, ids=[f"{call} {shapes}" for call, shapes in BAD_INPUTS])
def test_bad_inputs(call, shapes):
    inputs = layers.inputs_of(shapes)
    expected, got = (
        _failure(lambda library=library: layers.call(library, layers.build(library, call), inputs))
        for library in (torch, weft)
    )
    assert type(got) is type(expected)
    assert _first_words(got) == _first_words(expected)


def _failure(function):
    with pytest.raises(Exception) as raised:
        function()
    return raised.value


def _first_words(error):
    return str(error).split()[:5]


def test_messages_name_the_layer_and_the_shapes():
    for layer, shape in (
        (nn.Linear(3, 4), (2, 5)),
        (nn.BatchNorm1d(3), (2, 3, 4, 5)),
        (nn.LSTM(2, 3), (4, 1, 5)),
    ):
        with pytest.raises(Exception) as raised:
            layer(weft.ones(shape))
        said = "\n".join([str(raised.value), *getattr(raised.value, "__notes__", ())])
        assert repr(layer) in said
        assert str(list(shape)) in said


def test_warnings():
    for call in (
        "Hardtanh(min_value=1, max_value=2)",
        "NLLLoss2d()",
        "LSTM(2, 3, dropout=0.5)",
        "MSELoss(size_average=False)",
        "TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2, 8), 1)",
        "LazyLinear(3)",
    ):
        said = []
        for library in (weft, torch):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                eval(f"torch.nn.{call}", {"torch": library})
            said.append([(each.category, str(each.message)) for each in caught])
        assert said[0] == said[1]
    with pytest.warns(UserWarning, match="does not match num_features"):
        nn.InstanceNorm2d(3)(weft.ones(2, 5, 3, 3))


def test_layers_saved_by_pytorch():
    file = io.BytesIO()
    theirs = layers.build(torch, "Sequential(torch.nn.LSTM(2, 3, 2), torch.nn.Identity())")[:1]
    torch.save(theirs, file)
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that loading whole modules runs code
        mine = weft.load(file, weights_only=False)
    input = torch.randn(4, 1, 2)
    layers.close(mine(oracle.to_weft(input)), theirs(input))
