"""`ExportedProgram.run_decompositions` beside PyTorch's."""

import operator
import re

import pytest
import torch

import weft

LIBRARIES = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])


def module_of(lib, forward):
    class Model(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = lib.nn.Linear(3, 2)
            self.register_buffer("scale", lib.full((2,), 2.0))

        def forward(self, x):
            return forward(lib, self, x)

    return Model()


PROGRAMS = {
    "layers": lambda lib, self, x: {
        "a": lib.nn.functional.silu(self.linear(x)) * self.scale,
        "b": (x + 1, 3),
    },
    "in place": lambda lib, self, x: self.linear(x).mul_(2).add_(x[0, 0]).relu_() + 1,
    "normalization": lambda lib, self, x: lib.nn.functional.softmax(
        lib.nn.functional.layer_norm(x, (3,)), -1
    ),
    "losses": lambda lib, self, x: lib.nn.functional.huber_loss(self.linear(x).tanh(), x[:, :2], delta=0.5),
    "views": lambda lib, self, x: lib.stack([x.t()[0], x[:, 1]]).roll(1, 0),
}


def program(lib, name):
    model = module_of(lib, PROGRAMS[name])
    return model, lib.export.export(model, (lib.ones(2, 3),))


def operators(graph):
    return [str(node.target) for node in graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_decomposed_programs_compute_the_same(name):
    model, exported = program(weft, name)
    decomposed = exported.run_decompositions()
    decomposed.graph.lint()
    calls = [node.target for node in decomposed.graph.nodes if node.op == "call_function"]
    aten = [each for each in calls if each is not operator.getitem]
    assert all(str(each).startswith("aten.") and not each._schema.is_mutable for each in aten)
    x = weft.randn(2, 3)
    weft.testing.assert_close(decomposed.module()(x), model(x))
    assert [str(each) for each in decomposed.graph_signature.input_specs] == [
        str(each) for each in exported.graph_signature.input_specs
    ]


@pytest.mark.parametrize("name", ["layers", "in place"])
def test_the_operators_are_pytorchs(name):
    found = [operators(program(lib, name)[1].run_decompositions().graph) for lib in (weft, torch)]
    assert found[0] == found[1]


@LIBRARIES
def test_tables_may_be_chosen(lib):
    exported = program(lib, "layers")[1]
    assert "aten.silu.default" in operators(exported.run_decompositions({}).graph)
    table = lib.export.default_decompositions()
    del table[lib.ops.aten.silu.default]
    kept = exported.run_decompositions(table)
    assert "aten.silu.default" in operators(kept.graph) and "aten.t.default" not in operators(kept.graph)


REFUSED = {
    "a buffer": lambda lib, self, x: self.scale.add_(1) * x.sum(),
    "an input": lambda lib, self, x: x.add_(1),
    "a view": lambda lib, self, x: ((y := x * 2)[0].add_(1), y)[1] + 1,
}


@pytest.mark.parametrize("name", REFUSED)
def test_writes_that_others_see_are_refused(name):
    exported = weft.export.export(module_of(weft, REFUSED[name]), (weft.ones(2, 3),))
    with pytest.raises(NotImplementedError, match="run_decompositions"):
        exported.run_decompositions()


def test_dynamic_sizes_are_refused():
    model = module_of(weft, PROGRAMS["layers"])
    batch = weft.export.Dim("batch", min=2, max=10)
    exported = weft.export.export(model, (weft.ones(4, 3),), dynamic_shapes={"x": {0: batch}})
    with pytest.raises(NotImplementedError, match=re.escape("dynamic sizes")):
        exported.run_decompositions()
