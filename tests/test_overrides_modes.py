"""`TorchFunctionMode` beside PyTorch's."""

import inspect
import threading

import pytest
import torch

import weft
import weft.overrides

LIBRARIES = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])


def log_of(lib):
    class Log(lib.overrides.TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    return Log


CALLS = {
    "operators": lambda lib, x: (x + 1, 1 - x, -x, x @ x, x == x, x[0], x > 0),
    "functions": lambda lib, x: (
        lib.add(x, x),
        lib.exp(x),
        lib.sum(x),
        lib.einsum("i,i", x, x),
        lib.cat([x, x]),
    ),
    "factories": lambda lib, x: (
        lib.zeros(2),
        lib.tensor([1]),
        lib.arange(3),
        lib.randn(2),
        lib.full((2,), 1.0),
    ),
    "methods": lambda lib, x: (x.sum(), x.view(-1), x.add(1), x.clone().mul_(2), x.detach(), x.tolist()),
    "properties": lambda lib, x: (x.shape, x.grad, x.requires_grad, x.dtype, x.data),
    "layers": lambda lib, x: (lib.nn.functional.linear(x, x[None]), lib.nn.functional.relu(x)),
    "backward": lambda lib, x: (x * x).sum().backward(),
    "values": lambda lib, x: (len(x), bool(x[0]), x[0].item()),
    "switches": lambda lib, x: (lib.manual_seed(0), lib.is_tensor(x), lib.get_default_dtype()),
}


@pytest.mark.parametrize("name", CALLS)
def test_modes_are_told_what_pytorchs_are_told(name):
    heard = []
    for lib in (weft, torch):
        x = lib.ones(3, requires_grad=True)
        with log_of(lib)() as mode:
            CALLS[name](lib, x)
        heard.append([each for each in mode.names if each != "__rsub__"] or [])
    own, reference = ([each.replace("rsub", "sub") for each in names] for names in heard)
    assert own == [each for each in reference if each != "_is_view"]


@LIBRARIES
def test_innermost_first_and_off_while_it_runs(lib):
    order = []

    class Named(lib.overrides.TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            order.append(self.name)
            lib.ones(1)  # goes to the outer mode only
            return func(*args, **(kwargs or {}))

    with Named("outer") as outer, Named("inner") as inner:
        assert lib.overrides._get_current_function_mode_stack() == [outer, inner]
        lib.zeros(1)
        with lib.overrides._pop_mode_temporarily() as popped:
            assert popped is inner and lib.overrides._get_current_function_mode() is outer
    assert order == ["inner", "outer", "outer"]
    assert lib.overrides._get_current_function_mode() is None
    lib.zeros(1)
    assert len(order) == 3


@LIBRARIES
def test_a_mode_may_answer_itself(lib):
    class Ones(lib.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return "mine" if func is lib.zeros else func(*args, **(kwargs or {}))

    with Ones():
        assert lib.zeros(2) == "mine"
        assert lib.ones(2).sum() == 2
    assert lib.zeros(2).sum() == 0


@LIBRARIES
def test_modes_come_before_subclasses(lib):
    order = []

    class Mine(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append(("class", func.__name__))
            return super().__torch_function__(func, types, args, kwargs or {})

    class Mode(lib.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            order.append(("mode", func.__name__))
            assert Mine in types
            return func(*args, **(kwargs or {}))

    x = lib.ones(2).as_subclass(Mine)
    with Mode():
        y = x + 1
        z = x.sum()
    assert type(y) is type(z) is Mine
    assert order == [("mode", "add"), ("class", "add"), ("mode", "sum"), ("class", "sum")]


@LIBRARIES
def test_errors(lib):
    class Declines(lib.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="returned NotImplemented"), Declines():
        lib.ones(1)
    with pytest.raises(NotImplementedError), lib.overrides.TorchFunctionMode():
        lib.ones(1)
    with pytest.raises(RuntimeError), lib.overrides.BaseTorchFunctionMode():
        lib.ones(2) + lib.ones(3)
    with pytest.raises(TypeError), lib.overrides.BaseTorchFunctionMode():
        lib.ones(2) + "text"
    assert lib.ones(1).item() == 1


@LIBRARIES
def test_other_threads_are_not_told(lib):
    with log_of(lib)() as mode:
        thread = threading.Thread(target=lambda: lib.ones(1) + 1)
        thread.start()
        thread.join()
    assert mode.names == []


@LIBRARIES
def test_functions_of_users_tell_modes(lib):
    def double(a):
        if lib.overrides.has_torch_function((a,)):
            return lib.overrides.handle_torch_function(double, (a,), a)
        return a + a

    x = lib.ones(2)
    assert not lib.overrides.has_torch_function((x,))
    with log_of(lib)() as mode:
        assert lib.overrides.has_torch_function((x,))
        double(x)
    assert mode.names == ["double"]

    class Deep(lib.overrides.TorchFunctionMode):
        names = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names.append(func.__name__)
            with self:
                return lib.overrides.redispatch_function(func, types, args, kwargs)

    with Deep():
        double(x)
    assert Deep.names == ["double", "add"]


def test_functions_keep_their_code():
    before = weft.add.__code__, weft.Tensor.add.__code__, weft.Tensor.shape.fget.__code__
    held = weft.exp
    with log_of(weft)() as mode:
        held(weft.ones(1))
    assert mode.names == ["ones", "exp"]
    assert before == (weft.add.__code__, weft.Tensor.add.__code__, weft.Tensor.shape.fget.__code__)


def test_training_under_a_mode_gives_the_same():
    def train():
        weft.manual_seed(0)
        model = weft.nn.Sequential(
            weft.nn.Linear(4, 8), weft.nn.LayerNorm(8), weft.nn.GELU(), weft.nn.Linear(8, 2)
        )
        optimizer = weft.optim.AdamW(model.parameters())
        for _ in range(3):
            loss = weft.nn.functional.cross_entropy(model(weft.randn(5, 4)), weft.tensor([0, 1, 1, 0, 1]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item(), [each.tolist() for each in model.parameters()]

    expected = train()
    with weft.overrides.BaseTorchFunctionMode():
        found = train()
    assert found == expected


def test_testing_overrides():
    own = weft.overrides.get_testing_overrides()
    for function in (weft.add, weft.Tensor.sum, weft.Tensor.shape.__get__, weft.nn.functional.linear):
        dummy = own[function]
        required = [
            each for each in inspect.signature(dummy).parameters.values() if each.default is each.empty
        ]
        assert dummy(*[0] * len([each for each in required if each.kind is each.POSITIONAL_OR_KEYWORD])) == -1
    assert str(inspect.signature(own[weft.nn.functional.linear])) == "(input, weight, bias=None)"


@LIBRARIES
def test_a_mode_is_asked_again_where_a_class_calls_the_function(lib):
    class Declining(lib.overrides.TorchFunctionMode):
        called = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.called += 1
            return NotImplemented if types else func(*args, **kwargs or {})

    class Sub(lib.Tensor):
        pass

    x = lib.ones(1).as_subclass(Sub)
    with Declining() as mode:
        assert type(lib.exp(x)) is Sub
    assert mode.called == 2


@LIBRARIES
def test_a_mode_with_a_classmethod(lib):
    class Mode(lib.overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*args, **kwargs or {})

    x = lib.ones(1)
    with (
        pytest.raises(RuntimeError, match="classmethod is not supported, please make it a plain method"),
        Mode(),
    ):
        x + x
