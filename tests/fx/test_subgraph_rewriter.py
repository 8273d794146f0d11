"""Patterns are found and replaced where PyTorch finds and replaces them."""

import pytest
import torch
import torch.fx.subgraph_rewriter
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher as TheirMatcher

import weft
from weft.fx.passes.utils.matcher_utils import SubgraphMatcher


def used_twice(torch):
    def function(x):
        negative = torch.neg(x)
        return torch.relu(negative) + negative

    return function


# name -> the program, the pattern, the replacement, options
CASES = {
    "cat": lambda t: (
        lambda x, a, b: x + t.cat([a, b]).sum() + t.cat([b, a]).sum(), lambda a, b: t.cat([a, b]).sum(), lambda a, b: t.stack([a, b]), {}),
    "chain": lambda t: (
        lambda x: t.neg(t.neg(t.neg(t.neg(x)))), lambda x: t.neg(t.neg(x)), lambda x: t.relu(x), {}),
    "one node": lambda t: (lambda x: t.relu(x) + t.relu(x), lambda x: t.relu(x), lambda x: t.sigmoid(x), {}),
    "two results": lambda t: (
        lambda x, y: (t.add(x, y), t.mul(x, y)), lambda a, b: (t.add(a, b), t.mul(a, b)), lambda a, b: (t.sub(a, b), t.div(a, b)), {}),
    "used inside": lambda t: (used_twice(t), lambda x: t.relu(t.neg(x)), lambda x: t.sigmoid(x), {}),
    "literal": lambda t: (lambda x: t.add(x, 3), lambda x: t.add(x, 3), lambda x: t.mul(x, 2), {}),
    "other literal": lambda t: (lambda x: t.add(x, 4), lambda x: t.add(x, 3), lambda x: t.mul(x, 2), {}),
    "any literal": lambda t: (lambda x: t.add(x, 4), lambda x: t.add(x, 3), lambda x: t.mul(x, 2), dict(ignore_literals=True)),
    "literal as input": lambda t: (lambda x: t.add(x, 4), lambda x, y: t.add(x, y), lambda x, y: t.mul(x, y), {}),
    "same input": lambda t: (lambda x, y: t.add(x, y) + t.add(x, x), lambda x: t.add(x, x), lambda x: t.mul(x, 2), {}),
    "methods": lambda t: (lambda x: x.relu().sum(dim=-1), lambda x: x.relu().sum(dim=-1), lambda x: x.sigmoid(), {}),
    "filter": lambda t: (
        lambda x: t.relu(t.add(x, 1)) + t.relu(t.sub(x, 1)), lambda x: t.relu(x), lambda x: t.neg(x),
        dict(match_filters=[lambda match, graph, pattern: match.placeholder_nodes[0].target is t.add])),
    "callback": lambda t: (
        lambda x: t.relu(x), lambda x: t.relu(x), None,
        dict(replacement_callback=lambda match, graph, pattern: t.fx.symbolic_trace(lambda x: t.neg(x)).graph)),
    "operators": lambda t: (lambda x, y: (x + y) * 2 + y, lambda x, y: (x + y) * 2, lambda x, y: x - y, {}),
    "containers": lambda t: (lambda x, y: {"a": [t.relu(x), y]}, lambda x: t.relu(x), lambda x: t.tanh(x), {}),
    "nothing": lambda t: (lambda x: t.relu(x), lambda x: t.relu(x), lambda x: x, {}),
    "other parameters": lambda t: (lambda x, y: t.sub(x, y), lambda x, y: t.sub(x, y), lambda x: t.neg(x), {}),
    "dead pattern": lambda t: (lambda x: t.relu(x), lambda x: (t.neg(x), t.relu(x))[1], lambda x: x, {}),
}  # fmt: skip


