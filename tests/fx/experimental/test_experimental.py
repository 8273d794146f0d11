"""The experimental modules: folding, normalizing, recording, and questions about symbolic sizes."""

import numpy as np
import torch
import torch.fx.experimental.const_fold
import torch.fx.experimental.merge_matmul
import torch.fx.experimental.normalize
import torch.fx.experimental.optimization
import torch.fx.experimental.rewriter
import torch.fx.experimental.symbolic_shapes
import torch.fx.experimental.unification
import torch.fx.operator_schemas

import weft


def close(first, second):
    first, second = (each if isinstance(each, tuple) else (each,) for each in (first, second))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(np.asarray(one.detach()), np.asarray(other.detach()), rtol=1e-4, atol=1e-5)


def test_batch_normalization_is_folded_and_dropout_taken_out():
    def optimized(library):
        nn = library.nn

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.norm = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)
                self.layers = nn.Sequential(nn.Dropout(), nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3), nn.ReLU())
                self.conv2, self.norm2 = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)

            def forward(self, x):
                y = self.conv2(x)
                return self.layers(self.norm(self.conv(x))), self.norm2(y) + y

        model = Model().eval()
        optimization = library.fx.experimental.optimization
        return model, optimization.fuse(model), optimization.remove_dropout(model)

    model, fused, dry = optimized(weft)
    _, their_fused, their_dry = optimized(torch)
    assert fused.code == their_fused.code
    assert dry.code == their_dry.code
    assert [name for name, _ in fused.named_modules()] == [name for name, _ in their_fused.named_modules()]
    x = weft.randn(2, 3, 5, 5)
    close(fused(x), model(x))
    close(dry(x), model(x))
    close(weft.fx.experimental.optimization.optimize_for_inference(model)(x), model(x))


