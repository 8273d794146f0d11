"""Passes as objects, groups of supported nodes, and what passes ask of graphs."""

import operator
import typing

import pytest
import torch
import torch.fx.passes.annotate_getitem_nodes
import torch.fx.passes.graph_manipulation
import torch.fx.passes.infra.partitioner
import torch.fx.passes.infra.pass_manager
import torch.fx.passes.operator_support
import torch.fx.passes.pass_manager
import torch.fx.passes.shape_prop
import torch.fx.passes.tools_common

import weft


def outcome(function):
    try:
        return function()
    except Exception as error:
        return type(error).__name__


def program(a, b, c):
    d = a + b
    e = d * d
    f = e * c
    g = -f
    h = c * 2 + 1
    i = h + g
    return (i @ i) + d, e


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"allows_single_node_partition": True},
        {"allows_single_node_partition": True, "skip_horizontal_fusion": True},
    ],
)
def test_partitions(options):
    def partitioned(library):
        passes = library.fx.passes

        class Support(passes.operator_support.OperatorSupport):
            def is_node_supported(self, submodules, node):
                return node.target in (operator.add, operator.mul)

        traced = library.fx.symbolic_trace(program)
        partitioner = passes.infra.partitioner.CapabilityBasedPartitioner(traced, Support(), **options)
        partitions = partitioner.propose_partitions()
        names = [sorted(node.name for node in each.nodes) for each in partitions]
        fused = partitioner.fuse_partitions(partitions)
        return names, fused.code, [child.code for child in fused.children()], fused

    *mine, fused = partitioned(weft)
    *theirs, _ = partitioned(torch)
    assert mine == theirs
    x = weft.eye(2)
    for one, other in zip(fused(x, x, x), program(x, x, x)):
        assert weft.equal(one, other)


def test_pass_managers():
    def managed(library):
        old, new = library.fx.passes.pass_manager, library.fx.passes.infra.pass_manager
        result = library.fx.passes.infra.pass_base.PassResult

        def changing(module):
            return result(module, True)

        def silent(module):
            return None

        module = library.fx.symbolic_trace(lambda x: x + 1)
        before = new.this_before_that_pass_constraint
        manager = new.PassManager(
            [changing, new.pass_result_wrapper(silent)], [before(silent, changing)], steps=3
        )
        return [
            old.PassManager([old.inplace_wrapper(lambda m: None), old.loop_pass(lambda m: m + 1, n_iter=2)])(3),
            outcome(lambda: old.PassManager([silent, changing], [old.this_before_that_pass_constraint(changing, silent)])(1)),
            manager(module).modified, [each.__name__ for each in manager.passes],
            outcome(lambda: new.PassManager([silent])(module)),
            outcome(lambda: new.PassManager([changing, silent], [before(changing, silent), before(silent, changing)])(module)),
            outcome(new.PassManager([changing, silent], [before(silent, changing)]).validate_constraints),
            outcome(lambda: manager.add_checks(lambda a, b: None)),
        ]  # fmt: skip

    assert managed(weft) == managed(torch)


def test_supports_targets_and_sizes():
    def asked(library):
        passes = library.fx.passes
        nn = library.nn

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)

            def forward(self, x):
                return library.relu(self.linear(x) + 1).sum()

        traced = library.fx.symbolic_trace(Model())
        passes.graph_manipulation.get_size_of_all_nodes(traced, [library.ones(2, 4)])
        submodules = dict(traced.named_modules())
        calls = [node for node in traced.graph.nodes if node.op not in ("placeholder", "output")]
        tools, support = passes.tools_common, passes.operator_support
        by_dict = support.OperatorSupport(
            {
                "_operator.add": None,
                "torch.relu": (((library.float64,),), {}),
                "torch.nn.modules.linear.Linear": None,
            }
        )
        chained = support.chain(
            support.OpSupports.decline_if_input_dtype(library.float64),
            support.OpSupports.decline_if_node_in_names({"add"}),
        )
        return [
            [tools.get_node_target(submodules, node) for node in calls],
            [tools.is_node_output_tensor(node) for node in calls],
            [tuple(node.size_bytes) for node in calls],
            [by_dict.is_node_supported(submodules, node) for node in calls],
            [chained.is_node_supported(submodules, node) for node in calls],
        ]

    assert asked(weft) == asked(torch)


def test_orders():
    def ordered(library):
        tools = library.fx.passes.tools_common
        found = []
        for sort in (tools.legalize_graph, tools.stable_topological_sort):
            module = library.fx.symbolic_trace(lambda x: library.add(library.relu(x), library.neg(x)))
            nodes = list(module.graph.nodes)
            nodes[3].append(nodes[1])
            found += [outcome(module.graph.lint), str(sort(module).graph)]
        return found

    assert ordered(weft) == ordered(torch)


def test_other_targets_and_types_of_elements():
    def changed(library):
        module = library.fx.symbolic_trace(lambda x: library.relu(x[0]))
        manipulation = library.fx.passes.graph_manipulation
        manipulation.replace_target_nodes_with(
            module, "call_function", library.relu, "call_function", library.tanh
        )
        next(iter(module.graph.nodes)).type = typing.Tuple[int, typing.List[str]]  # noqa: UP006
        library.fx.passes.annotate_getitem_nodes.annotate_getitem_nodes(module.graph)
        return module.code, [str(node.type) for node in module.graph.nodes]

    assert changed(weft) == changed(torch)


def test_an_observer_notes_what_a_pass_does():
    traced = weft.fx.symbolic_trace(lambda x: weft.relu(x) + 1)
    observer = weft.fx.passes.graph_transform_observer.GraphTransformObserver(traced, "to_tanh")

    def to_tanh(graph):
        (relu,) = graph.find_nodes(op="call_function", target=weft.relu)
        with graph.inserting_before(relu):
            new = graph.call_function(weft.tanh, relu.args)
        relu.replace_all_uses_with(new)
        graph.erase_node(relu)
        return new

    new = observer.apply_graph_pass(to_tanh)
    assert (observer.created_nodes, observer.erased_nodes) == ({"tanh"}, {"relu"})
    assert {each.pass_name for each in new.meta["from_node"]} == {"to_tanh"}
    assert "relu" in {each.name for each in new.meta["from_node"]}


def test_equal_calls_become_one():
    from weft.fx.passes.dialect.common.cse_pass import CSEPass

    def program(x):
        noise = weft.rand(2) + weft.rand(2)
        return x.relu() + x.relu() + weft.add(x, 1) + weft.add(x, 1.0) + weft.add(x, True) + noise

    result = CSEPass()(weft.fx.symbolic_trace(program))
    targets = [getattr(node.target, "__name__", node.target) for node in result.graph_module.graph.nodes]
    assert result.modified
    assert targets.count("relu") == 1
    assert result.graph_module.code.count("torch.add(x, ") == 3


def test_a_drawing_needs_pydot():
    drawer = weft.fx.passes.graph_drawer
    traced = weft.fx.symbolic_trace(lambda x: weft.relu(x))
    if drawer.HAS_PYDOT:
        assert "relu" in drawer.FxGraphDrawer(traced, "name").get_dot_graph().to_string()
    else:
        with pytest.raises(RuntimeError, match="pydot"):
            drawer.FxGraphDrawer(traced, "name")
