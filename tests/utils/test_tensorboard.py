"""Logs for TensorBoard: the event files are PyTorch's, message by message but for the times."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from google.protobuf.message import Message
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from tensorboard.util import tensor_util
from torch.utils import tensorboard as torch_tensorboard
from torch.utils.tensorboard import _utils as torch_utils

import weft
from weft.utils import tensorboard
from weft.utils.tensorboard import SummaryWriter, _utils, summary

BOTH = [(torch, torch_tensorboard), (weft, tensorboard)]


def read(path: Path) -> list[Event]:
    events = [Event.FromString(raw) for raw in RawEventFileLoader(str(path)).Load()]
    for event in events:
        event.wall_time = 0
        event.ClearField("source_metadata")  # the version of the package tensorboard
        for value in event.summary.value:  # maps are serialized in any order
            data = value.metadata.plugin_data
            if data.plugin_name == "hparams":
                data.content = HParamsPluginData.FromString(data.content).SerializeToString(
                    deterministic=True
                )
    return events


def logged(folder: Path) -> dict[str, list[Event] | bytes]:
    """The events, or other bytes, of each file in `folder`."""
    found = {}
    # In the order in which they were made: their names end with a number.
    for path in sorted(
        folder.rglob("*"), key=lambda path: [int(each) for each in re.findall(r"\d+", path.name)]
    ):
        if "tfevents" in path.name:
            found.setdefault(str(path.parent.relative_to(folder)), []).extend(read(path))
        elif path.is_file():
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def assert_same_logs(folder: Path, log, **options) -> dict:
    """`log(writer, module)` writes the same with weft and with PyTorch."""
    logs = []
    for module, library in BOTH:
        target = folder / module.__name__
        with library.SummaryWriter(str(target), **options) as writer:
            log(writer, module)
        logs.append(logged(target))
    expected, found = logs
    assert found == expected
    return found


def test_scalars(tmp_path):
    def log(writer, torch):
        writer.add_scalar("loss", 0.1, 1)
        writer.add_scalar("loss", torch.tensor([[0.2]]), torch.tensor(2))
        writer.add_scalar("bfloat16", torch.tensor(0.3, dtype=torch.bfloat16, requires_grad=True))
        writer.add_scalar("new", np.float32(0.1), 3, new_style=True)
        writer.add_scalar("double", 0.1, 3, walltime=5.0, new_style=True, double_precision=True)
        writer.add_scalars("group/both", {"a": 1, "b": torch.tensor(2)}, 4)

    found = assert_same_logs(tmp_path, log, purge_step=7, filename_suffix=".mine")
    assert set(found) == {".", "group_both_a", "group_both_b"}


def test_histograms(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 20))

    def log(writer, torch):
        writer.add_histogram("default", torch.tensor(values), 0)
        writer.add_histogram("integers", torch.tensor([1, 2, 2, 5]), 0, bins="auto")
        writer.add_histogram("edges", values, 1, bins=[-9, -1, 0, 0.5, 1, 7, 8, 9], max_bins=3)
        writer.add_histogram("joined", values, 1, bins=10, max_bins=4)
        writer.add_histogram("divided", values, 1, bins=12, max_bins=4)
        writer.add_histogram("number", 3.0)
        writer.add_histogram_raw("raw", 0, 3, 5, 7.5, 13, [1, 2, 3], torch.tensor([1, 2, 2]).tolist(), 2)

    assert_same_logs(tmp_path, log)
    assert SummaryWriter(tmp_path).default_bins == torch_tensorboard.SummaryWriter(tmp_path).default_bins


@pytest.mark.parametrize("bins, values", [("auto", []), ([0, 1, 2], [7.0]), ([0, 1, 2], [np.nan])])
def test_empty_histograms(bins, values):
    for _, library in BOTH:
        with pytest.raises(ValueError):
            library.summary.histogram("x", np.array(values), bins)


def test_pictures(tmp_path):
    rng = np.random.default_rng(0)
    bright = rng.random((9, 3, 20, 30), dtype=np.float32)
    bytes_ = rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)

    def log(writer, torch):
        writer.add_image("chw", torch.tensor(bright[0] * 1.1 - 0.05), 0)
        writer.add_image("hwc", torch.tensor(bytes_), 0, dataformats="HWC")
        writer.add_image("wh", bright[0, 0], 0, dataformats="WH")
        writer.add_image("grey", torch.tensor(bright[0, :1]), 0)
        writer.add_images("many", torch.tensor(bright), 0)
        writer.add_images("many_grey", torch.tensor(bright[:3, :1]), 0)
        boxes = torch.tensor([[2, 3, 15, 12], [4.0, 1, 27, 18.5]])
        writer.add_image_with_boxes("boxes", torch.tensor(bytes_), boxes, 1, dataformats="HWC", rescale=2)
        writer.add_image_with_boxes("labels", torch.tensor(bright[0]), boxes, labels=["cat", "dog"])
        writer.add_image_with_boxes("label", bright[0], boxes[:1], labels="cat")
        writer.add_image_with_boxes("unlabelled", bright[0], boxes, labels="cat")

    assert_same_logs(tmp_path, log)


def test_figures(tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")

    def log(writer, torch):
        figures = []
        for _ in range(2):
            figure = plt.figure(figsize=(1, 1), dpi=20)
            plt.plot([1, 2])
            figures.append(figure)
        writer.add_figure("one", figures[0], 3, close=False)
        assert plt.fignum_exists(figures[0].number)
        writer.add_figure("both", figures)
        assert not plt.get_fignums()

    assert_same_logs(tmp_path, log)


@pytest.mark.parametrize("n", [*range(1, 10), 16, 17])
def test_films_lie_in_a_grid(n):
    films = np.random.default_rng(0).random((n, 2, 3, 4, 5))
    np.testing.assert_array_equal(_utils._prepare_video(films), torch_utils._prepare_video(films))


def test_film_without_moviepy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "moviepy", None)
    assert_same_logs(tmp_path, lambda writer, torch: writer.add_video("film", torch.ones(1, 2, 3, 4, 5), 1))


def test_sounds_and_texts(tmp_path):
    def log(writer, torch):
        writer.add_audio("sound", torch.linspace(-0.5, 0.5, 50)[None], 1, sample_rate=8000)
        writer.add_audio("loud", torch.tensor([0.5, 2, -3]), 1)
        writer.add_text("text", "**Schön**", 2)

    assert_same_logs(tmp_path, log)


def test_curves_and_charts(tmp_path):
    rng = np.random.default_rng(0)
    labels, predictions, counts = rng.integers(0, 2, 50), rng.random(50), rng.random((6, 5))

    def log(writer, torch):
        writer.add_pr_curve("curve", torch.tensor(labels), torch.tensor(predictions), 1, num_thresholds=20)
        writer.add_pr_curve("weighted", labels, predictions, 1, num_thresholds=500, weights=predictions)
        writer.add_pr_curve_raw("lists", *counts.tolist(), global_step=2, num_thresholds=5)
        writer.add_pr_curve_raw("raw", *map(torch.tensor, counts), global_step=2, num_thresholds=5)
        writer.add_custom_scalars_multilinechart(["a", "b"])
        writer.add_custom_scalars_marginchart(["a", "b", "c"], category="margins", title="chart")
        writer.add_custom_scalars(
            {"x": {"1": ["Multiline", ["a"]], "2": ["Margin", ["a", "b", "c"]]}, "y": {}}
        )

    assert_same_logs(tmp_path, log)


def test_meshes(tmp_path):
    def log(writer, torch):
        vertices = torch.arange(12.0).reshape(1, 4, 3)
        faces = torch.tensor([[[0, 1, 2], [1, 2, 3]]], dtype=torch.int32)
        colors = torch.full((1, 4, 3), 200, dtype=torch.uint8)
        writer.add_mesh("points", vertices)
        writer.add_mesh("all", vertices, colors, faces, {"lights": [1], "camera": {"fov": 75}}, 3)

    assert_same_logs(tmp_path, log)


DTYPES = "float32 float64 int8 int16 int32 int64 bool complex64 complex128".split()


def test_tensors(tmp_path):
    def log(writer, torch):
        for dtype in DTYPES:
            writer.add_tensor(dtype, torch.tensor([[0, 1, 5]]).to(getattr(torch, dtype)))
        writer.add_tensor("scalar", torch.tensor(2.5))

    assert_same_logs(tmp_path, log)


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "uint8"])
def test_tensors_can_be_read(dtype):
    """PyTorch's float16 and uint8 cannot."""
    tensor = weft.tensor([0, 1, 5, 100]).to(getattr(weft, dtype))
    proto = summary.tensor_proto("x", tensor).value[0].tensor
    np.testing.assert_array_equal(tensor_util.make_ndarray(proto), tensor.numpy())


