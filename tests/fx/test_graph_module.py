"""Graph modules: copies, pickles, folders, submodules, code that changes, and errors that show it."""

import copy
import importlib.util
import io
import math
import pickle
import sys
import typing

import pytest
import torch

import weft


def model(library):
    nn = library.nn

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(library.ones(2))

        def forward(self, x):
            return x * self.weight

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.scaled = Scaled()
            self.layers = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
            self.register_buffer("offset", library.ones(2))
            self.register_buffer("hidden", library.ones(2), persistent=False)
            self.unused = nn.Linear(1, 1)
            self.table = library.arange(2)

        def forward(self, x, k: typing.Optional[float] = 2.0):  # noqa: UP045
            y = self.layers(self.scaled(self.linear(x)))
            return y * self.offset + self.hidden * k + math.floor(2.5) + self.table, library.relu(x)

    library.manual_seed(0)
    return library.fx.symbolic_trace(Model())


def described(module):
    names = [name for name, _ in module.named_modules()]
    return (
        type(module).__name__,
        module.code,
        str(module.graph),
        list(module.state_dict()),
        names,
        module.training,
    )


def copies(module):
    stream = io.BytesIO()
    library = torch if isinstance(module, torch.nn.Module) else weft
    library.save(module, stream)
    stream.seek(0)
    yield copy.deepcopy(module)
    yield copy.copy(module)
    yield pickle.loads(pickle.dumps(module))
    yield library.load(stream, weights_only=False)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_copies_and_pickles():
    mine, theirs = model(weft).eval(), model(torch).eval()
    assert described(mine) == described(theirs)
    x = weft.ones(1, 2)
    for own, other in zip(copies(mine), copies(theirs), strict=True):
        assert described(own) == described(other)
        assert own.graph.owning_module is own or other.graph.owning_module is not other
        assert weft.equal(own(x)[0], mine(x)[0])


def test_a_deep_copy_keeps_attributes_and_shares_nothing():
    module = model(weft)
    module.note, module.meta["key"] = [1], 2
    same = copy.deepcopy(module)
    assert same.note == [1] and same.note is not module.note
    assert same.meta == {"key": 2}
    assert same.linear.weight is not module.linear.weight


def test_a_subclass():
    class Mine(weft.fx.GraphModule):
        def __init__(self, root, graph):
            super().__init__(root, graph)
            self.own = 7

    traced = model(weft)
    mine = Mine(traced, traced.graph)
    assert mine.own == 7
    assert isinstance(mine, Mine)
    assert type(mine).__mro__[1] is Mine
    assert weft.equal(mine(weft.ones(1, 2))[0], traced(weft.ones(1, 2))[0])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_folder(tmp_path):
    module = model(weft)
    module.to_folder(tmp_path / "package", "Written")
    spec = importlib.util.spec_from_file_location("written_by_fx", tmp_path / "package" / "module.py")
    written = importlib.util.module_from_spec(spec)
    sys.modules["written_by_fx"] = written
    try:
        spec.loader.exec_module(written)
    finally:
        del sys.modules["written_by_fx"]
    x = weft.randn(3, 2)
    assert weft.equal(written.Written()(x)[0], module(x)[0])


def test_submodules():
    def changed(library):
        module = model(library)
        answers = [
            module.add_submodule("a.b.c", library.nn.ReLU()),
            module.add_submodule("linear.x", library.nn.ReLU()),
            module.delete_submodule("a.b.c"),
            module.delete_submodule("missing"),
            module.delete_submodule("linear.weight"),
        ]
        module.delete_all_unused_submodules()
        return answers, [name for name, _ in module.named_modules()]

    assert changed(weft) == changed(torch)


def test_code_may_be_changed_before_it_is_compiled():
    def changed(library):
        traced = library.fx.symbolic_trace(lambda x: x + 1)
        with traced.graph.on_generate_code(lambda current: lambda body: ["y = 1\n", *body]):
            traced.recompile()
            inside = traced.code
        traced.recompile()
        return inside, traced.code

    assert changed(weft) == changed(torch)


def test_texts(capsys):
    mine, theirs = model(weft), model(torch)
    assert str(mine) == str(theirs)
    assert mine.print_readable() == theirs.print_readable()
    mine_colored, theirs_colored = (
        each.print_readable(print_output=False, colored=True) for each in (mine, theirs)
    )
    assert mine_colored == theirs_colored
    assert capsys.readouterr().out.startswith("class Model(torch.nn.Module):")


def test_shapes_are_annotated():
    def annotated(library, shape_prop):
        module = model(library)
        shape_prop.ShapeProp(module).propagate(library.ones(3, 2))
        metas = [str(node.meta.get("tensor_meta")) for node in module.graph.nodes]
        return metas, module.print_readable(print_output=False, include_stride=True, include_device=True)

    import torch.fx.passes.shape_prop

    mine = annotated(weft, weft.fx.passes.shape_prop)
    assert mine == annotated(torch, torch.fx.passes.shape_prop)


def test_an_error_shows_the_generated_line():
    module = weft.fx.symbolic_trace(lambda x: weft.relu(x) @ x)
    with pytest.raises(RuntimeError) as caught:
        module(weft.ones(3, 2))
    notes = "".join(caught.value.__notes__)
    assert "Call using an FX-traced Module, line" in notes
    assert "matmul = relu @ x" in notes and "<--- HERE" in notes


def test_annotations_are_objects():
    assert typing.get_type_hints(model(weft).forward)["k"] == typing.Optional[float]  # noqa: UP045


def test_lazy_graph_modules_compile_when_they_are_called():
    from weft.fx._lazy_graph_module import _LazyGraphModule, _make_graph_module, _use_lazy_graph_module

    traced = weft.fx.symbolic_trace(lambda x: x + 1)
    with _use_lazy_graph_module(True):
        lazy = _make_graph_module(weft.nn.Module(), traced.graph)
    assert isinstance(lazy, _LazyGraphModule)
    assert lazy._needs_recompile()
    assert lazy(1) == 2
    assert not lazy._needs_recompile()
