"""`make_fx` writes the operators that PyTorch's writes."""

import importlib

import pytest
import torch
import torch._decomp
import torch.fx.experimental.proxy_tensor

import weft
import weft._decomp
import weft.fx.experimental.proxy_tensor
from weft.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, get_proxy_mode, make_fx

LIBRARIES = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])


def grad(lib, x):
    x = x.detach().requires_grad_()
    return lib.autograd.grad(x.cos().exp().sum(), x)[0]


def trained(lib, x):
    weight = (x * 2).detach().requires_grad_()
    lib.nn.functional.softmax(x.view(1, 3) * weight, -1).pow(2).sum().backward()
    return weight.grad


def written(lib, x):
    y = x.clone()
    y.add_(1).mul_(2)
    y[1:] = x[:2]
    return y


PROGRAMS = {
    "one": lambda lib, x: lib.sin(x),
    "several": lambda lib, x: {"a": x.cos() + x, "b": [x, 3]},
    "constant": lambda lib, x: x + lib.tensor(2.0),
    "factories": lambda lib, x: x + lib.zeros(3) + lib.rand(3) + lib.arange(3) + lib.ones_like(x),
    "branch": lambda lib, x: x * 2 if x.dim() == 1 else x,
    "linear": lambda lib, x: lib.nn.functional.linear(x, lib.ones(2, 3), lib.ones(2)).relu(),
    "pieces": lambda lib, x: lib.cat(x.split(1)[:2]),
    "softmax": lambda lib, x: lib.nn.functional.cross_entropy(x.view(1, 3), lib.tensor([1])),
    "layer_norm": lambda lib, x: lib.nn.functional.layer_norm(x, (3,)),
    "convolution": lambda lib, x: lib.nn.functional.conv2d(x.view(1, 1, 3, 1), lib.ones(2, 1, 1, 1)),
    "gradient": grad,
    "backward": trained,
    "writes": written,
    "constants have numbers": lambda lib, x: x * lib.unbind(lib.tensor([2]), 0)[0].item(),
    "moments": lambda lib, x: x.var(0).sqrt() + x.mean() - x.std(),
    "dropout": lambda lib, x: lib.nn.functional.dropout(x, 0.5),
}  # fmt: skip


def code(lib, program, mode="real", table=None):
    make = lib.fx.experimental.proxy_tensor.make_fx
    return make(lambda x_: program(lib, x_), tracing_mode=mode, decomposition_table=table)(lib.ones(3)).code


@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_code_is_pytorchs(name, mode):
    assert code(weft, PROGRAMS[name], mode) == code(torch, PROGRAMS[name], mode)


@pytest.mark.parametrize("name", ["linear", "layer_norm", "gradient", "writes", "moments"])
def test_the_graph_computes_what_the_function_does(name):
    x = weft.randn(3)
    traced = make_fx(lambda x: PROGRAMS[name](weft, x))(weft.ones(3))
    traced.graph.lint()
    weft.testing.assert_close(traced(x), PROGRAMS[name](weft, x))


@LIBRARIES
def test_arguments_in_containers(lib):
    def program(tensors, scale):
        return {"sum": tensors["a"] + tensors["b"][0] * scale}

    make = lib.fx.experimental.proxy_tensor.make_fx
    x, y = lib.ones(2), lib.full((2,), 3.0)
    traced = make(program)({"a": x, "b": [y]}, 2)
    assert traced({"a": y, "b": [y]}, 2)["sum"].tolist() == [9, 9]
    assert make(lambda *args: sum(args))(x, y)(y, y).tolist() == [6, 6]


@LIBRARIES
def test_nodes_have_metadata(lib):
    def program(x):
        y = x.clone()
        y.unsqueeze_(0)
        return y

    traced = lib.fx.experimental.proxy_tensor.make_fx(program)(lib.ones(3))
    nodes = [node for node in traced.graph.nodes if node.op != "output"]
    assert [tuple(node.meta["val"].shape) for node in nodes] == [(3,), (3,), (1, 3)]
    assert repr(nodes[0].meta["val"]) == "FakeTensor(..., size=(3,))"
    assert nodes[1].meta["tensor_meta"].dtype is lib.float32


@LIBRARIES
def test_parameters_are_constants_and_training_steps_are_recorded(lib):
    layer = lib.nn.Linear(3, 2)

    def step(x, params):
        lib.func.functional_call(layer, params, x).sum().backward()
        return [p - 0.1 * p.grad for p in params.values()]

    make = lib.fx.experimental.proxy_tensor.make_fx
    constants = [node.target for node in make(layer)(lib.ones(1, 3)).graph.nodes if node.op == "get_attr"]
    assert constants == ["_param_constant0", "_param_constant1"]
    params = {name: p.detach().clone().requires_grad_() for name, p in layer.named_parameters()}
    traced = make(step)(lib.ones(1, 3), params)
    found = traced(lib.full((1, 3), 2.0), {"weight": lib.zeros(2, 3), "bias": lib.zeros(2)})
    assert found[0].tolist() == [[pytest.approx(-0.2)] * 3] * 2


