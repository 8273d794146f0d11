"""Graphs whose arguments are containers of placeholders, and the types of sizes in generated code, beside PyTorch's."""

import collections
import importlib

import pytest
import torch

import weft

Pair = collections.namedtuple("Pair", ["x", "y"])


def modules(library):
    return library.fx, importlib.import_module(f"{library.__name__}.fx.graph")


def of_list(x):
    return sum(x)


def of_dict(x):
    return x["a"] + sum(x["z"])


def of_pair(x):
    return x.x + x.y


CASES = {
    "list": (of_list, lambda hole: [hole, hole, hole]),
    "no placeholders": (of_list, lambda hole: []),
    "dict": (of_dict, lambda hole: {"a": hole, "z": (hole, hole)}),
    "namedtuple": (of_pair, lambda hole: Pair(hole, hole)),
}


@pytest.mark.parametrize("name", CASES)
def test_traced_once_more(name):
    """The second trace has the container as one input, the third takes it apart again, in a module with a `self`."""
    function, container = CASES[name]

    def run(library):
        fx = library.fx
        holes, value = container(fx.PH), container(library.ones(2))
        found, traced = [], function
        for concrete in ({"x": holes}, None, {"x": holes}):
            traced = fx.symbolic_trace(traced, concrete_args=concrete)
            result = traced(value)
            found += [traced.code, result.tolist() if hasattr(result, "tolist") else result]
        return found

    assert run(weft) == run(torch)


def choose(b, a):
    return a["a"] if b else a["z"]


def test_two_arguments_of_which_the_second_is_a_dict():
    def run(library):
        fx = library.fx
        traced = fx.symbolic_trace(choose, concrete_args={"a": {"a": fx.PH, "z": fx.PH}, "b": True})
        again = fx.symbolic_trace(traced)
        values = {"a": {"a": library.ones(1), "z": library.zeros(1)}, "b": True}
        with pytest.raises(AssertionError, match="b has been specialized to have value True"):
            traced(**{**values, "b": False})
        return traced.code, traced(**values).tolist(), again.code, again(**values).tolist()

    assert run(weft) == run(torch)


def test_types_of_sizes():
    def run(library):
        types = importlib.import_module(f"{library.__name__}.fx.tensor_type")

        def function(x, y, z):
            return x + y + z

        function.__annotations__.update(
            x=types.TensorType((1, types.Dyn, 3)), y=types.Dyn, z=types.TensorType([])
        )
        return library.fx.symbolic_trace(function).code

    assert run(weft) == run(torch)


def test_code_generators_with_the_methods_of_earlier_versions():
    def run(library):
        fx, graph = modules(library)

        class Listing(graph.CodeGen):
            def gen_fn_def(self, free_vars, maybe_return_annotation):
                names = ", ".join(free_vars)
                return f"def forward(self, args_list){maybe_return_annotation}:\n    {names}, = args_list"

            def generate_output(self, output_args):
                return f"return [{output_args!r}]"

        traced = fx.symbolic_trace(of_pair_parts)
        traced.graph.set_codegen(Listing())
        traced.recompile()
        return traced.code, traced([library.ones(1), library.ones(1)])[0].tolist()

    assert run(weft) == run(torch)


def of_pair_parts(x, y):
    return x + y