def test_constants_are_folded():
    def folded(library, skip):
        class Model(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = library.nn.Parameter(library.ones(2))
                self.register_buffer("offset", library.ones(2))
                self.linear = library.nn.Linear(2, 2)

            def forward(self, x):
                a = self.weight + self.offset
                c = library.relu(a) * 2
                return self.linear(x + c) - a, x * self.offset, c

        model = Model()
        skipped = (lambda node: node.target is library.relu) if skip else None
        return model, library.fx.experimental.const_fold.split_const_subgraphs(model, skipped)

    for skip in (False, True):
        model, mine = folded(weft, skip)
        _, theirs = folded(torch, skip)
        assert mine.code == theirs.code
        x = weft.randn(2)
        assert not mine.has_folding_been_run
        close(mine(x), model(x))
        assert mine.has_folding_been_run


def test_normalized_graphs():
    def normalized(library):
        functional = library.nn.functional
        traced = library.fx.symbolic_trace(
            lambda x: (
                library.relu(functional.dropout(x, 0.5)),
                functional.linear(x, x),
                library.cat([x, x], 1),
                library.bmm(x, x),
            )
        )
        normalize = library.fx.experimental.normalize
        operators = library.fx.symbolic_trace(
            lambda x, y: (library.add(x, y), library.lt(x, y), library.sub(x, 1))
        )
        typed = library.fx.symbolic_trace(
            lambda x, y: (library.add(x, y), library.sum(x, 1), library.relu(y))
        )
        for node in typed.graph.nodes:
            node.meta["type"] = library.Tensor
        return [
            normalize.NormalizeArgs(typed).transform().code,
            normalize.NormalizeArgs(traced).transform().code,
            normalize.NormalizeArgs(traced, normalize_to_only_use_kwargs=False).transform().code,
            normalize.NormalizeOperators(operators).transform().code,
        ]

    assert normalized(weft) == normalized(torch)


def test_what_depends_on_another_product_is_not_merged():
    class Chain(weft.nn.Module):
        def forward(self, x, w):
            return weft.matmul(weft.matmul(x, w), w)

    from weft.fx.experimental.merge_matmul import merge_matmul

    called = [node.target for node in merge_matmul(Chain()).graph.nodes if node.op == "call_function"]
    assert called == [weft.matmul, weft.matmul]


def test_nodes_can_be_left_out_of_folding():
    class Scaled(weft.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = weft.nn.Parameter(weft.ones(2))

        def forward(self, x):
            return x * (self.weight + 1)

    from weft.fx.experimental.const_fold import split_const_subgraphs

    assert split_const_subgraphs(Scaled()).const_subgraph_module is not None
    kept = split_const_subgraphs(Scaled(), skip_folding_node_fn=lambda node: node.op == "call_function")
    assert kept.const_subgraph_module is None


def test_products_with_one_factor_are_merged():
    weight = weft.randn(2, 2)

    class Model(weft.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = weft.nn.Parameter(weight)

        def forward(self, a, b):
            return weft.matmul(a, self.weight) + weft.matmul(b, self.weight)

    merged = weft.fx.experimental.merge_matmul.merge_matmul(Model())
    assert merged.code.count("torch.matmul") == 1
    x, y = weft.randn(3, 2), weft.randn(3, 2)
    close(merged(x, y), Model()(x, y))


def asserting(x):
    assert x.sum() > 0, "positive"
    y: int = x + 1
    return y


def test_rewritten_programs():
    graph = weft.fx.experimental.rewriter.RewritingTracer().trace(asserting)
    assert "torch._assert](args = (%gt, positive)" in str(graph)
    assert "%add : int" in str(graph)


def leaf(x, y):
    return x + 2 * y


weft.fx.wrap("leaf")


def calls_leaf(x):
    return leaf(x, 3) + leaf(1, 1)


def test_wrapped_functions_in_rewritten_programs(monkeypatch):
    """The program has its own globals, in which tracing replaces the functions that are wrapped."""
    monkeypatch.setitem(globals(), "torch", weft)
    graph = weft.fx.experimental.rewriter.RewritingTracer().trace(calls_leaf)
    assert str(graph).count("leaf](args = ") == 1
    assert weft.fx.GraphModule({}, graph)(10) == 19


def test_unification():
    def solved(library):
        unification = library.fx.experimental.unification
        a, b = unification.Var("a"), unification.Var("b")
        with unification.variables(7):
            inside = unification.unify((7,), (3,), {})
        found = [
            unification.unify((a, b), (1, a), {}), unification.unify([1, a], (1, 2), {}),
            unification.reify({"x": a, "y": [b, (a,)]}, {a: 3}), unification.isvar(a), unification.isvar(7), inside,
        ]  # fmt: skip
        return str(found)

    assert solved(weft) == solved(torch)


def test_sizes_are_ints():
    def answers(library):
        shapes = library.fx.experimental.symbolic_shapes
        return [
            shapes.guard_int(3), shapes.is_concrete_int(3), len(shapes.free_symbols(3)), shapes.has_free_symbols(3),
            shapes.statically_known_true(True), shapes.statically_known_true(False), shapes.guard_or_false(True),
            shapes.sym_eq((1, 2), (1, 2)), shapes.sym_eq(1, 2), shapes.is_nested_int(1), shapes.guard_scalar(1.5),
            shapes.has_static_value(3), shapes.sym_or(False, True),
        ]  # fmt: skip

    assert str(answers(weft)) == str(answers(torch))


# ---- Constants ----------------------------------------------------------------------------------------------------


def test_a_folded_constant_keeps_what_is_known_about_it():
    def metadata(library):
        class Model(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = library.nn.Parameter(library.ones(2))

            def forward(self, x):
                return x - (self.weight + self.weight)

        traced = library.fx.symbolic_trace(Model())
        for place, node in enumerate(traced.graph.nodes):
            node.meta["place"] = place
        folded = library.fx.experimental.const_fold.split_const_subgraphs(traced)
        return [(node.op, node.meta.get("place")) for node in folded.graph.nodes if node.op != "output"]

    assert metadata(weft) == metadata(torch) == [("placeholder", 0), ("get_attr", 2), ("call_function", 3)]
