"""The eager workflow: the quantized models, their results and their files are PyTorch's."""

import copy
import io
import re

import numpy as np
import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
RANDOM = np.random.default_rng(5)
IMAGES = RANDOM.standard_normal((3, 4, 3, 9, 9)).astype(np.float32)
ROWS = (RANDOM.standard_normal((4, 5, 8)) * 2).astype(np.float32)


def network(library):
    """A small residual network, as PyTorch's tutorial of static quantization has it."""
    nn, ao = library.nn, library.ao

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = ao.quantization.QuantStub(), ao.quantization.DeQuantStub()
            self.conv1, self.bn1, self.relu1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()
            self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, groups=2, bias=False), nn.BatchNorm2d(8)
            self.skip, self.relu6 = ao.nn.quantized.FloatFunctional(), nn.ReLU6()
            self.pool, self.fc1, self.relu2, self.fc2 = (
                nn.MaxPool2d(3),
                nn.Linear(72, 10),
                nn.ReLU(),
                nn.Linear(10, 4),
            )

        def forward(self, x):
            x = self.relu1(self.bn1(self.conv1(self.quant(x))))
            x = self.relu6(self.skip.add(x, self.bn2(self.conv2(x))))
            x = self.pool(x).reshape(x.shape[0], -1)
            return self.dequant(self.fc2(self.relu2(self.fc1(x))))

    return Net().eval()


FUSED = [["conv1", "bn1", "relu1"], ["conv2", "bn2"], ["fc1", "relu2"]]


def weights(model):
    random = np.random.default_rng(2)
    found = {}
    for name, value in model.state_dict().items():
        made = random.standard_normal(tuple(value.shape)) * 0.3
        found[name] = (np.abs(made) + 0.5 if "var" in name else made).astype(np.float32)
    return found


def floats(library, model):
    values = weights(model)
    kept = {
        name: library.from_numpy(np.array(value))
        for name, value in values.items()
        if "num_batches" not in name
    }
    model.load_state_dict(kept, strict=False)
    return model


def static_model(library, qconfig):
    ao = library.ao.quantization
    model = floats(library, network(library))
    model = ao.fuse_modules(model, FUSED)
    model.qconfig = qconfig(ao)
    model = ao.prepare(model)
    for batch in IMAGES:
        model(library.from_numpy(batch))
    return ao.convert(model)


def shown(model):
    """The text of a model. The scales that follow products of floats differ in the last bits."""
    return re.sub(r"\d\.\d+", lambda number: f"{float(number[0]):.6f}", repr(model))


QCONFIGS = {
    "fbgemm": lambda ao: ao.get_default_qconfig("fbgemm"),
    "default": lambda ao: ao.default_qconfig,
    "averages": lambda ao: ao.QConfig(
        ao.MovingAverageMinMaxObserver.with_args(reduce_range=True), ao.default_per_channel_weight_observer
    ),
}


@pytest.mark.parametrize("name", QCONFIGS)
def test_static_quantization(name):
    own, other = (static_model(library, QCONFIGS[name]) for library in (weft, torch))
    assert shown(own) == shown(other)
    for batch in IMAGES:
        found, wanted = own(weft.from_numpy(batch)).numpy(), other(torch.from_numpy(batch)).numpy()
        np.testing.assert_allclose(found, wanted, rtol=2e-6)  # so the integers are equal


@pytest.mark.parametrize("direction", [(weft, torch), (torch, weft), (weft, weft)], ids=str)
def test_files_of_quantized_models(direction):
    writer, reader = direction
    written = static_model(writer, QCONFIGS["fbgemm"])
    file = io.BytesIO()
    writer.save(written.state_dict(), file)
    file.seek(0)
    ao = reader.ao.quantization
    model = ao.fuse_modules(network(reader), FUSED)
    model.qconfig = ao.get_default_qconfig("fbgemm")
    model = ao.convert(ao.prepare(model))
    model.load_state_dict(reader.load(file))
    expected = written(writer.from_numpy(IMAGES[0])).numpy()
    np.testing.assert_array_equal(model(reader.from_numpy(IMAGES[0])).numpy(), expected)


def test_whole_models_are_copied_and_pickled():
    model = static_model(weft, QCONFIGS["fbgemm"])
    expected = model(weft.from_numpy(IMAGES[0])).numpy()
    np.testing.assert_array_equal(copy.deepcopy(model)(weft.from_numpy(IMAGES[0])).numpy(), expected)


def rows_model(library):
    nn = library.nn
    return floats(library, nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)))


@pytest.mark.parametrize("dtype", ["qint8", "float16"])
def test_dynamic_quantization(dtype):
    models = []
    for library in (weft, torch):
        models.append(
            library.ao.quantization.quantize_dynamic(
                rows_model(library), {library.nn.Linear}, dtype=getattr(library, dtype)
            )
        )
    own, other = models
    assert repr(own) == repr(other)
    for batch in ROWS:
        found, wanted = (
            own(weft.from_numpy(batch)).detach().numpy(),
            other(torch.from_numpy(batch)).detach().numpy(),
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-5 if dtype == "float16" else 2e-7, atol=1e-6)
    file = io.BytesIO()
    weft.save(own.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))


