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
from weft.families import native_calls
a, b = torch.rand(16) + 0.5, torch.rand(16) + 0.5
x = torch.rand(16, requires_grad=True)
spec, storage, big = a.spec, a._storage, 10**17 + 3
def calls():
    a + b; a * 2.0; 3 - a; a / 7; -a; abs(a); torch.exp(a); a.relu(); torch.maximum(a, b); x + b; 2.0 * x; x.exp(); 1 / a
    a + big
    for wrong in (None, "text", torch.ones(3)):
        try:
            a + wrong
        except (TypeError, RuntimeError):
            pass
held = [a, b, spec, storage, storage.bin, big, None, 0, False, torch.Tensor, type(storage), torch.cpu, native_calls._tables[0].bound]
def state():
    gc.collect()
    counts = [sys.getrefcount(each) for each in held]
    return counts, len(gc.get_objects()), torch.cpu.memory_stats()["allocated_bytes.all.current"], len(storage.bin)
for _ in range(3000):
    calls()
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
    run(COUNT, "native", "20000")


def test_machine_code_appears_after_some_storages():
    program = (
        "import threading, weft as torch\n"
        "from weft.families import native_calls as n\n"
        "from weft.engine.objects import number_slot\n"
        "before = number_slot(torch.Tensor, 'nb_add')\n"
        "a = torch.ones(3)\n"
        "for _ in range(2 * n.ENOUGH): a + a\n"
        "for t in threading.enumerate():\n"
        "    if t is not threading.current_thread(): t.join()\n"
        "print((a + a).tolist(), number_slot(torch.Tensor, 'nb_add') != before)"
    )
    assert run(program, "") == "[2.0, 2.0, 2.0] True\n"
    assert run(program, "python") == "[2.0, 2.0, 2.0] False\n"


def test_a_wrong_choice_is_refused():
    with pytest.raises(AssertionError, match="WEFT_CALLS must be"):
        run("import weft", "fast")


def test_a_call_of_machine_code_is_taken():
    a = torch.ones(4)
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


def test_the_default_dtype_decides_anew():
    i = torch.arange(3)
    for _ in range(2):
        assert (i / i).dtype is torch.float32 and (i * 1.5).dtype is torch.float32
        torch.set_default_dtype(torch.float64)
        try:
            assert (i / i).dtype is torch.float64 and (i * 1.5).dtype is torch.float64
        finally:
            torch.set_default_dtype(torch.float32)
