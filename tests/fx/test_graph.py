"""Graphs by hand: names, order, editing, code and errors are PyTorch's."""

import importlib
import operator
import typing

import pytest
import torch

import weft

LIBRARIES = {"torch": torch, "weft": weft}


def both(function):
    """What the function returns for both libraries."""
    return function(weft), function(torch)


def outcome(function):
    """The value, or the type of the error."""
    try:
        return str(function())
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize(
    "candidates",
    [
        "x x_1 x_1 x_2 x", "for for int int_1 x_ x__1 x_01", "self inf nan torch device NoneType _ __", "a_1_1 a_1 a_1 a a",
        "_0 _0 0 1a len_3 len_3 len", "MaxPool2d a.b.c -x-", "and_ and_ or_ add_ add_ add", "x_9 x x x_10 x_9 x_8",
    ],
)  # fmt: skip
def test_names(candidates):
    def names(library):
        graph = library.fx.Graph()
        return [graph._graph_namespace.create_name(each, None) for each in candidates.split()]

    mine, theirs = both(names)
    assert mine == theirs


def build(library):
    """A graph with all kinds of nodes."""
    graph = library.fx.Graph()
    x = graph.placeholder("x", library.Tensor)
    y = graph.placeholder("y", default_value=3)
    added = graph.call_function(operator.iadd, (x, y))
    summed = graph.call_function(operator.add, (added, [y, {"k": added}]))
    graph.call_function(getattr, (summed, "shape"))
    graph.call_function(getattr, (summed, "0a"))
    graph.call_method("foo", (x,), {"z": slice(1, y)})
    graph.call_function(operator.setitem, (x, 0, y))
    graph.call_function(len, (x,))
    graph.create_node("call_function", max, (x, y), name="max", type_expr=int)
    last = graph.call_function(library.relu, (x,), type_expr=library.Tensor)
    for kind in (
        typing.Optional[int], typing.List[library.Tensor], dict[str, library.Tensor], tuple[int, ...], int | None,  # noqa: UP006, UP045
        library.nn.Linear, typing.Any, library.dtype, library.device, type(None), library.nn.Parameter,
    ):  # fmt: skip
        graph.call_function(operator.neg, (last,), type_expr=kind)
    graph.call_function(library.sub, (), {"input": x, "other": [x, (y,), float("inf"), library.float32, ...]})
    graph.output((added, summed, last), type_expr=tuple[library.Tensor, int])
    return graph


def test_all_kinds_of_nodes_are_written_as_pytorch_writes_them():
    mine, theirs = both(build)
    assert str(mine) == str(theirs)
    assert mine.python_code("self").src == theirs.python_code("self").src
    options = dict(verbose=True, expanded_def=True)
    assert mine.python_code("root", **options).src == theirs.python_code("root", **options).src
    assert [node._sort_key for node in mine.nodes] == [node._sort_key for node in theirs.nodes]


def edited(library):
    graph = build(library)
    x, y, added, summed, *_ = graph.nodes
    with graph.inserting_before(summed):
        new = graph.call_function(library.neg, (added,))
    with graph.inserting_after(x):
        graph.call_function(library.abs, (x,))
    with graph.inserting_before():
        first = graph.placeholder("first")
    added.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)
    summed.args = (first, *summed.args[1:])
    summed.update_arg(1, y)
    summed.insert_arg(0, x)
    summed.update_kwarg("alpha", new)
    new.prepend(graph.node_copy(y))
    x.append(first)
    graph.lint()
    found = [graph.find_nodes(op="call_function", target=operator.neg), graph.find_nodes(op="placeholder")]
    dead = graph.eliminate_dead_code()
    order = [[a < b for a in graph.nodes] for b in graph.nodes]
    return str(found), dead, order, str(graph), graph.python_code("self").src


def test_editing():
    mine, theirs = both(edited)
    assert mine == theirs


def test_places_of_new_nodes_and_chains_without_use():
    def names(library):
        graph = library.fx.Graph()
        x = graph.placeholder("x")
        y = graph.call_function(library.neg, (x,))
        with graph.inserting_before(y):
            graph.call_function(library.abs, (x,))
        z = graph.call_function(library.sin, (y,))
        graph.call_function(library.exp, (graph.call_function(library.cos, (z,)),))
        graph.output(y)
        before = [node.name for node in graph.nodes]
        return before, graph.eliminate_dead_code(), [node.name for node in graph.nodes]

    mine, theirs = both(names)
    assert mine == theirs