def replaced(library, case):
    program, pattern, replacement, options = CASES[case](library)
    traced = library.fx.symbolic_trace(program)
    try:
        if options:
            rewriter = library.fx.subgraph_rewriter
            matches = rewriter.replace_pattern_with_filters(traced, pattern, replacement, **options)
        else:
            matches = library.fx.replace_pattern(traced, pattern, replacement)
    except Exception as error:
        return type(error).__name__
    traced.graph.lint()
    found = [
        (str(match.anchor), {key.name: str(value) for key, value in match.nodes_map.items()})
        for match in matches
    ]
    return traced.code, found


@pytest.mark.parametrize("case", CASES)
def test_replace_pattern(case):
    assert replaced(weft, case) == replaced(torch, case)


def test_a_module_brings_its_attributes():
    def changed(library):
        nn = library.nn

        class Pattern(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(2, 2)

            def forward(self, x):
                return self.linear(x)

        class Replacement(nn.Module):
            def __init__(self):
                super().__init__()
                self.other = nn.Linear(2, 3)
                self.weight = nn.Parameter(library.ones(1))

            def forward(self, x):
                return self.other(x) + self.weight

        class Model(Pattern):
            def forward(self, x):
                return library.relu(self.linear(x))

        traced = library.fx.symbolic_trace(Model())
        matches = library.fx.replace_pattern(
            traced, library.fx.symbolic_trace(Pattern()), library.fx.symbolic_trace(Replacement())
        )
        assert len(matches) == 1
        return traced.code, sorted(traced.state_dict()), [name for name, _ in traced.named_modules()]

    assert changed(weft) == changed(torch)


def test_comparing_graphs():
    import torch.fx.passes.utils

    def answers(library):
        graphs = [
            library.fx.symbolic_trace(each).graph
            for each in (lambda x: library.relu(x), lambda y: library.relu(y), lambda y: library.neg(y))
        ]
        compare = library.fx.passes.utils.compare_graphs
        return [[compare(a, b) for a in graphs] for b in graphs]

    assert answers(weft) == answers(torch)


def test_names_in_a_pattern():
    from weft.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap

    def pattern(x, w):
        added = weft.add(x, w)
        return weft.relu(added), {"added": added, "weight": w}

    matcher = SubgraphMatcherWithNameNodeMap(weft.fx.symbolic_trace(pattern))
    graph = weft.fx.symbolic_trace(lambda a, b: weft.relu(weft.add(a, b)) * 2).graph
    (match,) = matcher.match(graph)
    assert {key: str(node) for key, node in match.name_node_map.items()} == {"added": "add", "weight": "b"}


@pytest.mark.parametrize("options", [{}, {"match_output": True}, {"match_placeholder": True}])
def test_options_of_the_matcher(options):
    def found(library, matcher):
        pattern = library.fx.symbolic_trace(lambda x: library.relu(x) + 1).graph
        graphs = [
            lambda a: library.relu(a) + 1,
            lambda a: (library.relu(a) + 1) * 2,
            lambda a: library.relu(-a) + 1,
        ]
        return [
            len(matcher(pattern, **options).match(library.fx.symbolic_trace(each).graph)) for each in graphs
        ]

    assert found(weft, SubgraphMatcher) == found(torch, TheirMatcher)


@pytest.mark.parametrize("replacement", ["nothing", "mul"])
def test_replacements_are_new_nodes(replacement):
    """Where the input of one place is the replaced result of another, too."""

    def replaced(library):
        def program(x):
            x = library.neg(x)
            x = library.add(x, x)
            return library.add(x, x)

        def new(x):
            return x if replacement == "nothing" else library.mul(x, 2)

        traced = library.fx.symbolic_trace(program)
        matches = library.fx.subgraph_rewriter.replace_pattern_with_filters(
            traced, lambda x: library.add(x, x), new, []
        )
        nodes = [str(node) for node in traced.graph.nodes]
        return nodes, [[str(each) for each in match.replacements] for match in matches]

    mine, theirs = replaced(weft), replaced(torch)
    assert mine == theirs