def test_hyperparameters(tmp_path):
    def log(writer, torch):
        parameters = {
            "lr": 0.1,
            "n": 3,
            "flag": True,
            "kind": "sgd",
            "nothing": None,
            "t": torch.tensor([2.0]),
        }
        domains = {"n": [3, 4], "flag": [True, False], "kind": ["sgd", "adam"], "t": [torch.tensor([1.0])]}
        writer.add_hparams(parameters, {"loss": 0.5}, domains, run_name="run", global_step=4)

    assert set(assert_same_logs(tmp_path, log)) == {".", "run"}


@pytest.mark.parametrize(
    "arguments, error",
    [
        (([], {}), TypeError),
        (({}, []), TypeError),
        (({"a": 1}, {}, [1]), TypeError),
        (({"a": 1}, {}, {"a": [1, "x"]}), TypeError),
        (({"a": 1}, {}, {"b": [1]}), TypeError),
        (({"a": [1]}, {}), ValueError),
    ],
)
def test_wrong_hyperparameters(arguments, error):
    for _, library in BOTH:
        with pytest.raises(error):
            library.summary.hparams(*arguments)


def test_embeddings(tmp_path):
    rng = np.random.default_rng(0)
    points, pictures = rng.normal(size=(5, 3)).astype(np.float32), rng.random((5, 3, 4, 6), dtype=np.float32)

    def log(writer, torch):
        writer.add_embedding(torch.tensor(points))
        writer.add_embedding(
            points, metadata=[*"abcd", 5], label_img=torch.tensor(pictures), global_step=3, tag="a/b%c\\d"
        )
        rows = [[i, f"label {i}"] for i in range(5)]
        writer.add_embedding(points, rows, metadata_header=["number", "name"], global_step=4)

    assert "projector_config.pbtxt" in assert_same_logs(tmp_path, log)