def test_layers_that_are_missing_are_named():
    for library in (weft, torch):
        with pytest.raises(AssertionError, match="did not find fuser method"):
            library.ao.quantization.fuse_modules(
                library.nn.Sequential(library.nn.ReLU(), library.nn.ReLU()), ["0", "1"]
            )


OBSERVERS = """
MinMaxObserver() MinMaxObserver(qscheme=t.per_tensor_symmetric) MinMaxObserver(dtype=t.qint8) MinMaxObserver(reduce_range=True)
MinMaxObserver(dtype=t.qint8,qscheme=t.per_tensor_symmetric) MinMaxObserver(quant_min=0,quant_max=127) MovingAverageMinMaxObserver()
MinMaxObserver(dtype=t.qint8,reduce_range=True)
PerChannelMinMaxObserver() PerChannelMinMaxObserver(1,qscheme=t.per_channel_symmetric,dtype=t.qint8) MovingAveragePerChannelMinMaxObserver()
PerChannelMinMaxObserver(qscheme=t.per_channel_affine_float_qparams)
HistogramObserver() HistogramObserver(reduce_range=True) HistogramObserver(bins=256,dtype=t.qint8) HistogramObserver(qscheme=t.per_tensor_symmetric)
""".split()  # fmt: skip


@pytest.mark.parametrize("text", OBSERVERS)
def test_observers(text):
    results = []
    for library in (weft, torch):
        observer = eval(f"ao.{text}", {"ao": library.ao.quantization, "t": library})
        noted = []
        for batch in ROWS:
            observer(library.from_numpy(batch))
            noted.append([str(observer.min_val), *(each.tolist() for each in observer.calculate_qparams())])
        copied = copy.deepcopy(observer)
        copied.load_state_dict(observer.state_dict())
        results.append((noted, sorted(observer.state_dict()), observer.extra_repr()))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "text",
    [
        "FakeQuantize()",
        "default_fake_quant()",
        "default_per_channel_weight_fake_quant()",
        "default_weight_fake_quant()",
    ],
)
def test_fake_quantization(text):
    results = []
    for library in (weft, torch):
        fake = eval(f"ao.{text}", {"ao": library.ao.quantization})
        x = library.from_numpy(ROWS[0].copy()).requires_grad_()
        found = fake(x)
        found.sum().backward()
        fake.disable_observer()
        again = fake(library.from_numpy(ROWS[1] * 4))
        results.append(
            [found.tolist(), x.grad.tolist(), again.tolist(), sorted(fake.state_dict()), repr(fake)]
        )
    assert results[0] == results[1]


def test_the_old_names():
    assert weft.quantization.QConfig is weft.ao.quantization.QConfig
    assert weft.nn.quantized.Linear is weft.ao.nn.quantized.Linear
    assert weft.quantization.quantize_dynamic is weft.ao.quantization.quantize_dynamic


def layers(library, name):
    nn, ao = library.nn, library.ao.quantization
    return {
        "batch_norm": lambda: nn.Sequential(ao.QuantStub(), nn.BatchNorm2d(3), ao.DeQuantStub()),
        "conv": lambda: nn.Sequential(ao.QuantStub(), nn.Conv2d(3, 4, 3, 2, 1, padding_mode="reflect"), nn.ReLU6(), ao.DeQuantStub()),
        "conv1d": lambda: nn.Sequential(ao.QuantStub(), nn.Flatten(2), nn.Conv1d(3, 2, 4, 2), nn.ReLU(), ao.DeQuantStub()),
        "wrapped": lambda: ao.QuantWrapper(nn.Sequential(nn.Conv2d(3, 4, 1, bias=False), nn.AvgPool2d(2))),
        "conv3d": lambda: nn.Sequential(ao.QuantStub(), nn.Unflatten(1, (1, 3)), nn.Conv3d(1, 2, 2), ao.DeQuantStub()),
    }[name]().eval()  # fmt: skip


@pytest.mark.parametrize("name", ["batch_norm", "conv", "conv1d", "wrapped", "conv3d"])
def test_other_layers(name):
    results = []
    for library in (weft, torch):
        ao = library.ao.quantization
        model = floats(library, layers(library, name))
        model.qconfig = ao.default_qconfig
        model = ao.prepare(model)
        for batch in IMAGES:
            model(library.from_numpy(batch))
        model = ao.convert(model)
        results.append((shown(model), [model(library.from_numpy(batch)).numpy() for batch in IMAGES]))
    assert results[0][0] == results[1][0]
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=2e-6)


def test_embedding():
    results = []
    for library in (weft, torch):
        ao = library.ao.quantization
        table = library.nn.Embedding(5, 8, _weight=library.from_numpy(ROWS[0].copy()))
        table.qconfig = ao.QConfig(
            ao.PlaceholderObserver,
            ao.PerChannelMinMaxObserver.with_args(
                dtype=library.quint8, qscheme=library.per_channel_affine_float_qparams, ch_axis=0
            ),
        )
        made = library.ao.nn.quantized.Embedding.from_float(table)
        results.append((made(library.tensor([[3, 0], [1, 1]])).tolist(), repr(made)))
    assert results[0] == results[1]
