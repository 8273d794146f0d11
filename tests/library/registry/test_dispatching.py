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


def _set_items(lib, x):
    y = x * 2
    y[0, 0] = 5.0
    y[1:] = 3.0
    y[y > 4] = 1.0
    y[...] = y * 2
    return y


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
    "batch_norm": (
        ((2, 3, 4), (3,), (3,)),
        lambda lib, x, w, b: lib.nn.functional.batch_norm(x, None, None, w, b, training=True),
    ),
    "batch_norm in evaluation": (
        ((2, 3, 4), (3,)),
        lambda lib, x, w: lib.nn.functional.batch_norm(x, lib.zeros(3), lib.ones(3), w),
    ),
    "group_norm": (((2, 4, 3), (4,), (4,)), lambda lib, x, w, b: lib.nn.functional.group_norm(x, 2, w, b)),
    "instance_norm": (((2, 3, 4),), lambda lib, x: lib.nn.functional.instance_norm(x)),
    "nearest": (((1, 2, 3, 4),), lambda lib, x: lib.nn.functional.interpolate(x, scale_factor=2)),
    "bilinear": (((1, 2, 3, 4),), lambda lib, x: lib.nn.functional.interpolate(x, (5, 7), mode="bilinear")),
    "bicubic": (
        ((1, 2, 3, 4),),
        lambda lib, x: lib.nn.functional.interpolate(x, (5, 7), mode="bicubic", align_corners=True),
    ),
    "linear of sequences": (
        ((1, 2, 3),),
        lambda lib, x: lib.nn.functional.interpolate(x, scale_factor=2, mode="linear"),
    ),
    "adaptive_avg_pool2d": (((1, 2, 4, 4),), lambda lib, x: lib.nn.functional.adaptive_avg_pool2d(x, 2)),
    "global average": (((1, 2, 4, 4),), lambda lib, x: lib.nn.functional.adaptive_avg_pool2d(x, 1)),
    "avg_pool1d": (((1, 2, 4),), lambda lib, x: lib.nn.functional.avg_pool1d(x, 2)),
    "conv_transpose2d": (
        ((1, 2, 3, 3), (2, 3, 2, 2), (3,)),
        lambda lib, x, w, b: lib.nn.functional.conv_transpose2d(x, w, b, stride=2),
    ),
    "unfold": (((1, 2, 3, 3),), lambda lib, x: lib.nn.functional.unfold(x, 2)),
    "logsigmoid": ((A,), lambda lib, x: lib.nn.functional.logsigmoid(x)),
    "prelu": ((A, (4,)), lambda lib, x, w: lib.nn.functional.prelu(x, w)),
    "softsign": ((A,), lambda lib, x: lib.nn.functional.softsign(x)),
    "float_power": ((A,), lambda lib, x: x.float_power(2)),
    "movedim": (((2, 3, 4),), lambda lib, x: x.movedim(0, -1)),
    "unflatten": ((A,), lambda lib, x: x.unflatten(1, (2, 2))),
    "new tensors": ((A,), lambda lib, x: x + x.new_ones(4) + x.new_full((1,), 2) + x.new_zeros(3, 1)),
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


def test_modes_are_told_of_items_that_are_set():
    found = []
    for lib in (weft, torch):
        x = lib.arange(12.0).reshape(3, 4).requires_grad_()
        with logging_mode(lib) as mode:
            with lib.no_grad():
                _set_items(lib, x)
            lines = list(mode.lines)
            _set_items(lib, x).sum().backward()
        found.append((lines, x.grad.tolist()))
    assert found[0] == found[1]


ATTENTION = {
    "plain": lambda lib, q, k: lib.nn.functional.scaled_dot_product_attention(q, k, k),
    "causal": lambda lib, q, k: lib.nn.functional.scaled_dot_product_attention(
        q, q, q, is_causal=True, scale=0.3
    ),
    "masked": lambda lib, q, k: lib.nn.functional.scaled_dot_product_attention(
        q, k, k, lib.ones(3, 5).tril() > 0
    ),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_modes_are_told_of_attention(name):
    found = []
    for lib in (weft, torch):
        q, k = (lib.arange(float(n)).mul(0.1).sin().reshape(1, 2, -1, 4).requires_grad_() for n in (24, 40))
        with logging_mode(lib) as mode:
            ATTENTION[name](lib, q, k).pow(2).sum().backward()
        names = [line[0] for line in mode.lines if "attention" in line[0]]
        found.append((names, [torch.tensor(each.grad.tolist()) for each in (q, k) if each.grad is not None]))
    assert found[0][0] == found[1][0] and len(found[0][0]) == 2
    torch.testing.assert_close(found[0][1], found[1][1])


# Derivatives without formulas of their own, which are the rules of weft's elementwise ops.
BY_ROWS = [
    "acos",
    "asinh",
    "atan",
    "tan",
    "erf",
    "erfinv",
    "log2",
    "exp2",
    "digamma",
    "sinc",
    "cosh",
    "lgamma",
]


@pytest.mark.parametrize("name", BY_ROWS)
def test_rules_of_elementwise_ops_are_told(name):
    found = []
    for lib in (weft, torch):
        x = lib.tensor([0.2, 0.5, 0.7], dtype=lib.float64, requires_grad=True)
        with logging_mode(lib) as mode, warnings.catch_warnings():
            warnings.simplefilter("error")
            getattr(lib, name)(x).sum().backward()
        found.append(torch.tensor(x.grad.tolist()))
        assert len([line for line in mode.lines if "detach" not in line[0]]) >= 4
    torch.testing.assert_close(*found)


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