@pytest.mark.parametrize(
    "arguments",
    [
        {"mat": np.ones((3, 4, 5))},
        {"mat": np.ones((3, 4)), "metadata": [1, 2]},
        {"mat": np.ones((3, 4)), "label_img": np.ones((2, 3, 4, 4))},
        {"mat": np.ones((3, 4)), "metadata": [[1, 2]] * 3, "metadata_header": ["a"]},
    ],
)
def test_wrong_embeddings(arguments, tmp_path):
    for _, library in BOTH:
        with library.SummaryWriter(tmp_path) as writer, pytest.raises(AssertionError):
            writer.add_embedding(**arguments)


@pytest.mark.parametrize(
    "function, arguments, error",
    [
        ("scalar", ("x", [1]), NotImplementedError),
        ("scalar", ("x", None), NotImplementedError),
        ("scalar", ("x", np.ones(2)), AssertionError),
        ("scalar", ("x", "y"), ValueError),
        ("image", ("x", np.ones((1, 2, 3, 4))), AssertionError),
        ("image", ("x", np.ones((2, 3)), 1, "CHW"), AssertionError),
        ("image", ("x", np.ones((2, 3)), 1, "HH"), AssertionError),
        ("image", ("x", np.ones((2, 3, 4)), 1, "HXC"), ValueError),
        ("audio", ("x", np.ones((2, 3))), AssertionError),
        ("custom_scalars", ({"a": {"b": ["Margin", ["c"]]}},), AssertionError),
    ],
)
def test_errors(function, arguments, error):
    for _, library in BOTH:
        with pytest.raises(error):
            getattr(library.summary, function)(*arguments)


# ---- Graphs -------------------------------------------------------------------------------------------------------


