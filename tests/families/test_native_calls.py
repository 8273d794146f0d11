"""Calls in machine code give what the Python functions give, and leave every count of references as it was."""

import os
import subprocess
import sys

import pytest

import weft as torch
from weft.engine.memory import FENCE
from weft.engine.objects import layout_is_known
from weft.families import native_calls

pytestmark = pytest.mark.skipif(
    bool(FENCE) or not layout_is_known() or os.environ.get("WEFT_CALLS") == "python",
    reason="there is no machine code here",
)


class Asking(torch.Tensor):
    """A class with the default `__torch_function__`, defined before the machine code is installed."""


@pytest.fixture(scope="module", autouse=True)
def installed():
    native_calls.install()


def run(program: str, calls: str, *arguments: str) -> str:
    """What a program prints in a process of its own."""
    environment = {**os.environ, "WEFT_CALLS": calls}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


COUNT = """
import gc, sys
import weft as torch
from weft.engine import call_tables, tiers
a, b = torch.rand(16) + 0.5, torch.rand(16) + 0.5
x = torch.rand(16, requires_grad=True)
spec, storage, big = a.spec, a._storage, 10**17 + 3
large, large_x = torch.rand(35000), torch.rand(35000, requires_grad=True)  # workers share the loops
def calls():
    a + b; a * 2.0; 3 - a; a / 7; -a; abs(a); torch.exp(a); a.relu(); torch.maximum(a, b); x + b; 2.0 * x; x.exp(); 1 / a
    t = x * b; t.add_(b); t.mul_(2.0); t.neg_(); t += b; t.lerp_(b, 0.5); t.addcmul_(a, b)
    a + big
    large + large; large * 2.0; -large; large.clamp(0.0, 1.0); large + large_x
    for wrong in (None, "text", torch.ones(3)):
        try:
            a + wrong
        except (TypeError, RuntimeError):
            pass
held = [a, b, large, large_x, large.spec, large._storage, spec, storage, storage.bin, big, None, 0, False, torch.Tensor, type(storage), torch.cpu, call_tables.Table.tables[0].bound]
def state():
    for _ in range(6):  # each collection ceases to track tuples of what the one before has ceased to track
        gc.collect()
    counts = [sys.getrefcount(each) for each in held]
    return counts, len(gc.get_objects()), torch.cpu.memory_stats()["allocated_bytes.all.current"], len(storage.bin)
for _ in range(3000):
    calls()
tiers.finish()  # the thread that compiles has objects of its own
before = state()
rounds = int(sys.argv[1])
for _ in range(rounds):
    calls()
after = state()
for one, other in zip(before[0], after[0]):
    assert abs(one - other) < rounds // 100, (before[0], after[0])
assert abs(before[1] - after[1]) < 20, (before[1], after[1])
assert before[2:] == after[2:], (before[2:], after[2:])
"""


def test_counts_of_references_stay_exact():
    run(COUNT, "native", "5000")


STORM = """
import gc, signal, sys
import weft as torch
from weft.engine import tiers

delivered = caught = 0
def handler(*_):
    global delivered
    delivered += 1
    raise KeyboardInterrupt
unraisable = []
sys.unraisablehook = unraisable.append

def state():
    tiers.finish()  # the thread that compiles has objects of its own
    gc.collect()
    return torch.cpu.memory_stats()["allocated_bytes.all.current"], len(gc.get_objects())

a, b, o = torch.rand(16), torch.rand(16), torch.empty(16)
x = torch.rand(16, requires_grad=True)
def calls():
    (a + b) * 2.0; a < b; x * b + x.exp(); torch.add(a, b, out=o); torch.where(a > b, a, b); o.add_(1.0)
for _ in range(10):
    calls()
before = state()
def work(turn):
    signal.setitimer(signal.ITIMER_REAL, 0.0003 + turn % 17 * 1e-5)
    while delivered == turn:
        calls()

signal.signal(signal.SIGALRM, handler)
for turn in range(300):
    try:
        work(turn)
    except KeyboardInterrupt:
        caught += 1
assert not unraisable, unraisable
assert (delivered, caught) == (300, 300), (delivered, caught)
after = state()
assert after[0] == before[0] and after[1] < before[1] + 20, (before, after)
"""


def test_signals_at_any_time_lose_nothing():
    run(STORM, "native")