def test_equal_arguments_have_equal_hashes():
    def hashes(library):
        immutable = library.fx.immutable_collections
        first, second, other = ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 3, "b": 2})
        of = [hash(immutable.immutable_dict(each)) for each in (first, second, other)]
        return of[0] == of[1], of[0] == of[2]

    mine, theirs = both(hashes)
    assert mine == theirs == (True, False)


def test_arguments_that_are_left_out_have_their_defaults():
    def normalized(library):
        normalize = importlib.import_module(f"{library.__name__}.fx.operator_schemas").normalize_function
        found = normalize(library.nn.functional.leaky_relu, (1,), {}, normalize_to_only_use_kwargs=True)
        return found.args, dict(found.kwargs)

    mine, theirs = both(normalized)
    assert mine == theirs


def errors(library):
    graph = library.fx.Graph()
    x = graph.placeholder("x")
    relu = graph.call_function(library.relu, ([x],))
    other = library.fx.Graph().placeholder("z")
    graph.output(relu)
    calls = [
        lambda: graph.erase_node(x), lambda: graph.create_node("foo", "x"), lambda: graph.create_node("call_function", "x"),
        lambda: graph.call_method(library.relu, (x,)), lambda: library.fx.Node(graph, "x", "foo", "x", (), {}),
        lambda: relu.args[0].append(1), lambda: relu.kwargs.update(a=1), lambda: relu.update_arg(3, 1), lambda: x.append(other),
        lambda: graph.inserting_before(other), lambda: graph.find_nodes(op="call_function"),
        lambda: iter(x), lambda: x.foo, lambda: library.fx.GraphModule({}, _attribute(library)),
        lambda: library.fx.map_arg(x, 1), lambda: graph.erase_node(other),
    ]  # fmt: skip
    found = [outcome(call) for call in calls]
    relu.args = (other,)
    found.append(outcome(graph.lint))
    relu.args = (x,)
    x.prepend(relu)
    return [*found, outcome(graph.lint)]


def _attribute(library):
    graph = library.fx.Graph()
    graph.output(graph.get_attr("a"))
    return graph


def test_errors():
    mine, theirs = both(errors)
    assert mine == theirs


def test_impure_nodes_stay():
    def impure(library):
        graph = library.fx.Graph()
        x = graph.placeholder("x")
        targets = [
            library.rand_like,
            library.relu,
            library._assert,
            operator.setitem,
            library.bernoulli,
            library.relu_,
        ]
        nodes = [graph.call_function(target, (x,)) for target in targets]
        return [node.is_impure() for node in (x, *nodes, graph.output(x))]

    mine, theirs = both(impure)
    assert mine == theirs

    def called(x):
        return x

    graph = weft.fx.Graph()
    node = graph.call_function(called, (graph.placeholder("x"),))
    assert not node.is_impure()
    assert weft.fx.has_side_effect(called) is called
    assert node.is_impure()


def test_a_target_that_changes_is_found():
    graph = weft.fx.Graph()
    node = graph.call_function(weft.relu, (graph.placeholder("x"),))
    node.target = weft.tanh
    assert graph.find_nodes(op="call_function", target=weft.tanh) == [node]
    assert graph.find_nodes(op="call_function", target=weft.relu) == []


def test_deep_copies_and_copies_into_other_graphs():
    import copy

    graph = build(weft)
    same = copy.deepcopy(graph)
    assert str(same) == str(graph)
    assert {node.graph for node in same.nodes} == {same}
    outer = weft.fx.Graph()
    result = outer.graph_copy(graph, {})
    outer.output(result)
    assert str(outer) == str(graph).replace(") -> ", ") -> ")


def test_operators_of_torch_ops():
    @weft.library.custom_op("test_fx::twice", mutates_args=())
    def twice(x: weft.Tensor) -> weft.Tensor:
        return x * 2

    traced = weft.fx.symbolic_trace(lambda x: twice(x) + weft.ops.test_fx.twice(x))
    assert "torch.ops.test_fx.twice.default(x)" in traced.code
    assert "torch.ops.test_fx.twice(x)" in traced.code
    assert traced(weft.ones(1)).item() == 4


def test_lines_belong_to_nodes():
    def lines(library):
        traced = library.fx.symbolic_trace(lambda a, b: library.sin(a) + library.cos(b))
        found = [traced._lineno_map]
        traced.graph.on_generate_code(lambda _: lambda code: ["print('hello!')\n", *code])
        traced.recompile()
        return [*found, traced._lineno_map, traced._prologue_start]

    mine, theirs = both(lines)
    assert mine == theirs