class Net(weft.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = weft.nn.Sequential(weft.nn.Linear(4, 5), weft.nn.Dropout(0.5))
        self.scale = weft.nn.Parameter(weft.ones(5))

    def forward(self, x):
        return self.body(x) * self.scale


def graph_of(folder: Path) -> GraphDef:
    events = logged(folder)["."]
    assert [event.WhichOneof("what") for event in events][-2:] == ["graph_def", "tagged_run_metadata"]
    return GraphDef.FromString(events[-2].graph_def)


def test_graph_of_a_module(tmp_path):
    model = Net()
    model.body.eval()
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, weft.ones(3, 4))
    assert model.training and not model.body.training
    nodes = {node.name: node for node in graph_of(tmp_path).node}
    linear = nodes["Net/Sequential[body]/Linear[0]/linear"]
    assert linear.op == "aten::linear"
    assert list(linear.input) == [
        "input/x",
        "Net/Sequential[body]/Linear[0]/weight",
        "Net/Sequential[body]/Linear[0]/bias",
    ]
    assert [dim.size for dim in linear.attr["_output_shapes"].list.shape[0].dim] == [3, 5]
    assert nodes["Net/scale"].op == "prim::GetAttr"
    assert nodes["output/output.1"].input == ["Net/mul"]
    assert all(source in nodes for node in nodes.values() for source in node.input)
    with SummaryWriter(tmp_path) as writer, pytest.raises(RuntimeError, match="input_to_model"):
        writer.add_graph(model)


def test_graph_of_repeated_modules_and_several_results(tmp_path):
    class Twice(weft.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = weft.nn.Linear(2, 2)

        def forward(self, x, y):
            return {"sum": self.layer(self.layer(x)) + weft.ones(2), "given": [y]}

    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(Twice(), [weft.ones(3, 2), weft.ones(1)], use_strict_trace=False)
    nodes = {node.name: node for node in graph_of(tmp_path).node}
    assert list(nodes["Twice/Linear[layer]/linear_1"].input)[0] == "Twice/Linear[layer]/linear"
    assert nodes["output/output.2"].input == ["input/y"]


def test_graph_of_an_onnx_file(tmp_path):
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("LeakyRelu", ["x"], ["y"], alpha=0.5), helper.make_node("Add", ["x", "y"], ["z"])],
        "graph",
        [helper.make_tensor_value_info("x", kind, [2, "n"])],
        [helper.make_tensor_value_info("z", kind, [2, 3])],
    )
    onnx.save(helper.make_model(graph), tmp_path / "model.onnx")
    assert_same_logs(tmp_path, lambda writer, torch: writer.add_onnx_graph(str(tmp_path / "model.onnx")))


# ---- Writers ------------------------------------------------------------------------------------------------------


def test_a_closed_writer_opens_a_new_file(tmp_path):
    writer = SummaryWriter(tmp_path, comment="ignored")
    writer.add_scalar("a", 1)
    writer.flush()
    assert len(read(next(tmp_path.glob("*tfevents*")))) == 2
    writer.close()
    writer.close()
    writer.flush()
    writer.add_scalar("b", 2)
    writer.close()
    assert len(list(tmp_path.glob("*tfevents*"))) == 2
    assert [value.tag for event in logged(tmp_path)["."] for value in event.summary.value] == ["a", "b"]
    assert writer.get_logdir() == writer.log_dir == tmp_path


def test_reopened_file_writer(tmp_path):
    writer = tensorboard.FileWriter(tmp_path)
    for _ in range(2):
        writer.add_summary(summary.scalar("a", 1))
        writer.close()
        writer.reopen()
        writer.reopen()
    writer.close()
    assert len(list(tmp_path.glob("*tfevents*"))) == 3
    assert sum(len(event.summary.value) for event in logged(tmp_path)["."]) == 2


def test_default_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SummaryWriter(comment="-mine") as writer:
        assert Path(writer.log_dir).parent == Path("runs") and writer.log_dir.endswith("-mine")
    assert Path(writer.log_dir).is_dir()


def test_messages_are_protobuf():
    assert isinstance(summary.scalar("x", 1), Message)
    assert (summary.half_to_int(1.5), summary.int_to_half(0x3E00)) == (0x3E00, 1.5)


def test_without_the_package(monkeypatch):
    for name in ("torch.utils.tensorboard", "weft.utils.tensorboard"):
        monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "tensorboard", None)
        with pytest.raises(ModuleNotFoundError, match="tensorboard") as caught:
            importlib.import_module(name)
        assert caught.value.name == "tensorboard"
    assert "pip install tensorboard" in str(caught.value)
