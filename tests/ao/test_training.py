"""Quantization-aware training: the steps of training, the files and the quantized models are PyTorch's."""

import io

import numpy as np
import pytest
import torch

import weft

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
RANDOM = np.random.default_rng(5)
IMAGES = RANDOM.standard_normal((6, 4, 3, 9, 9)).astype(np.float32)
ROWS = (RANDOM.standard_normal((4, 5, 8)) * 2).astype(np.float32)
LIBRARIES = weft, torch


def network(library):
    """The network of PyTorch's tutorial in small: convolutions with batch normalization, a sum, and linear layers."""
    nn, ao = library.nn, library.ao

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = ao.quantization.QuantStub(), ao.quantization.DeQuantStub()
            self.conv1, self.bn1, self.relu1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()
            self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, groups=2, bias=False), nn.BatchNorm2d(8)
            self.skip, self.pool = ao.nn.quantized.FloatFunctional(), nn.MaxPool2d(3)
            self.fc1, self.relu2, self.fc2 = nn.Linear(72, 10), nn.ReLU(), nn.Linear(10, 4)

        def forward(self, x):
            x = self.relu1(self.bn1(self.conv1(self.quant(x))))
            x = self.skip.add_relu(x, self.bn2(self.conv2(x)))
            x = self.pool(x).reshape(x.shape[0], -1)
            return self.dequant(self.fc2(self.relu2(self.fc1(x))))

    return Net()


FUSED = [["conv1", "bn1", "relu1"], ["conv2", "bn2"], ["fc1", "relu2"]]


def fill(library, model):
    """Give the parameters and statistics of a model numbers that depend on their names."""
    random = np.random.default_rng(2)
    with library.no_grad():
        for name, value in model.state_dict().items():
            made = (random.standard_normal(tuple(value.shape)) * 0.3).astype(np.float32)
            if "num_batches" not in name:
                value.copy_(library.from_numpy(np.abs(made) + 0.5 if "var" in name else np.array(made)))
    return model


def prepared(library, qconfig):
    ao = library.ao.quantization
    model = ao.fuse_modules_qat(fill(library, network(library)).train(), FUSED)
    model.qconfig = qconfig(ao)
    return ao.prepare_qat(model)


def steps(models, batches):
    """Train two models on the same batches, and compare after each step. The second gives the first its state before.

    The sums of products differ in the last bits, so an element now and then is rounded to the neighbouring integer.
    """
    for batch in batches:
        copy_state(models[1], models[0])
        losses, gradients = [], []
        for library, model in zip(LIBRARIES, models):
            model.zero_grad()
            loss = (model(library.from_numpy(batch)) ** 2).mean()
            loss.backward()
            losses.append(loss.item())
            gradients.append({name: each.grad for name, each in model.named_parameters()})
            library.optim.SGD(model.parameters(), lr=0.05).step()
        np.testing.assert_allclose(*losses, rtol=1e-4)
        close(*gradients, 1e-2)
        close(*(model.state_dict() for model in models), 1e-3)


def copy_state(source, target):
    """Save the state of PyTorch's model, and load it into weft's."""
    file = io.BytesIO()
    torch.save(source.state_dict(), file)
    file.seek(0)
    target.load_state_dict(weft.load(file))


def close(found, wanted, tolerance):
    """Compare the norms of the differences, because one element with another integer says little."""
    assert list(found) == list(wanted)
    for name in wanted:
        own, other = found[name].detach().numpy(), wanted[name].detach().numpy()
        assert own.shape == other.shape and own.dtype == other.dtype, name
        assert np.linalg.norm(own - other) <= tolerance * np.linalg.norm(other) + 1e-5, name


def integers(model):
    """All integers, scales and zero points of a quantized model."""
    found = {}
    for name, value in model.state_dict().items():
        for i, each in enumerate(value if isinstance(value, tuple) else (value,)):
            if getattr(each, "is_quantized", False):
                found[f"{name}.{i}"] = each.int_repr().tolist()
            elif name.endswith("zero_point"):
                found[name] = int(each)
    return found


QCONFIGS = {
    "fbgemm": lambda ao: ao.get_default_qat_qconfig("fbgemm"),
    "qnnpack": lambda ao: ao.get_default_qat_qconfig("qnnpack"),
    "in two steps": lambda ao: ao.get_default_qat_qconfig("x86", version=0),
    "default": lambda ao: ao.default_qat_qconfig,
}


@pytest.mark.parametrize("name", QCONFIGS)
def test_the_tutorial(name):
    models = [prepared(library, QCONFIGS[name]) for library in LIBRARIES]
    steps(models, IMAGES[:4])
    for library, model in zip(LIBRARIES, models):
        model.apply(library.ao.quantization.disable_observer)
        model.apply(library.ao.nn.intrinsic.qat.freeze_bn_stats)
    steps(models, IMAGES[4:])
    copy_state(models[1], models[0])
    own, other = (library.ao.quantization.convert(model.eval()) for library, model in zip(LIBRARIES, models))
    assert integers(own) == integers(other)
    assert type(own.conv1).__name__ == "ConvReLU2d" and not hasattr(own, "qconfig")
    for batch in IMAGES:
        found, wanted = own(weft.from_numpy(batch)).numpy(), other(torch.from_numpy(batch)).numpy()
        np.testing.assert_allclose(found, wanted, rtol=2e-6)
