"""What programs change: buffers, inputs, attributes; and what inputs and outputs may be."""

import collections
import dataclasses

import pytest
import torch

import weft
from weft import nn
from weft.export import export, register_dataclass


def both(make, *args):
    """The exported programs of a model in PyTorch and in weft, and the models."""
    programs = []
    for library in (torch, weft):
        library.manual_seed(0)
        model = make(library)
        inputs = [library.tensor(each) if isinstance(each, list) else each for each in args]
        programs.append((library.export.export(model, tuple(inputs)), model, inputs))
    return programs


def counting(library):
    class Counting(library.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = library.nn.BatchNorm1d(2)
            self.register_buffer("calls", library.zeros(1))
            self.register_buffer("total", library.zeros(1))
            self.plain = library.zeros(1)

        def forward(self, x, factor, nothing=None):
            self.calls.add_(1)
            self.total = self.total + x.sum()
            self.left = x
            x[0].fill_(5.0)
            x += factor
            return self.norm(x), self.plain, nothing, 3

    return Counting()


@pytest.mark.filterwarnings("ignore:The tensor attribute")
def test_buffers_and_inputs_change_as_in_pytorch():
    found = []
    for program, model, inputs in both(counting, [[1.0, 2.0], [3.0, 4.0]], 2, None):
        assert model.calls.item() == 0
        module = program.module()
        for _ in range(2):
            module(*inputs)
        state = {name: value.tolist() for name, value in program.state_dict.items()}
        assert not hasattr(model, "left") or isinstance(
            model, torch.nn.Module
        )  # PyTorch leaves it, and warns
        found.append((state, inputs[0].tolist(), program.graph_signature.user_inputs, module.total.tolist()))
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore:The tensor attribute")
def test_arguments_that_are_constants():
    ((theirs, *_), (ours, _, inputs)) = both(counting, [[1.0, 2.0], [3.0, 4.0]], 2, None)
    assert str(ours.graph_signature.input_specs) == str(theirs.graph_signature.input_specs)
    with pytest.raises(AssertionError, match="Guard failed: factor == 2"):
        ours.module()(inputs[0], 3, None)
    with pytest.raises(ValueError, match="Trying to flatten user inputs"):
        ours.module()(inputs[0])


@dataclasses.dataclass
class Pair:
    first: object
    second: object = None


def test_dataclasses_and_keywords_in_another_order():
    class Model(nn.Module):
        def forward(self, pair, *, low, high):
            return Pair(pair.first.clamp(low, high))

    arguments = {"low": weft.tensor(-1.0), "high": weft.tensor(1.0)}
    with pytest.raises(ValueError, match="register_dataclass"):
        export(Model(), (Pair(weft.ones(2)),), arguments)
    register_dataclass(Pair, serialized_type_name="tests.Pair")
    module = export(Model(), (Pair(weft.ones(2)),), arguments).module()
    got = module(Pair(weft.tensor([-5.0, 5.0])), high=weft.tensor(3.0), low=weft.tensor(-2.0))
    assert isinstance(got, Pair) and got.first.tolist() == [-2.0, 3.0] and got.second is None


def test_a_forward_of_the_instance_and_hooks_count():
    model = nn.Linear(2, 2)
    model.forward = lambda x: x + 1
    model.register_forward_hook(lambda module, args, result: result * 2)
    assert export(model, (weft.ones(2),)).module()(weft.ones(2)).tolist() == [4.0, 4.0]


def test_writes_through_views_reach_the_base():
    class Model(nn.Module):
        def forward(self, x):
            y = x.clone()
            y[:, 0] += 1
            column = y[:, 1]
            column.mul_(2)
            flat = y.view(-1)
            flat -= 1
            return y

    x = weft.arange(4.0).reshape(2, 2)
    assert weft.equal(export(Model(), (x,)).module()(x), Model()(x))


def test_exporting_draws_no_random_numbers():
    weft.manual_seed(1)
    export(nn.Dropout(), (weft.ones(3),))
    drawn = weft.rand(2)
    weft.manual_seed(1)
    assert weft.equal(drawn, weft.rand(2))


def test_unknown_results_are_refused():
    class Odd(nn.Module):
        def forward(self, x):
            return {1, 2}

    with pytest.raises(weft._dynamo.exc.UserError, match="pytree-flattenable"):
        export(Odd(), (weft.ones(1),))


class ModelOutput(collections.OrderedDict):
    """A result as transformers has them: a dict whose values are attributes, too."""

    def __getattr__(self, name):
        return self[name]


def test_results_of_registered_classes_and_more_keywords(tmp_path):
    weft.utils._pytree.register_pytree_node(
        ModelOutput,
        lambda output: (list(output.values()), list(output.keys())),
        lambda values, names: ModelOutput(zip(names, values)),
        serialized_type_name="tests.ModelOutput",
    )

    class Model(nn.Module):
        def forward(self, ids=None, mask=None, **kwargs):
            return ModelOutput(logits=ids + kwargs["extra"], mask=mask, hidden=(ids,))

    arguments = {"ids": weft.ones(2, 3), "mask": None, "extra": weft.ones(1)}
    shapes = {"ids": {0: weft.export.Dim.DYNAMIC}, "mask": None, "extra": None}
    program = export(Model(), (), arguments, dynamic_shapes=shapes)
    weft.export.save(program, tmp_path / "model.pt2")
    for module in (program.module(), weft.export.load(tmp_path / "model.pt2").module()):
        got = module(**{**arguments, "ids": weft.ones(4, 3)})
        assert isinstance(got, ModelOutput) and got.logits.shape == (4, 3) and got.mask is None
