"""Backward passes in machine code: the same gradients, hooks and errors as those of the Python loops, and exact counts."""

import gc
import random
import sys
import threading

import pytest

import weft as torch
from weft.autograd import engine
from weft.autograd.graph import Node
from weft.engine.memory import FENCE
from weft.engine.objects import layout_is_known
from weft.families import native_calls

pytestmark = pytest.mark.skipif(bool(FENCE) or not layout_is_known(), reason="there is no machine code here")


@pytest.fixture(scope="module", autouse=True)
def installed():
    native_calls.install()


class Halves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a)
        return a * 0.5, b * 0.5

    @staticmethod
    def backward(ctx, first, second):
        (a,) = ctx.saved_tensors
        return first * a, None if second is None else second * 2


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("in the middle of a pass")


STEPS = {
    "add": lambda a, b, told: a + b,
    "mul": lambda a, b, told: a * b,
    "twice": lambda a, b, told: a + a,
    "broadcast": lambda a, b, told: a * b[0] + b.sum(),
    "wider": lambda a, b, told: (a.double() * b).float(),
    "view": lambda a, b, told: a.t().t() + b[:, :1],
    "split": lambda a, b, told: torch.cat([x * k for k, x in enumerate(a.split(1), 1)]),
    "softmax": lambda a, b, told: torch.softmax(a, 1) * b,
    "linear": lambda a, b, told: torch.nn.functional.linear(a, b, b[0]),
    "function": lambda a, b, told: sum(Halves.apply(a, b)),
    "half": lambda a, b, told: Halves.apply(a, b)[0],
    "in place": lambda a, b, told: (a * 1).mul_(b.detach()).add_(b),
    "in a view": lambda a, b, told: write(a * 1, b),
    "hook": lambda a, b, told: hooked(a * 1, told),
    "retain": lambda a, b, told: retained(a * b),
    "node hook": lambda a, b, told: with_node_hook(a * b, told),
    "complex": lambda a, b, told: torch.complex(a, b).abs(),
    "detached": lambda a, b, told: a.detach() * b,
    "fails": lambda a, b, told: Fails.apply(a),
}


def write(a, b):
    a[0] = b[1]
    return a


def hooked(a, told):
    a.register_hook(lambda grad: told.append(grad.tolist()))
    return a


def retained(a):
    a.retain_grad()
    return a


def with_node_hook(a, told):
    a.grad_fn.register_hook(lambda inputs, outputs: told.append([x is None for x in inputs]))
    return a


def history(seed):
    """What a random program with some backward passes does and computes."""
    choose, told = random.Random(seed), []
    generator = torch.Generator().manual_seed(seed)
    leaves = [torch.rand(2, 2, generator=generator).requires_grad_() for _ in range(3)]
    leaves[2].register_hook(lambda grad: told.append(grad.tolist()))
    leaves[1].register_post_accumulate_grad_hook(lambda leaf: told.append(leaf.grad.tolist()))
    for _ in range(3):
        values = list(leaves)
        for _ in range(choose.randrange(1, 9)):
            name = choose.choice(list(STEPS)) if choose.random() < 0.95 else "fails"
            if name != "fails" or choose.random() < 0.3:
                values.append(STEPS[name](*choose.choices(values, k=2), told))
        total, again = values[-1].sum(), choose.random() < 0.3
        try:
            if choose.random() < 0.4:
                wanted = choose.sample([x for x in values if x.requires_grad], choose.randrange(1, 3))
                found = torch.autograd.grad(total, wanted, retain_graph=True, allow_unused=True)
                told += [None if each is None else (each.tolist(), each.stride()) for each in found]
            total.backward(retain_graph=again)
            if again:
                total.backward()
        except (ValueError, RuntimeError) as error:
            told.append(repr(error))
        told += [(x.grad.tolist(), x.grad.stride()) if x.grad is not None else None for x in leaves]
        if choose.random() < 0.5:
            leaves[0].grad = None
    return told


@pytest.mark.parametrize("seed", range(80))
def test_random_programs_give_the_same_both_ways(seed, monkeypatch):
    native = history(seed)
    monkeypatch.setattr(engine.native, "run_nodes", None)
    monkeypatch.setattr(engine.native, "explore", None)
    assert history(seed) == native


RUNS_NODES = """
import weft as torch
from weft.autograd import engine
from weft.families import native_calls

native_calls.install()
left, python = [], engine._Pass._run_nodes
engine._Pass._run_nodes = lambda self, nodes, usual: left.append(nodes) or python(self, nodes, usual)
x = torch.ones(3, requires_grad=True)
for _ in range(2):
    left.clear()
    ((x * x).exp() * 2.0).sum().backward()
assert not left
(x * 2.0).sum().backward(create_graph=True)
assert left
"""