THREADS = """
import os, random, threading, time
import weft as torch
from weft.core.dtype import when_plans_expire

errors, end = [], time.monotonic() + 1.5
def work(seed):
    choose = random.Random(seed)
    try:
        while time.monotonic() < end:
            n = choose.choice((choose.randrange(1, 200), 70000))  # workers share loops of 70000 elements
            a, x = torch.ones(n), torch.ones(n, requires_grad=True)
            for _ in range(3):
                b = torch.where(a > 0, 2.0 * (a + a), a)
                b += 1
                y = x * b
            y.sum().backward()
            assert b.sum().item() == 5 * n and x.grad.sum().item() == 5 * n
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for each in threads:
    each.start()
while time.monotonic() < end:
    for forget in when_plans_expire:
        forget()
    if random.random() < 0.05:
        child = os.fork()
        if not child:
            a = torch.ones(5)
            os._exit((a + a).sum().item() != 10)
        assert os.waitpid(child, 0)[1] == 0
    time.sleep(0.001)
for each in threads:
    each.join()
assert not errors, errors
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("calls", ["", "native"])
def test_threads_and_forks_while_records_are_forgotten(calls):
    run(THREADS, calls)


def test_machine_code_appears_after_some_storages():
    program = (
        "import threading, weft as torch\n"
        "from weft.families import native_calls as n\n"
        "from weft.engine.objects import slot\n"
        "before = slot(torch.Tensor, 'nb_add')\n"
        "a = torch.ones(3)\n"
        "for _ in range(2 * n.ENOUGH): a + a\n"
        "for t in threading.enumerate():\n"
        "    if t is not threading.current_thread(): t.join()\n"
        "print((a + a).tolist(), slot(torch.Tensor, 'nb_add') != before)"
    )
    assert run(program, "") == "[2.0, 2.0, 2.0] True\n"
    assert run(program, "python") == "[2.0, 2.0, 2.0] False\n"


def test_a_wrong_choice_is_refused():
    with pytest.raises(AssertionError, match="WEFT_CALLS must be"):
        run("import weft", "fast")


@pytest.mark.parametrize("size", [4, 100_000])
def test_a_call_of_machine_code_is_taken(size):
    a = torch.ones(size)
    for _ in range(2):  # the second call makes the record
        a + a
    calls: list[str] = []
    sys.setprofile(lambda frame, event, arg: calls.append(frame.f_code.co_name) if event == "call" else None)
    a + a
    sys.setprofile(None)
    assert "function" not in calls


def test_other_classes_are_asked_in_pythons_order():
    heard = []

    class Right:
        def __radd__(self, other):
            heard.append("radd")
            return 1

        def __add__(self, other):
            heard.append("add")
            return NotImplemented

    a = torch.ones(2)
    assert a + Right() == 1
    with pytest.raises(TypeError):
        Right() + a
    assert heard == ["radd", "add"]
    with pytest.raises(TypeError):
        a + None
    with pytest.raises(TypeError):
        [1] + a

    class Plain(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    class Own(Plain):
        def __add__(self, other):
            return "own"

        def __radd__(self, other):
            return "own reflected"

    p, o = a.as_subclass(Plain), a.as_subclass(Own)
    assert (a + p).tolist() == (p + a).tolist() == (p + p).tolist() == [2, 2]
    assert (o + a, a + o, p + o) == ("own", "own reflected", "own reflected")
    assert (o - a).tolist() == [0, 0]
    asking = a.as_subclass(Asking)
    assert {type(each) for each in (1 - asking, asking + a, a - asking, 2 + asking, -asking)} == {Asking}


def test_a_new_operator_takes_effect(monkeypatch):
    a = torch.ones(2)
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "__sub__", lambda self, other: "mine")
        assert a - a == "mine"
    assert (a - a).tolist() == [0, 0]


def test_functions_keep_identity_and_signature():
    import inspect
    import pickle

    assert pickle.loads(pickle.dumps(torch.exp)) is torch.exp
    assert list(inspect.signature(torch.mul).parameters) == ["input", "other", "out"]
    with pytest.raises(TypeError):
        torch.exp()
    assert torch.exp(input=torch.zeros(1)).item() == 1
    assert torch.mul(torch.ones(1), other=torch.ones(1), out=torch.zeros(1)).item() == 1


IN_A_MODE = """
import inspect, types
import weft as torch
from weft.core.registry import FUNCTIONS
from weft.families import native_calls
functions = {name: each for name, each in FUNCTIONS.items() if inspect.isfunction(each)}
before = {name: inspect.signature(each) for name, each in functions.items()}
with torch.overrides.BaseTorchFunctionMode():
    native_calls.install()
