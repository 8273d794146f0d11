"""Archives that PyTorch's `torch.export.save` wrote."""

import io
import zipfile

import numpy as np
import pytest
import torch
from archives import changed

import weft


class Convolutions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4)
        self.register_buffer("shift", torch.arange(4.0), persistent=False)

    def forward(self, x, *, scale):
        y = (
            torch.nn.functional.max_pool2d(self.norm(self.conv(x)).relu(), 2).mean((2, 3)) * scale
            + self.shift
        )
        a, b = y.chunk(2, 1)
        return {"sum": a + b, "parts": (a.double(), b.topk(1)[0])}


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(10, 8)
        self.layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, tokens):
        return self.layer(self.embedding(tokens)).softmax(-1) + torch.tensor([0.5])


CASES = {
    "convolutions": (Convolutions, (torch.rand(2, 3, 4, 4),), {"scale": torch.tensor(2.0)}),
    "attention": (Attention, (torch.arange(10).reshape(2, 5),), {}),
    "recurrence": (lambda: torch.nn.LSTM(4, 3), (torch.rand(2, 5, 4),), {}),
}


def archive(program):
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    return buffer.getvalue()


def to_weft(value):
    return torch.utils._pytree.tree_map(lambda each: weft.from_numpy(each.numpy()), value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_programs_of_pytorch(name, decomposed):
    make, args, kwargs = CASES[name]
    torch.manual_seed(0)
    model = make().eval()
    program = torch.export.export(model, args, kwargs)
    loaded = weft.export.load(io.BytesIO(archive(program.run_decompositions() if decomposed else program)))
    assert set(loaded.state_dict) == set(model.state_dict())
    assert [each for each, _ in loaded.named_parameters()] == [each for each, _ in model.named_parameters()]
    found, spec = weft.utils._pytree.tree_flatten(loaded.module()(*to_weft(args), **to_weft(kwargs)))
    expected, their_spec = torch.utils._pytree.tree_flatten(model(*args, **kwargs))
    assert str(spec) == str(their_spec)
    for own, their in zip(found, expected, strict=True):
        assert str(own.dtype).replace("weft", "torch") == str(their.dtype)
        np.testing.assert_allclose(own.detach().numpy(), their.detach().numpy(), rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def linear():
    return archive(torch.export.export(torch.nn.Linear(4, 3), (torch.ones(2, 4),)))


def test_inputs_of_other_sizes_are_refused(linear):
    with pytest.raises(AssertionError, match="4"):
        weft.export.load(io.BytesIO(linear)).module()(weft.ones(2, 5))


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("torch.ops.aten.no_such_operator.default", NotImplementedError, "no operator aten.no_such_operator"),
        ("torch.ops.aten.from_file.default", RuntimeError, "no function of torch"),
        ("torch.ops.higher_order.cond", RuntimeError, "no function of torch"),
        ("os.system", NotImplementedError, "calls of os.system"),
    ],
)
def test_calls_that_are_refused(linear, target, error, message):
    def change(model):
        model["graph_module"]["graph"]["nodes"][0]["target"] = target

    with pytest.raises(error, match=message):
        weft.export.load(changed(io.BytesIO(linear), change))


@pytest.mark.parametrize("name", ["nodes", "inputs", "outputs", "tensor_values"])
def test_damaged_graphs_are_refused(linear, name):
    with pytest.raises(RuntimeError, match="the archive is damaged"):
        weft.export.load(changed(io.BytesIO(linear), lambda model: model["graph_module"]["graph"].pop(name)))


def test_tensors_beyond_their_data_are_refused(linear):
    source, buffer = zipfile.ZipFile(io.BytesIO(linear)), io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            target.writestr(name, content[:8] if name.endswith("weight_0") else content)
    buffer.seek(0)
    with pytest.raises(RuntimeError, match="storage"):
        weft.export.load(buffer)


def test_versions_that_are_refused(linear):
    with pytest.raises(RuntimeError, match="weft reads version 8"):
        weft.export.load(
            changed(io.BytesIO(linear), lambda model: model.update(schema_version={"major": 7, "minor": 0}))
        )


def test_dynamic_sizes_are_refused():
    rows = torch.export.Dim("rows", min=2)
    program = torch.export.export(
        torch.nn.Linear(4, 3), (torch.ones(3, 4),), dynamic_shapes={"input": {0: rows}}
    )
    with pytest.raises(NotImplementedError, match="dynamic sizes"):
        weft.export.load(io.BytesIO(archive(program)))
