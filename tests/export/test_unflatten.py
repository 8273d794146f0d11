import pytest

import weft
from weft import nn
from weft.export import FlatArgsAdapter, export, unflatten
from weft.export.unflatten import InterpreterModule, InterpreterModuleDispatcher


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x, *, options):
        return {"y": self.linear(x) * options[0], "z": x}


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.twice = Inner(), nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.tied = nn.Linear(3, 3)
        self.tied.weight = self.inner.linear.weight

    def forward(self, x, factor):
        y = self.inner(x, options=[factor])
        return self.tied(self.twice(self.twice(y["y"]) + y["z"]))


ARGS = weft.randn(2, 3), weft.tensor(2.0)


@pytest.mark.parametrize("preserved", [(), ("inner",), ("inner", "twice", "tied")])
def test_modules_compute_what_the_model_does(preserved):
    model = Outer()
    module = unflatten(export(model, ARGS, preserve_module_call_signature=preserved))
    assert weft.allclose(module(*ARGS), model(*ARGS))
    assert isinstance(module.inner.linear, InterpreterModule)
    assert dict(module.named_parameters()).keys() == dict(model.named_parameters()).keys()
    assert module.inner.type_name().endswith("Inner")


def test_a_module_is_replaced():
    class Other(nn.Module):
        def forward(self, x, *, options):
            return {"y": x * 0, "z": x + options[0]}

    model = Outer()
    model.tied = nn.Linear(3, 3)  # else it would ask the module for its weight
    module = unflatten(export(model, ARGS, preserve_module_call_signature=("inner",)))
    module.inner = model.inner = Other()
    assert weft.allclose(module(*ARGS), model(*ARGS))


def test_inputs_are_checked_and_adapted():
    class Swapped(FlatArgsAdapter):
        def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
            return input_args[::-1]

    program = export(Outer(), ARGS)
    with pytest.raises(TypeError, match="flat args adapter"):
        unflatten(program)({"factor": ARGS[1], "x": ARGS[0]})
    with pytest.raises(RuntimeError, match="to be equal to 2, but got 5"):
        unflatten(program)(weft.ones(5, 3), ARGS[1])
    adapted = unflatten(program, Swapped())({"factor": ARGS[1], "x": ARGS[0]})
    assert weft.allclose(adapted, unflatten(program)(*ARGS))


def test_calls_take_turns():
    module = unflatten(export(Outer(), ARGS))
    turns = InterpreterModuleDispatcher({"0"}, [module.twice, getattr(module, "twice@1")])
    x = weft.randn(2, 3)
    assert weft.equal(turns(x), module.twice(x)) and len(turns.call_modules()) == 2
    with pytest.raises(ValueError, match="no modules of the model"):
        export(Outer(), ARGS, preserve_module_call_signature=("outer",))