for name, each in functions.items():
    assert inspect.signature(each) == before[name], name
for each in (torch.exp, torch.mul, torch.where, torch.sum):
    assert any(type(value) is types.BuiltinFunctionType for value in each.__code__.co_consts), each
assert torch.exp(torch.zeros(2)).tolist() == [1.0, 1.0] and torch.zeros(2, 2).sum(0).tolist() == [0.0, 0.0]
"""


def test_machine_code_that_appears_while_a_mode_is_on():
    run(IN_A_MODE, "")


def test_the_default_dtype_decides_anew():
    i = torch.arange(3)
    for _ in range(2):
        assert (i / i).dtype is torch.float32 and (i * 1.5).dtype is torch.float32
        torch.set_default_dtype(torch.float64)
        try:
            assert (i / i).dtype is torch.float64 and (i * 1.5).dtype is torch.float64
        finally:
            torch.set_default_dtype(torch.float32)


PROGRAM = """
import random, sys
import weft as torch

UNARY = ["-x", "abs(x)", "x.exp()", "torch.relu(x)", "x.sigmoid()", "torch.sqrt(abs(x))", "x.square()", "x.neg()", "~(x > 0)"]
BINARY = ["+", "-", "*", "/", "<", "<=", "==", "!=", ">", ">=", "&", "|", "^"]
CALLS = ["torch.where({0} > 0, {0}, {1})", "torch.lerp({0}, {1}, 0.25)", "torch.addcmul({0}, {0}, {1}, value=2)",
         "torch.clamp({0}, -1, {1})", "torch.clamp({0}, -0.5, 1)", "{0}.clamp(0, 10**9)", "torch.where({1}, {0}, 1)", "torch.div({}, {})", "torch.add({}, {}, alpha=0.5)", "torch.pow({}, {})",
         "torch.nn.functional.gelu({0})", "torch.nn.functional.leaky_relu({0})", "torch.remainder({}, {})", "torch.add({}, {})", "torch.maximum({}, {})", "torch.mul({}, {})", "torch.sub({}, {}, alpha=2)", "torch.atan2({}, {})",
         "{}.add({}, alpha=1)", "torch.eq({}, {})", "torch.add({}, other={})", "torch.logical_and({}, {})"]
INPLACE = ["{0} += {1}", "{0} -= {1}", "{0} *= {1}", "{0} /= {1}", "{0} &= {1}", "{0}.add_({1})", "{0}.mul_({1})", "{0}.neg_()",
           "{0}.sub_({1}, alpha=3)", "{0}.exp_()", "{0}.copy_({1})", "{0}.lerp_({1}, 0.5)", "{0}.addcmul_({1}, {0})", "{0}.clamp_(-0.5, 0.5)", "{0}.div_({1})"]
NUMBERS = ["2", "0.5", "-3", "True", "1j", "10**30", "2**63", "float('inf')", "None", "'text'"]
DTYPES = ["float32", "float64", "int64", "int32", "uint8", "bool", "bfloat16", "complex64"]

def tensor(choose):
    shape = choose.choice([(), (3,), (2, 3), (3, 2), (0,), (1,), (2, 1)])
    dtype = getattr(torch, choose.choice(DTYPES if choose.random() < 0.5 else ["float32"]))
    generator = torch.Generator().manual_seed(choose.randrange(1000))
    x = (torch.rand(shape, generator=generator) * 4 - 1).to(dtype)
    how = choose.random()
    if how < 0.2 and dtype.is_floating_point:
        x.requires_grad_(True)
    elif how < 0.3 and dtype.is_floating_point:
        x = torch.nn.Parameter(x)
    elif how < 0.4 and len(shape) == 2:
        x = x.t()
    elif how < 0.45:
        x = x.as_subclass(Sub)
    return x

class Sub(torch.Tensor):
    pass