@LIBRARIES
def test_operators_are_decomposed(lib):
    table = {
        lib.ops.aten.addmm.default: lambda x, a, b: NotImplemented if x.ndim == 2 else x + a @ b,
        **lib._decomp.get_decompositions([lib.ops.aten.silu]),
    }

    def program(lib, x):
        m = lib.outer(x, x)
        y = lib.addmm(x, m, m) + lib.addmm(m, m, m)
        return lib.nn.functional.silu(y)

    text = code(lib, program, table=table)
    assert text.count("addmm.default(") == 1 and "aten.mm.default" in text
    assert "silu" not in text and "aten.sigmoid.default" in text


@LIBRARIES
def test_graphs_within_graphs(lib):
    module = lib.fx.experimental.proxy_tensor

    def inner(x):
        return x.exp() + lib.full((3,), 1.0)

    def outer(x):
        for graph in (module.get_isolated_graphmodule(inner, (x,), {}), module.make_fx(inner)(x)):
            assert "exp" in graph.code
        with module.disable_proxy_modes_tracing():
            x.tan()
        return x.sin()

    text = module.make_fx(outer)(lib.ones(3)).code
    assert "sin" in text and not any(name in text for name in ("exp", "full", "tan"))


@LIBRARIES
def test_a_graph_is_decomposed_while_it_runs(lib):
    module = importlib.import_module(f"{lib.__name__}.fx.experimental.proxy_tensor")
    traced = module.make_fx(lambda x: lib.nn.functional.silu(x) + 1)(lib.ones(3))
    graph = lib.fx.Graph()
    table = lib._decomp.get_decompositions([lib.ops.aten.silu.default])
    x = lib.ones(3)
    module.DecompositionInterpreter(traced, graph, decomposition_table=table).run(x)
    decomposed = lib.fx.GraphModule(traced, graph)
    assert "silu" not in decomposed.code
    lib.testing.assert_close(decomposed(x), traced(x))


@pytest.mark.parametrize(
    "lib, mode", [(weft, "real"), (weft, "fake"), (torch, "real")], ids=["weft", "weft-fake", "torch"]
)
def test_graphs_do_not_depend_on_numbers(lib, mode):
    make = lib.fx.experimental.proxy_tensor.make_fx
    for program in (
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x * x.sum().item(),
        lambda x: lib.allclose(x, x),
        lambda x: lib.tensor([2.0]).normal_().item(),
        lambda x: lib.tensor([2.0]).repeat(9).sum().item(),
    ):
        with pytest.raises(RuntimeError):
            make(program, tracing_mode=mode)(lib.ones(2))


def test_what_make_fx_cannot_record():
    with pytest.raises(NotImplementedError, match="tracing_mode"):
        make_fx(weft.sin, tracing_mode="symbolic")
    with pytest.raises(NotImplementedError, match="make_fx: .* is not an operator of PyTorch"):
        make_fx(lambda x: weft.fft.fft(x))(weft.ones(3))
    seen = []

    def asking(x):
        seen.append(get_proxy_mode())
        with disable_proxy_modes_tracing():
            seen.append(get_proxy_mode())
        return x

    make_fx(asking)(weft.ones(1))
    assert seen[0] is not None and seen[1] is None and get_proxy_mode() is None


@pytest.mark.parametrize("transform", ["vmap", "jacrev", "jacfwd", "hessian"])
def test_samples_and_tangents_are_not_recorded(transform):
    function = getattr(weft.func, transform)(weft.sin)
    x = weft.ones(2) if transform == "vmap" else weft.ones(())
    with pytest.raises(NotImplementedError, match="within make_fx"):
        make_fx(function)(x)
    assert function(x) is not None


TRANSFORMS = {
    "grad": lambda lib, x: lib.func.grad(lambda y: (y.sin() * x).sum())(x),
    "vjp": lambda lib, x: lib.func.vjp(lib.sin, x)[1](x),
    "grad of grad": lambda lib, x: lib.func.grad(lambda y: lib.func.grad(lambda z: z.exp().sum())(y).sum())(
        x
    ),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_gradient_transforms_are_recorded(name):
    traced = make_fx(lambda x: TRANSFORMS[name](weft, x))(weft.ones(3))
    assert not [node for node in traced.graph.nodes if node.op == "get_attr"]
    x = weft.randn(3)
    weft.testing.assert_close(traced(x), TRANSFORMS[name](weft, x), atol=1e-6, rtol=1e-5)
