"""Both libraries trace the same models: the code, the nodes and the results are equal."""

import inspect

import fx_models
import numpy as np
import pytest
import torch

import weft
from weft.core.registry import FUNCTIONS as FUNCTIONS_OF_WEFT
from weft.library.qualified_name import is_written_in_python


def traced(library, name):
    library.manual_seed(0)
    model, inputs = fx_models.models(library)[name]
    return library.fx.symbolic_trace(model), model, inputs


def described(module):
    """The nodes, with names in place of objects."""
    return [
        (node.op, node.name, getattr(node.target, "__name__", node.target), str(node.args), str(node.kwargs))
        for node in module.graph.nodes
    ]


def plain(value):
    """The numbers in a result."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (torch.Tensor, weft.Tensor)):
        return np.asarray(value.detach())
    return value if isinstance(value, (int, float)) else str(value)


def check_equal(first, second):
    if isinstance(first, np.ndarray):
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-5)
    elif isinstance(first, list):
        assert len(first) == len(second)
        for one, other in zip(first, second):
            check_equal(one, other)
    elif isinstance(first, dict):
        assert list(first) == list(second)
        check_equal(list(first.values()), list(second.values()))
    else:
        assert first == second


@pytest.mark.parametrize("name", fx_models.NAMES)
def test_code_graph_and_nodes_are_pytorchs(name):
    mine, theirs = traced(weft, name)[0], traced(torch, name)[0]
    assert mine.code == theirs.code
    assert str(mine.graph) == str(theirs.graph)
    assert described(mine) == described(theirs)
    assert mine.print_readable(print_output=False) == theirs.print_readable(print_output=False)
    mine.graph.lint()


@pytest.mark.parametrize("name", fx_models.NAMES)
def test_results_are_those_of_the_model(name):
    mine, model, inputs = traced(weft, name)
    theirs, _, their_inputs = traced(torch, name)
    result = plain(mine(*inputs))
    check_equal(result, plain(theirs(*their_inputs)))
    check_equal(result, plain(model(*inputs)))
    check_equal(result, plain(weft.fx.Interpreter(mine).run(*inputs)))


@pytest.mark.parametrize("module", [weft, torch])
def test_tracers_of_libraries_may_override_create_proxy(module):
    class Named(module.fx.Tracer):
        def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None):
            return super().create_proxy(kind, target, args, kwargs, name, type_expr)

    class Scaled(module.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = module.nn.Parameter(module.ones(2))

        def forward(self, x):
            return x * self.scale

    graph = Named().trace(Scaled())
    assert [node.name for node in graph.nodes] == ["x", "scale", "mul", "output"]


def called_with_proxies(library, name):
    """The code of a graph that calls a function, with proxies for what must be given."""
    graph = library.fx.Graph()
    own = getattr(weft.nn.functional, name)
    required = [
        each.name for each in inspect.signature(own).parameters.values() if each.default is each.empty
    ]
    args = [library.fx.Proxy(graph.placeholder(f"a{place}")) for place, _ in enumerate(required)]
    try:
        result = getattr(library.nn.functional, name)(*args)
    except Exception as error:
        return type(error).__name__
    graph.output(library.fx.node.map_aggregate(result, lambda leaf: getattr(leaf, "node", leaf)))
    return graph.python_code("self").src


FUNCTIONS = [
    name.removeprefix("nn.functional.") for name in FUNCTIONS_OF_WEFT
    if name.startswith("nn.functional.") and is_written_in_python(name)
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_pass_their_arguments_on_as_in_pytorch(name):
    assert called_with_proxies(weft, name) == called_with_proxies(torch, name)


@pytest.mark.parametrize("package", [None, "", "somewhere", "weft_models"])
def test_annotations_that_are_text_in_a_script_stay_text(package):
    scope = {
        "__name__": "__main__",
        "__package__": package,
    }  # a script that runs as the program has no package
    exec("from __future__ import annotations\ndef double(x: Number, y: int = 2): return x * y\n", scope)
    graph = weft.fx.symbolic_trace(scope["double"]).graph
    assert [node.type for node in graph.nodes if node.op == "placeholder"] == ["Number", "int"]