def statement(choose, names):
    a, b = choose.choice(names), choose.choice([*names, *names, choose.choice(NUMBERS)])
    kind = choose.randrange(7)
    if kind == 0:
        return "r = " + choose.choice(UNARY).replace("x", a).replace("e" + a + "p", "exp").replace("ma" + a, "max")
    if kind <= 2:
        left, right = (a, b) if choose.random() < 0.7 else (b, a)
        return f"r = {left} {choose.choice(BINARY)} {right}"
    if kind == 3:
        return "r = " + choose.choice(CALLS).format(a, b)
    if kind == 4:
        return choose.choice(INPLACE).format(a, b) + f"; r = {a}"
    if kind == 5:
        return f"with torch.no_grad(): " + choose.choice(INPLACE).format(a, b)
    return choose.choice([f"torch.add({a}, {b}, out={a})", f"torch.mul({b}, {a}, out={choose.choice(names)})", f"torch.exp({b}, out={a})", f"r = {a}[:1]", f"r = {a}.detach()", f"r = {a} ** {b}", f"r = {a} ** {choose.choice(['2', '0.5', '-1', '3.0', '0', '2.5', 'True'])}",
                          f"({a} * 1).sum().backward()", f"{a}.retain_grad()", f"r = {a} * 1; r.retain_grad(); r += {b}", f"{a}.register_hook(lambda g: g * 2)",
                          f"r = {a}.view(-1); {a} *= 2; r = r * 1", f"r = {a} * 1; s = r[:1]; r.add_({b})", f"r = torch.autograd.grad(({a} * {b}).sum(), {a})[0]", f"with torch.inference_mode(): r = {a} + {b}"])

def described(value):
    if not isinstance(value, torch.Tensor):
        return repr(value)
    parts = type(value).__name__, value.dtype, tuple(value.shape), value.stride(), value.requires_grad, type(value.grad_fn).__name__
    return repr((parts, value.detach().tolist(), None if value.is_inference() else value._version))

def program(seed):
    choose = random.Random(seed)
    known = {"torch": torch}
    names = [f"v{k}" for k in range(5)]
    for each in names:
        known[each] = tensor(choose)
    for _ in range(25):
        text = statement(choose, names)
        for turn in range(2):  # the second time, the table knows the plan
            known["r"] = None
            try:
                exec(text, known)
                print(text, described(known["r"]))
            except Exception as error:
                print(text, type(error).__name__, error)
        if isinstance(known["r"], torch.Tensor):
            known[choose.choice(names)] = known["r"]
    for each in names:
        grad = known[each].grad if isinstance(known[each], torch.Tensor) and known[each].is_leaf else None
        print(each, described(known[each]), described(grad))

import warnings
warnings.simplefilter("ignore")
first = int(sys.argv[1])
for seed in range(first, first + int(sys.argv[2])):
    print("seed", seed)
    program(seed)
"""


@pytest.mark.parametrize("first", [0])
def test_random_programs_give_the_same_both_ways(first):
    python, native = (run(PROGRAM, calls, str(first), "15").splitlines() for calls in ("python", "native"))
    for one, other in zip(python, native, strict=True):
        assert one == other


FINALIZERS = """
import gc
import weft as torch
from weft.families import native_calls

native_calls.install()
a, b, big = torch.zeros(0), torch.ones(100), torch.ones(100)
views, numbers = torch.ones(8), torch.ones(8)
for _ in range(20):
    big + b, torch.lerp(big, b, 0.5), big * 2.0, views.split(1), numbers.tolist(), views.unbind()
class Cycle:
    # Collected at any allocation of an object; it takes the memory of tensors that a call may be using.
    def __del__(self):
        big.data, views.data, numbers.data = torch.ones(100), torch.ones(8), torch.ones(8)
        if chosen:
            big.data = torch.ones(1)
chosen = False
gc.set_threshold(5)
for turn in range(3000):
    chosen = turn % 50 == 0
    cycle = Cycle()
    cycle.self = cycle
    del cycle
    for call in (lambda: big + b, lambda: torch.lerp(big, b, 0.5), lambda: big * 2.0 * b, lambda: torch.stack(views.split(1)).sum() + b,
                 lambda: sum(numbers.tolist()) + b, lambda: sum(views.unbind()) + b):
        found = call()
        assert found.shape == (100,) and set(found.tolist()) <= {1.0, 2.0, 9.0}, found
"""


def test_finalizers_that_change_operands():
    run(FINALIZERS, "native")


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_numbers_alone(name):
    """The results are kept: read one by one, the second one had the memory, and so the value, of the first."""
    expected = {"add": 4.5, "sub": -0.5, "mul": 5.0, "div": pytest.approx(0.8)}[name]
    for _ in range(3):
        results = [getattr(torch, name)(2, 2.5) for _ in range(4)]
        assert [each.item() for each in results] == [expected] * 4
