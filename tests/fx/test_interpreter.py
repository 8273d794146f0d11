"""Interpreters and transformers, and programs that cannot be traced."""

import math

import fx_models
import pytest
import torch

import weft


def test_subclasses_see_each_node():
    seen = []

    class Watching(weft.fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            seen.append((n.op, n.name))
            return result

    traced = weft.fx.symbolic_trace(weft.nn.Sequential(weft.nn.Linear(2, 2), weft.nn.ReLU()))
    x = weft.ones(1, 2)
    assert weft.equal(Watching(traced).run(x), traced(x))
    assert seen == [(node.op, node.name) for node in traced.graph.nodes]
    values = [x]
    assert weft.equal(weft.fx.Interpreter(traced).boxed_run(values), traced(x))
    assert values == []


def test_values_are_let_go_and_defaults_are_taken():
    def values(library):
        class Twice(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = library.nn.Linear(2, 2)

            def forward(self, x, y=3):
                return self.layer(self.layer(x)) * y

        traced = library.fx.symbolic_trace(Twice())
        stacks = [list(node.meta.get("nn_module_stack") or {}) for node in traced.graph.nodes]
        interpreter = library.fx.Interpreter(traced)
        result = interpreter.run(library.zeros(1, 2))
        return stacks, [node.name for node in interpreter.env], tuple(result.shape)

    assert values(weft) == values(torch)


def test_errors_name_the_node():
    def message(library, *args):
        traced = library.fx.symbolic_trace(library.nn.Sequential(library.nn.Linear(2, 2)))
        with pytest.raises(RuntimeError) as caught:
            library.fx.Interpreter(traced).run(*args)
        return str(caught.value).partition("\nUse tlparse")[0]

    assert message(weft) == message(torch)
    mine, theirs = message(weft, weft.ones(3, 3)), message(torch, torch.ones(3, 3))
    assert mine.partition("While executing")[2] == theirs.partition("While executing")[2]


@pytest.mark.parametrize("name", ["simple", "residual", "attention", "functions", "containers"])
def test_a_transformer_that_changes_nothing_makes_the_same_graph(name):
    def transformed(library):
        traced = library.fx.symbolic_trace(fx_models.models(library)[name][0])
        return library.fx.Transformer(traced).transform().code

    assert transformed(weft) == transformed(torch)


PROGRAMS = {
    "if": lambda torch: lambda x: x + 1 if x.sum() > 0 else x,
    "for": lambda torch: lambda x: [each for each in x],
    "double_star": lambda torch: lambda x: {**x},
    "star": lambda torch: lambda x: max(*x),
    "len": lambda torch: lambda x: len(x),
    "rest": lambda torch: lambda *a, **k: a[0] + k["z"],
    "int": lambda torch: lambda x: int(x),
    "range": lambda torch: lambda x: range(x),
    "contains": lambda torch: lambda x: x in [1],
    "contains_2": lambda torch: lambda x: 1 in x,
    "key": lambda torch: lambda x: {x: 1},
    "set": lambda torch: lambda x: {1, 2},
    "and": lambda torch: lambda x: x and 1,
    "not": lambda torch: lambda x: not x,
    "is": lambda torch: lambda x: x if x is None else 2,
    "format": lambda torch: lambda x: f"{x}",
    "attributes": lambda torch: lambda x: x.y.z.w(1),
    "call": lambda torch: lambda x: x(1)(2),
    "math": lambda torch: lambda x: math.sqrt(x) * math.pi,
    "isinstance": lambda torch: lambda x: isinstance(x, torch.Tensor),
    "sizes": lambda torch: lambda x: torch.zeros(x.size(0)) + torch.ones((2, 3)).view(-1, x.size(1)),
    "constant": lambda torch: lambda x: x + torch.ones(2),
    "dataless": lambda torch: lambda x: torch.empty_like(x).new_zeros(x.shape),
}


@pytest.mark.parametrize("tracer", ["Tracer", "Deciding"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_cannot_be_traced(name, tracer):
    def outcome(library):
        class Deciding(library.fx.Tracer):
            def to_bool(self, obj):
                return True

            def iter(self, obj):
                return iter([obj[0], obj[1]])

        kind = Deciding if tracer == "Deciding" else library.fx.Tracer
        try:
            return str(kind().trace(PROGRAMS[name](library)))
        except Exception as error:
            return type(error).__name__, str(error)

    assert outcome(weft) == outcome(torch)


CONCRETE = {
    "flag": lambda torch, ph: dict(flag=False),
    "none": lambda torch, ph: dict(flag=True, z=None),
    "number": lambda torch, ph: dict(flag=True, z=2.5),
    "dict": lambda torch, ph: dict(flag=True, z=1, y={"k": ph}),
    "nested": lambda torch, ph: dict(flag=True, z=1, y={"k": ph, "m": 3}, x=[ph, (ph,)]),
}


@pytest.mark.parametrize("name", CONCRETE)
def test_concrete_arguments(name):
    def outcome(library):
        def function(x, y, z, flag):
            x = x[0] + x[1][0] if isinstance(x, list) else x
            if flag and z is None:
                z = 1
            return {"a": x + z, "b": [y["k"] * 2]}

        placeholder = library.fx._symbolic_trace.PH
        traced = library.fx.symbolic_trace(function, CONCRETE[name](library, placeholder))
        return traced.code, str(traced.graph)

    assert outcome(weft) == outcome(torch)


def test_containers_go_in_and_out():
    placeholder = weft.fx.PH
    traced = weft.fx.symbolic_trace(
        lambda d, rest: {"sum": d["a"] + d["b"], "rest": rest},
        {"d": {"a": placeholder, "b": placeholder}, "rest": [placeholder, 3]},
    )
    arguments = ({"a": 1, "b": 2}, [5, 3])
    assert traced(*arguments) == {"sum": 3, "rest": [5, 3]}
    assert weft.fx.Interpreter(traced).run(*arguments) == {"sum": 3, "rest": [5, 3]}
    with pytest.raises(AssertionError, match="specialized"):
        traced({"a": 1, "b": 2}, [5, 4])


def helper(x, y):
    return x if x.sum() > 0 else y


weft.fx.wrap(helper)
weft.fx.wrap("sum")


@weft.fx.wrap
def decorated(x):
    return x + 1 if x.sum() > 0 else x


def test_wrapped_functions_are_nodes():
    traced = weft.fx.symbolic_trace(lambda x: helper(x, 1) + sum(x) + decorated(x))
    assert [getattr(node.target, "__name__", None) for node in traced.graph.nodes][1:6] == [
        "helper", "sum", "add", "decorated", "add",
    ]  # fmt: skip
    assert 'torch.fx._symbolic_trace.wrap("sum")' in traced.code
    assert weft.equal(traced(weft.ones(2)), weft.full((2,), 5.0))
    assert helper(weft.ones(1), 2).item() == 1  # outside of tracing it is what it was
    with pytest.raises(NotImplementedError, match="top level"):
        weft.fx.wrap(helper)
    with pytest.raises(RuntimeError):
        weft.fx.wrap(1)


# pytest rewrites the asserts of its own modules.
CHECKED = """
def forward(self, x):
    assert x.shape[0] == 1, "one row"
    return x * self.scale + self.hidden.weight
"""


def test_other_tracers(tmp_path):
    file = tmp_path / "checked.py"
    file.write_text(CHECKED)
    scope = {}
    exec(compile(CHECKED, str(file), "exec"), scope)

    class Module(weft.nn.Module):
        forward = scope["forward"]

        def __init__(self):
            super().__init__()
            self.hidden = weft.nn.Linear(2, 2)
            self.register_buffer("scale", weft.ones(2))

    class Tracer(weft.fx.Tracer):
        trace_asserts = True
        proxy_buffer_attributes = True
        record_stack_traces = True

    module = Module()
    traced = weft.fx.GraphModule(module, Tracer().trace(module))
    assert "torch.fx.proxy.assert_fn(eq)" in traced.code
    assert "scale = self.scale" in traced.code
    assert "x * self.scale" in traced.print_readable(print_output=False)
    nodes = {node.name: node for node in traced.graph.nodes}
    assert "in forward" in nodes["mul"].stack_trace
    with pytest.raises(AssertionError):
        traced(weft.ones(3, 2))

    shapes = weft.fx.Tracer(param_shapes_constant=True)
    shapes.trace(
        type("Shaped", (Module,), {"forward": lambda self, x: x if self.hidden.weight.shape[0] == 2 else 1})()
    )

    def mutating(x):
        return weft.relu_(x)

    Tracer.check_mutable_operations = True
    with pytest.raises(RuntimeError, match="mutable"):
        Tracer().trace(mutating)


def test_tracing_leaves_nothing_behind():
    from weft.core import overrides

    known = set(overrides.override_types)
    call, get, view = weft.nn.Module.__call__, weft.nn.Module.__getattr__, weft.Tensor.view
    for program in (lambda x: x + 1, lambda x: x if x else 1):
        try:
            weft.fx.symbolic_trace(program)
        except weft.fx.proxy.TraceError:
            pass
        assert (weft.nn.Module.__call__, weft.nn.Module.__getattr__, weft.Tensor.view) == (call, get, view)
        assert overrides.override_types == known
        assert not weft.fx._symbolic_trace.is_fx_tracing()
