"""`TorchDispatchMode` is told of the operators that PyTorch's is told of: forward, backward and in place."""

import contextlib
import importlib
import warnings

import pytest
import torch

import weft
from weft.autograd import engine

LIBRARIES = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])


def shown(value, lib):
    if isinstance(value, lib.Tensor):
        return f"T{list(value.shape)}"
    if isinstance(value, (tuple, list)):
        return [shown(each, lib) for each in value]
    return repr(value)


def logging_mode(lib):
    class Log(importlib.import_module(f"{lib.__name__}.utils._python_dispatch").TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.lines = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **kwargs or {})
            named = {key: shown(value, lib) for key, value in (kwargs or {}).items()}
            self.lines.append((str(func), shown(args, lib), named, shown(result, lib)))
            return result

    return Log()


A, B = (3, 4), (4, 2)
# The shapes of the inputs, and what is done to them; the sum of the (first) result is differentiated.
PROGRAMS = {
    "x * y + 1": ((A, (4,)), lambda lib, x, y: x * y + 1),
    "x / y": ((A, (4,)), lambda lib, x, y: x / y),
    "x - 2 y": ((A, A), lambda lib, x, y: lib.sub(x, y, alpha=2)),
    "2 - x": ((A,), lambda lib, x: 2 - x),
    "1 / x": ((A,), lambda lib, x: 1 / x),
    "x ** 3": ((A,), lambda lib, x: x**3),
    "roots": ((A,), lambda lib, x: x.sqrt().rsqrt()),
    "transcendental": ((A,), lambda lib, x: x.log().cos().sin().exp().tanh().abs()),
    "sigmoid": ((A,), lambda lib, x: x.sigmoid()),
    "activations": ((A,), lambda lib, x: lib.nn.functional.silu(lib.nn.functional.gelu(x))),
    "leaky": ((A,), lambda lib, x: lib.nn.functional.elu(lib.nn.functional.leaky_relu(x))),
    "clamped": ((A,), lambda lib, x: lib.nn.functional.relu6(lib.nn.functional.hardswish(x)).clamp(0, 1)),
    "softplus": ((A,), lambda lib, x: lib.nn.functional.softplus(x)),
    "in place": ((A,), lambda lib, x: (x * 1).add_(2).mul_(3)),
    "relu in place": ((A,), lambda lib, x: lib.nn.functional.relu(x * 1, inplace=True)),
    "mean": ((A,), lambda lib, x: x.mean(1).mean()),
    "sum": ((A,), lambda lib, x: x.sum(1, keepdim=True)),
    "var": ((A,), lambda lib, x: x.var(1)),
    "std": ((A,), lambda lib, x: x.std()),
    "amax": ((A,), lambda lib, x: x.amax(1)),
    "logsumexp": ((A,), lambda lib, x: x.logsumexp(1)),
    "cumsum": ((A,), lambda lib, x: x.cumsum(1)),
    "softmax": ((A,), lambda lib, x: x.softmax(-1)),
    "log_softmax": ((A,), lambda lib, x: lib.nn.functional.log_softmax(x, -1)),
    "mm": ((A, B), lambda lib, x, y: x @ y),
    "mm of a transposed": ((A, (2, 4)), lambda lib, x, y: x @ y.t()),
    "bmm": (((2, 3, 4), (2, 4, 5)), lambda lib, x, y: x @ y),
    "matmul, folded": (((2, 3, 4), (4, 5)), lambda lib, x, y: lib.matmul(x, y)),
    "linear of 3 dims": (((2, 3, 4), (5, 4), (5,)), lambda lib, x, w, b: lib.nn.functional.linear(x, w, b)),
    "addmm": (((3, 2), A, B), lambda lib, c, x, y: lib.addmm(c, x, y, beta=2, alpha=3)),
    "attention by hand": (((2, 3, 4),), lambda lib, x: (x @ x.transpose(-2, -1) / 2.0).softmax(-1) @ x),
    "views": ((A,), lambda lib, x: x.t().unsqueeze(0).squeeze(0).permute(1, 0).reshape(2, 6)),
    "items": ((A,), lambda lib, x: x[:, 1:3][0][..., None]),
    "index": ((A,), lambda lib, x: x[lib.tensor([0, 1])]),
    "chunk": ((A,), lambda lib, x: x.chunk(2, 1)[0]),
    "cat": ((A, A), lambda lib, x, y: lib.cat([x, y], 1)),
    "stack": ((A, A), lambda lib, x, y: lib.stack([x, y])),
    "expand": (((1, 4),), lambda lib, x: x.expand(3, 4)),
    "repeat": ((A,), lambda lib, x: x.repeat(2, 1, 3)),
    "repeat the leading dims": ((A,), lambda lib, x: x.repeat(2, 1, 1)),
    "repeat no time": ((A,), lambda lib, x: x.repeat(0, 2)),
    "gather": ((A,), lambda lib, x: x.gather(1, lib.zeros(3, 1, dtype=lib.int64))),
    "where": ((A, A), lambda lib, x, y: lib.where(x > 0, x, y)),
    "maximum": ((A, A), lambda lib, x, y: lib.maximum(x, y)),
    "masked_fill": ((A,), lambda lib, x: x.masked_fill(x > 1, 0.0)),
    "double": ((A,), lambda lib, x: x.double()),
    "layer_norm": (
        (A, (4,), (4,)),
        lambda lib, x, w, b: lib.nn.functional.layer_norm(x, (4,), w, b),
    ),
    "embedding": ((A,), lambda lib, w: lib.nn.functional.embedding(lib.tensor([[0, 1]]), w)),
    "conv2d": (
        ((1, 2, 4, 4), (3, 2, 3, 3), (3,)),
        lambda lib, x, w, b: lib.nn.functional.conv2d(x, w, b, padding=1),
    ),
    "max_pool2d": (((1, 1, 4, 4),), lambda lib, x: lib.nn.functional.max_pool2d(x, 2)),
    "avg_pool2d": (((1, 1, 4, 4),), lambda lib, x: lib.nn.functional.avg_pool2d(x, 2)),
    "dropout": ((A,), lambda lib, x: lib.nn.functional.dropout(x, 0.5)),
    "pad": ((A,), lambda lib, x: lib.nn.functional.pad(x, (1, 1))),
    "smooth_l1": ((A,), lambda lib, x: lib.nn.functional.smooth_l1_loss(x, lib.ones(3, 4))),
    "cross_entropy": ((A,), lambda lib, x: lib.nn.functional.cross_entropy(x, lib.tensor([0, 1, 2]))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_modes_are_told_of_the_operators_of_pytorch(name):
    shapes, program = PROGRAMS[name]

    def run(lib):
        lib.manual_seed(0)
        inputs = [lib.full(shape, 0.5).requires_grad_() for shape in shapes]
        with logging_mode(lib) as mode:
            program(lib, *inputs).sum().backward()
        return mode.lines, [each.grad.tolist() for each in inputs]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines, gradients = run(weft)
    reference, expected = run(torch)
    assert lines == reference
    if name != "dropout":
        for mine, other in zip(gradients, expected, strict=True):
            torch.testing.assert_close(torch.tensor(mine), torch.tensor(other))


def test_a_step_of_training():
    def run(lib):
        lib.manual_seed(0)
        net = lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.ReLU(), lib.nn.Linear(8, 2))
        x, y = lib.ones(3, 4), lib.tensor([0, 1, 0])
        with logging_mode(lib) as mode:
            for _ in range(2):  # the second pass adds to the gradients
                lib.nn.functional.cross_entropy(net(x), y).backward()
        return mode.lines

    assert run(weft) == run(torch)


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_steps_of_optimizers_are_told_as_operators_and_give_the_same_values(kind):
    def run(mode):
        x = weft.full((3,), 0.5).requires_grad_()
        x.grad = weft.ones(3)
        optimizer = getattr(weft.optim, kind)([x], lr=0.1)
        with mode:
            optimizer.step()
        return x.tolist()

    mode = logging_mode(weft)
    assert run(mode) == run(weft.no_grad())
    assert "aten.copy_.default" in [line[0] for line in mode.lines]


CALLS = """
x / 2 - y; -x; x ** y; x > 0; x == y; x.t(); x.view(-1); x.max(); x.max(1); x.clone(); x.t().contiguous(); x.to(torch.float64)
x.add_(1); x.zero_(); torch.zeros(3); torch.ones_like(x); torch.arange(3); torch.randn(3); torch.tensor([1.0]); x.float()
x.argmax(1); x.sort(); x.any(); x.norm(); torch.add(x, y, alpha=2); torch.add(x, x, out=z); x.detach()
x[0].copy_(y); x.split(1); torch.full((2,), 3.0); x.flatten(); torch.nn.functional.mse_loss(x, x); x.topk(2); x.isnan()
""".replace("\n", "; ")


@pytest.mark.parametrize("call", [each.strip() for each in CALLS.split(";") if each.strip()])
def test_calls_outside_of_autograd(call):
    def run(lib):
        scope = {"torch": lib, "x": lib.full((3, 4), 0.5), "y": lib.ones(4), "z": lib.zeros(3, 4)}
        with logging_mode(lib) as mode:
            eval(call, scope)
        return mode.lines

    assert run(weft) == run(torch)


@LIBRARIES
def test_modes_nest_and_change_results(lib):
    module = importlib.import_module(f"{lib.__name__}.utils._python_dispatch")
    heard = []

    class Twice(module.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            heard.append(("twice", str(func)))
            return func(*args, **kwargs or {}) * 2

    class Hears(module.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            heard.append(("hears", str(func)))
            return func(*args, **kwargs or {})

    x = lib.ones(2)
    with Hears(), Twice() as inner:
        assert module._get_current_dispatch_mode() is inner
        y = x.exp()
    assert heard == [
        ("twice", "aten.exp.default"), ("hears", "aten.exp.default"), ("hears", "aten.mul.Tensor"),
    ]  # fmt: skip
    assert module._get_current_dispatch_mode() is None
    lib.testing.assert_close(y, lib.ones(2).exp() * 2)


def test_outside_of_the_mode_nothing_is_told():
    with logging_mode(weft) as mode:
        pass
    weft.ones(2) + 1
    assert mode.lines == []


def test_outside_of_the_mode_backward_is_the_usual_pass(monkeypatch):
    """The machine code of `autograd/native_engine.py` runs no other class of passes."""
    with logging_mode(weft):
        pass
    kinds = []
    monkeypatch.setattr(engine, "watchers", [])  # other tests leave a watcher of wrappers behind
    monkeypatch.setattr(engine, "_run", lambda now, roots: kinds.append(type(now)))
    weft.ones(2, requires_grad=True).sum().backward()
    assert kinds == [engine._Pass]


@pytest.mark.parametrize("lib", [torch, weft], ids=["torch", "weft"])
def test_hooks_on_saved_tensors_under_a_mode(lib):
    """They get the inputs before the operator runs, and its results afterwards."""
    events = []
    x = lib.tensor([0.5, 1.0], requires_grad=True)
    with logging_mode(lib) as mode:
        with lib.autograd.graph.saved_tensors_hooks(
            lambda t: (events.append(("pack", len(mode.lines), t.tolist())), t)[1],
            lambda t: (events.append(("unpack", t.tolist())), t)[1],
        ):
            y = x.sin() * x
            z = lib.cat([y, y]).exp()
        z.sum().backward()
    s, e = x.detach(), z.detach()
    first = [event for event in events if event[0] == "pack"]
    assert first[0][1] == 0 and first[0][2] == s.tolist()
    assert first[-1][2] == e.tolist()
    assert len([event for event in events if event[0] == "unpack"]) == len(first)
    value = s.clone().requires_grad_()
    (value.sin() * value).exp().mul(2).sum().backward()
    lib.testing.assert_close(x.grad, value.grad)


@pytest.mark.parametrize("lib", [torch, weft], ids=["torch", "weft"])
def test_backward_outside_of_the_mode_in_which_a_graph_was_recorded(lib):
    x = lib.tensor([0.5, 1.0], requires_grad=True)
    with logging_mode(lib):
        y = x.exp().sum()
    y.backward()
    lib.testing.assert_close(x.grad, x.detach().exp())


@LIBRARIES
@pytest.mark.parametrize("inside", [True, False])
def test_a_dense_gradient_after_a_sparse_one(lib, inside):
    weight = lib.ones(3, 2, requires_grad=True)
    lib.nn.functional.embedding(lib.tensor([1, 2]), weight, sparse=True).sum().backward()
    loss = (weight * 2).sum()
    with logging_mode(lib) if inside else contextlib.nullcontext():
        loss.backward()
    assert weight.grad.layout is lib.strided and weight.grad.tolist() == [[2, 2], [3, 3], [3, 3]]
