"""Programs in files: everything comes back, and nothing of a file is executed."""

import io

import pytest
from archives import changed

import weft
from weft import nn
from weft.export import Dim, export, load, save
from weft.export.passes import move_to_device_pass
from weft.export.pt2_archive import PT2ArchiveReader, PT2ArchiveWriter, is_pt2_package


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 4, 3, padding="same")
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("scale", weft.ones(4, 1), persistent=False)
        self.lstm = nn.LSTM(4, 5, batch_first=True)

    def forward(self, x, options):
        y = self.norm(self.conv(x)) * self.scale + weft.arange(4.0)[:, None]
        y, _ = self.lstm(y.transpose(1, 2).to(weft.float32))
        return {"y": y[:, -1, ...], "size": x.shape[0] * 2, "inf": float("inf"), "k": options["k"]}


ARGS = weft.randn(2, 3, 6), {"k": weft.tensor(2.0), "n": 3}


def saved():
    program = export(Model(), ARGS, dynamic_shapes=({0: Dim("batch", max=8)}, {"k": None, "n": None}))
    buffer = io.BytesIO()
    save(program, buffer, extra_files={"note": "hello"})
    buffer.seek(0)
    return program, buffer


def test_a_program_comes_back():
    program, buffer = saved()
    extra = {"note": ""}
    again = load(buffer, extra_files=extra)
    assert str(again) == str(program) and extra == {"note": "hello"}
    x = weft.randn(5, 3, 6), ARGS[1]
    for module in (again.module(), weft.export.unflatten(again)):
        got, wanted = module(*x), program.module()(*x)
        assert weft.equal(got["y"], wanted["y"]) and (got["size"], got["inf"]) == (10, float("inf"))
    with pytest.raises(AssertionError, match="between 0 and 8"):
        again.module()(weft.randn(9, 3, 6), ARGS[1])
    assert dict(again.named_parameters())["conv.weight"].requires_grad


@pytest.mark.parametrize(
    "name", ["os.system", "torch.from_file", "builtins.eval", "operator.methodcaller", "torch.hub.load"]
)
def test_functions_that_are_not_torchs_are_refused(name):
    def change(graph):
        next(node for node in graph["graph"] if node["op"] == "call_function")["target"] = name

    with pytest.raises(RuntimeError, match="is no function of torch"):
        load(changed(saved()[1], change))


@pytest.mark.parametrize("name", ["__class__", "__reduce__", "format", "__init_subclass__"])
def test_methods_that_are_not_of_tensors_are_refused(name):
    def change(graph):
        next(node for node in graph["graph"] if node["op"] == "call_method")["target"] = name

    with pytest.raises(RuntimeError, match="is no method of tensors"):
        load(changed(saved()[1], change))


def test_files(tmp_path):
    path = tmp_path / "model.pt2"
    save(export(nn.ReLU(), (weft.ones(2),)), path)
    assert [each.name for each in tmp_path.iterdir()] == ["model.pt2"] and is_pt2_package(str(path))
    assert load(path).module()(weft.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]
    with pytest.raises(TypeError, match="got 'int' instead"):
        save(3, path)
    path.write_bytes(b"nothing")
    assert not is_pt2_package(str(path))
    with pytest.raises(RuntimeError, match="no archive"):
        load(path)


def test_archives(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.joinpath("a").write_text("1")
    buffer = io.BytesIO()
    with PT2ArchiveWriter(buffer) as writer:
        writer.write_bytes("x/b", b"2")
        writer.write_folder("x", str(folder))
        assert writer.has_record("x/a") and writer.count_prefix("x/") == 2
    with PT2ArchiveReader(buffer) as reader:
        assert reader.read_string("x/a") == "1" and reader.archive_version() == 0
        assert reader.get_file_names() == ["archive_format", "archive_version", "x/b", "x/a"]


def test_moving_to_a_device():
    program = move_to_device_pass(export(nn.Linear(2, 2), (weft.ones(2),)), "meta")
    assert {each.device.type for each in program.parameters()} == {"meta"}
