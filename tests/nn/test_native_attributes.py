"""Parameters, buffers and submodules are found by machine code, which must find what Python finds."""

import copy
import gc
import pickle
import sys
import threading

import pytest

import weft as torch
from weft.engine.objects import slot
from weft.families import native_calls

nn = torch.nn


@pytest.fixture(autouse=True, scope="module")
def _installed():
    native_calls.install()


class Scale(nn.Module):
    kind = "of the class"

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(2))
        self.register_parameter("nothing", None)
        self.register_buffer("offset", torch.zeros(2))
        self.inner = nn.Linear(2, 2)
        self.plain = 3

    @property
    def missing_inside(self):
        return self.not_there


def test_members_are_found():
    module = Scale()
    assert module.factor is module._parameters["factor"]
    assert module.offset is module._buffers["offset"]
    assert module.inner is module._modules["inner"]
    assert module.nothing is None
    assert (module.plain, module.kind, module.training) == (3, "of the class", True)
    assert module.forward.__self__ is module


def test_the_instance_and_the_class_come_first():
    module = Scale()
    module.__dict__["factor"] = "instance"
    assert module.factor == "instance"
    module._parameters["kind"] = nn.Parameter(torch.ones(1))
    assert module.kind == "of the class"
    del module.__dict__["factor"]
    module._modules["factor"] = nn.ReLU()
    assert module.factor is module._parameters["factor"]


@pytest.mark.parametrize("name", ["not_there", "missing_inside", "_version_of_nothing"])
def test_missing_names_raise(name):
    with pytest.raises(AttributeError, match="'Scale' object has no attribute"):
        getattr(Scale(), name)
    assert not hasattr(Scale(), name)
    with pytest.raises(AttributeError):
        Scale.__new__(Scale).factor  # noqa: B018 (before __init__)


def test_other_dictionaries():
    module = Scale()

    class Members(dict):
        def __getitem__(self, key):
            return f"item {key}"

    module._parameters = Members(factor=None)
    assert module.factor == "item factor"
    del module.__dict__["_parameters"]
    with pytest.raises(AttributeError):
        module.factor  # noqa: B018


def test_classes_with_their_own_look_up():
    class Own(nn.Module):
        def __getattr__(self, name):
            return f"own {name}" if name == "answer" else super().__getattr__(name)

    class Watching(Scale):
        def __getattribute__(self, name):
            seen.append(name)
            return super().__getattribute__(name)

    seen = []
    own = Own()
    own.layer = nn.ReLU()
    assert own.answer == "own answer" and type(own.layer) is nn.ReLU
    assert Watching().factor.shape == (2,) and "factor" in seen


def test_assignment_to_a_class_counts():
    class Later(Scale):
        pass

    class Below(Later):
        pass

    module = Below()
    assert module.factor.shape == (2,)
    Later.__getattr__ = lambda self, name: f"later {name}"
    assert module.factor == "later factor"
    del Later.__getattr__
    assert module.factor.shape == (2,)
    Below.factor = 5
    assert module.factor == 5


def test_patched_module(monkeypatch):
    module = Scale()
    with monkeypatch.context() as patch:
        patch.setattr(nn.Module, "__getattr__", lambda self, name: "patched")

        class New(Scale):
            pass

        assert module.factor == New.__new__(New).factor == "patched"
    assert module.factor.shape == (2,)


def test_copies_and_swaps():
    module = Scale()
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(nn.Linear(2, 2)))):
        assert all(other.get_parameter(name) is each for name, each in other.named_parameters())
        assert all(torch.equal(other.state_dict()[name], each) for name, each in other.named_parameters())
    swapped = torch.full((2,), 7.0)

    class Times(Scale):
        def forward(self, x):
            return x * self.factor + self.offset

    result = torch.func.functional_call(Times(), {"factor": swapped}, (torch.ones(2),))
    assert result.tolist() == [7.0, 7.0]
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    assert layer.weight.shape == (2, 2) and "weight" not in layer._parameters


def test_references_are_exact():
    module, value = Scale(), object()
    names = ["factor", "offset", "inner", "nothing", "plain"]
    module._buffers["value"] = value
    before = sys.getrefcount(value), sys.getrefcount(module.__dict__), sys.getrefcount(module._parameters)
    for _ in range(1000):
        for name in [*names, "value", "not_there"]:
            getattr(module, name, None)
    after = sys.getrefcount(value), sys.getrefcount(module.__dict__), sys.getrefcount(module._parameters)
    assert before == after
    gc.collect()


def test_threads_that_replace_members():
    module, stop = Scale(), threading.Event()

    def replace():
        while not stop.is_set():
            module._parameters["factor"] = nn.Parameter(torch.ones(2))
            module._parameters = dict(module._parameters)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(5000):
            assert module.factor.shape == (2,)
    finally:
        stop.set()
        thread.join()


def test_machine_code_is_there():
    class Fresh(Scale):
        pass

    if native_calls.layout_is_known():
        probe = type("Probe", (), {"__getattr__": lambda self, name: name})
        assert slot(Fresh, "tp_getattro") != slot(probe, "tp_getattro")
