"""Modes that are asked about every call, side by side with PyTorch's."""

import threading
import types

import pytest
import torch
import torch.overrides

import weft
import weft.overrides
from weft.core import modes

LIBRARIES = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])


def logging_mode(lib):
    class Logging(lib.overrides.TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.log = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            kinds = tuple(kind.__name__ for kind in types if kind is not lib.Tensor)
            self.log.append((func.__name__, kinds))
            return func(*args, **kwargs or {})

    return Logging()


CALLS = [
    "x + 1", "1 + x", "2 - x", "x @ x", "-x", "abs(x)", "x == x", "x > 1", "bool(x[0] > 5)", "x[0]", "x.sum()", "x.size()",
    "torch.add(x, x)", "torch.zeros(2)", "torch.tensor([1.0])", "torch.rand(2)", "torch.cat([x, x])", "torch.linalg.norm(x)",
    "torch.fft.fft(x)", "torch.special.expit(x)", "torch.nn.functional.linear(x, x)", "torch.nn.functional.relu(x)",
    "linear(x)", "torch.is_tensor(x)", "torch.manual_seed(0)", "torch.nn.init.uniform_(x)", "torch.einsum('i,i', x, x)",
    "x.clone().add_(1)", "torch.where(x > 0, x, 0.0)", "repr(x)", "len(x)", "x.unbind()", "torch.ones_like(x)",
    "x.__setitem__(0, 1.0)", "x.requires_grad_()", "torch.max(x, 0).values", "x.view(2, 1).expand(2, 2)", "float(x[0])",
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_a_mode_hears_of_the_calls_that_pytorchs_hears_of(call):
    logs = []
    for lib in (weft, torch):
        names = {"torch": lib, "x": lib.ones(2), "linear": lib.nn.Linear(2, 3)}
        mode = logging_mode(lib)
        with mode:
            eval(call, names)
        # PyTorch also tells of properties (`__get__`) and of what its Python code calls in between.
        logs.append([entry for entry in mode.log if entry[0] not in ("__get__", "dim")])
    assert logs[0] == logs[1]


@LIBRARIES
def test_modes_nest_and_change_results(lib):
    class Times(lib.overrides.TorchFunctionMode):
        def __init__(self, number):
            self.number = number

        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is not lib.mul:
                return func(*args, **kwargs or {})
            return lib.mul(args[0], args[1] * self.number) + self.number

    x = lib.ones(2)
    with Times(10) as outer:
        assert lib.overrides._get_current_function_mode() is outer
        assert lib.mul(x, 3).tolist() == [40, 40]
        with Times(2) as inner:
            assert lib.overrides._get_current_function_mode_stack() == [outer, inner]
            assert lib.mul(x, 3).tolist() == [72, 72]
    assert lib.overrides._get_current_function_mode() is None
    assert lib.mul(x, 3).tolist() == [3, 3]


@LIBRARIES
def test_a_mode_ends_with_an_exception(lib):
    with pytest.raises(ZeroDivisionError), logging_mode(lib):
        raise ZeroDivisionError
    assert lib.overrides._get_current_function_mode_stack() == []
    mode = logging_mode(lib)
    with mode, mode:
        lib.zeros(1)
    assert [name for name, _ in mode.log] == ["zeros", "zeros"]


@LIBRARIES
def test_modes_come_before_classes(lib):
    class Mine(lib.Tensor):
        pass

    mode = logging_mode(lib)
    with mode:
        result = lib.add(mine := lib.ones(2).as_subclass(Mine), 1)
    assert type(result) is Mine and ("add", ("Mine",)) in mode.log
    assert type(mine + 1) is Mine


@LIBRARIES
def test_a_mode_that_declines(lib):
    class Declining(lib.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.add'"), Declining():
        lib.add(lib_ones[lib], 1)
    with pytest.raises(NotImplementedError), lib.overrides.TorchFunctionMode():
        lib.add(lib_ones[lib], 1)
    with lib.overrides.BaseTorchFunctionMode():
        assert lib.add(lib_ones[lib], 1).tolist() == [2]


lib_ones = {weft: weft.ones(1), torch: torch.ones(1)}


@LIBRARIES
def test_modes_can_be_switched_off(lib):
    mode = logging_mode(lib)
    with mode:
        with lib._C.DisableTorchFunction():
            lib.zeros(1)
        assert not mode.log
        with lib._C.DisableTorchFunctionSubclass():
            lib.zeros(1)
        assert len(mode.log) == 1
        with lib.overrides._pop_mode_temporarily():
            lib.zeros(1)
        assert len(mode.log) == 1


@LIBRARIES
def test_a_mode_holds_for_its_thread(lib):
    mode, other = logging_mode(lib), []
    with mode:
        thread = threading.Thread(target=lambda: other.append(lib.zeros(2)))
        thread.start()
        thread.join()
    assert not mode.log and other[0].tolist() == [0, 0]


def test_functions_have_their_own_code_again():
    before = {
        name: each.__code__ for name, each in modes.FUNCTIONS.items() if isinstance(each, types.FunctionType)
    }
    with logging_mode(weft):
        assert weft.add.__code__ is not before["add"]
    assert all(modes.FUNCTIONS[name].__code__ is code for name, code in before.items())