def test_machine_code_runs_the_nodes(run):
    """In a process of its own, because classes with `__torch_dispatch__`, which other tests define, watch all calls."""
    found = run("-c", RUNS_NODES)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("answer", [(), [None], 5, iter(())])
def test_a_rule_with_a_wrong_answer(answer):
    x = torch.ones(3, requires_grad=True)
    y = x * 2.0
    node = y.grad_fn
    spec = type(node._spec).of(node._spec.op, node._spec.inputs, node._spec.static, node._spec.result)
    spec.pull = spec.quick_pull = lambda node, ct, edges: answer
    node._spec = spec
    if answer == [None]:
        y.sum().backward()
        assert x.grad is None
    else:
        with pytest.raises((IndexError, TypeError)):
            y.sum().backward()


def test_the_newest_node_runs_first():
    x = torch.ones(2, requires_grad=True)
    a = x * 2.0
    b, c = a.exp(), a.sin()
    total = torch.stack([c + a, b + c, a * b]).sum()
    _, seen, nodes = engine._explore((total.grad_fn,))
    assert set(seen) == set(nodes) and all(isinstance(each, Node) for each in nodes)
    orders = [each._order for each in nodes]
    assert orders == sorted(orders, reverse=True)


def test_counts_stay_exact():
    x, b = torch.rand(2, 2, requires_grad=True), torch.rand(2, requires_grad=True)
    y = torch.rand(2, 2)

    def step(turn):
        x.grad = None
        a = (x * y + b).tanh()
        (a.split(1)[0] * a + x + x).sum().backward(retain_graph=turn % 3 == 0)
        if turn % 10 == 0:
            with pytest.raises(ValueError):
                (Fails.apply(x * y) * b).sum().backward()

    def state():
        gc.collect()
        held = [x, b, y, x._storage, x._autograd, x.spec, None]
        return [sys.getrefcount(each) for each in held], len(gc.get_objects()), torch.cpu.memory_stats()

    for turn in range(100):
        step(turn)
    state()
    before = state()
    for turn in range(2000):
        step(turn)
    after = state()
    assert all(abs(a - b) < 20 for a, b in zip(before[0], after[0], strict=True)), (before[0], after[0])
    assert abs(after[1] - before[1]) < 20
    assert before[2]["allocated_bytes.all.current"] == after[2]["allocated_bytes.all.current"]


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("start", [None, 1.0])
def test_threads_add_to_a_gradient_one_after_the_other(native, start, monkeypatch):
    if not native:
        monkeypatch.setattr(engine.native, "run_nodes", None)
    x = torch.ones(3, requires_grad=True)
    x.grad = None if start is None else torch.full((3,), start)
    total = (x * 2.0).sum()
    threads = [threading.Thread(target=total.backward, kwargs={"retain_graph": True}) for _ in range(3)]
    with engine.accumulating:
        for each in threads:
            each.start()
        for each in threads:
            each.join(0.05)
        assert all(each.is_alive() for each in threads)
        assert x.grad is None if start is None else x.grad.eq(start).all()
    for each in threads:
        each.join()
    assert x.grad.eq(6.0 + (start or 0.0)).all()


@pytest.mark.parametrize("start", [None, 1.0])
def test_threads_add_to_a_retained_gradient_one_after_the_other(start):
    x = torch.ones(3, requires_grad=True)
    y = x * 2.0
    y.retain_grad()
    y.grad = None if start is None else torch.full((3,), start)
    total = (y * 3.0).sum()
    threads = [threading.Thread(target=total.backward, kwargs={"retain_graph": True}) for _ in range(3)]
    with engine.accumulating:
        for each in threads:
            each.start()
        for each in threads:
            each.join(0.05)
        assert y.grad is None if start is None else y.grad.eq(start).all()
    for each in threads:
        each.join()
    assert y.grad.eq(9.0 + (start or 0.0)).all()


def test_an_error_in_a_sum_of_gradients_leaves_no_lock():
    x = torch.ones(3, requires_grad=True)
    total = (x * 2.0).sum()
    x.data = torch.ones(4)
    x.grad = torch.ones(4)
    with pytest.raises(RuntimeError):
        total.backward()
    taken = []

    def take():
        taken.append(engine.accumulating.acquire(timeout=5))
        engine.accumulating.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    assert taken == [True]


def test_threads_share_a_graph():
    x = torch.ones(4, requires_grad=True)
    total = (x * 2.0).exp().sum() + x.sum()
    expected = torch.autograd.grad(total, x, retain_graph=True)[0]
    errors = []

    def work():
        try:
            for _ in range(200):
                assert torch.equal(torch.autograd.grad(total, x, retain_graph=True)[0], expected)
                own = torch.ones(4, requires_grad=True)
                (own * own).sum().backward()
                assert own.grad.tolist() == [2.0] * 4
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors
