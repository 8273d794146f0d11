import importlib

import pytest
import torch
from alike import backward, same

import weft
from weft import nn

LIBRARIES = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])


def call(lib, *args, **kwargs):
    return importlib.import_module(f"{lib.nn.__name__}.utils.stateless").functional_call(*args, **kwargs)


def linear(lib):
    layer = lib.nn.Linear(2, 2)
    layer.load_state_dict({"weight": lib.eye(2), "bias": lib.zeros(2)})
    return layer


def tied(lib):
    model = lib.nn.Sequential(linear(lib), linear(lib))
    model[1].weight = model[0].weight
    return model


LINEAR = {
    "weight": lambda lib: ({"weight": lib.ones(2, 2)}, (lib.ones(1, 2),)),
    "one argument": lambda lib: ({"weight": lib.ones(2, 2)}, lib.ones(1, 2)),
    "keywords": lambda lib: ({"weight": lib.ones(2, 2)}, None, {"input": lib.ones(1, 2)}),
    "nothing": lambda lib: ({}, lib.ones(1, 2)),
    "unknown": lambda lib: ({"x": lib.ones(1)}, lib.ones(1, 2)),
    "nowhere": lambda lib: ({"a.b": lib.ones(1)}, lib.ones(1, 2)),
    "a number": lambda lib: ({"weight": 3}, lib.ones(1, 2)),
}
TIED = {
    "first": lambda lib: {"0.weight": lib.ones(2, 2)},
    "second": lambda lib: {"1.weight": lib.ones(2, 2)},
    "two": lambda lib: {"0.weight": lib.ones(2, 2), "1.weight": lib.zeros(2, 2)},
    "all": lambda lib: {"0.weight": lib.ones(2, 2), "0.bias": lib.ones(2), "1.bias": lib.ones(2)},
}


@pytest.mark.refuses(
    [
        "weight-True", "one argument-True", "keywords-True", "nothing-True", "unknown-True", "nowhere-False",
        "nowhere-True", "a number-False", "a number-True",
    ]
)  # fmt: skip
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", LINEAR)
def test_calls_as_in_torch(name, strict):
    same(lambda lib: call(lib, linear(lib), *LINEAR[name](lib), strict=strict))


@pytest.mark.refuses(["first-{'strict': True}", "second-{'strict': True}", "two-{}", "two-{'strict': True}"])
@pytest.mark.parametrize("options", [{}, {"strict": True}, {"tie_weights": False}], ids=str)
@pytest.mark.parametrize("name", TIED)
def test_tied_weights_as_in_torch(name, options):
    same(lambda lib: call(lib, tied(lib), TIED[name](lib), lib.ones(1, 2), **options))


def test_the_module_stays_as_it_was():
    layer = linear(weft)
    weight = layer.weight
    call(weft, layer, {"weight": weft.ones(2, 2), "new": weft.ones(1)}, weft.ones(1, 2))
    with pytest.raises(RuntimeError):
        call(weft, layer, {"weight": weft.ones(7, 7)}, weft.ones(1, 2))
    assert layer.weight is weight and not hasattr(layer, "new")


def test_buffers_that_change_are_the_given_ones():
    norm = nn.BatchNorm1d(2)
    given = {name: buffer.clone() for name, buffer in norm.named_buffers()}
    call(weft, norm, given, weft.randn(3, 2))
    assert norm.num_batches_tracked == 0 and given["num_batches_tracked"] == 1


@LIBRARIES
def test_tensors_that_the_module_sets_are_given_back(lib):
    class Counting(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", lib.zeros(1))

        def forward(self, x):
            self.count = self.count + x
            return self.count

    module, first = Counting(), lib.ones(1)
    for functional_call in (lib.func.functional_call, lib.nn.utils.stateless.functional_call):
        given = {"count": first}
        functional_call(module, given, lib.ones(1))
        assert module.count.tolist() == [0] and given["count"].tolist() == [2] and first.tolist() == [1]


@LIBRARIES
def test_what_may_take_the_place_of_a_tensor(lib):
    layer = linear(lib)
    x = lib.ones(1, 2)
    assert call(lib, layer, {"bias": None}, x).tolist() == [[1, 1]]
    layer.scale, layer.inner = 2.0, lib.nn.Module()
    layer.inner.outer = layer  # a cycle
    changed = call(lib, layer, {"inner.outer.bias": lib.ones(2)}, x, tie_weights=False)
    assert changed.tolist() == [[2, 2]] and layer.bias.tolist() == [0, 0]
    with pytest.raises(TypeError, match="attribute `scale`: 2.0 is not an instance of torch.Tensor"):
        call(lib, layer, {"scale": lib.ones(1)}, x, tie_weights=False)

    class Listing(lib.nn.Module):
        def forward(self):
            return [name for name, _ in self.named_parameters()]

    module = Listing()
    assert call(lib, module, {"new": lib.nn.Parameter(lib.ones(1))}) == ["new"] and not hasattr(module, "new")


def test_gradients_reach_the_given_tensors():
    given = {"weight": weft.ones(2, 2, requires_grad=True)}
    backward(call(weft, linear(weft), given, weft.ones(1, 2)))
    assert given["weight"].grad.tolist() == [[1, 1], [1, 1]]


def test_reparametrized_for_a_while():
    results = []
    for lib in (torch, weft):
        module = lib.nn.Linear(2, 1)
        own = module.weight
        replace = lib.nn.utils.stateless._reparametrize_module
        with replace(module, {"weight": lib.ones(1, 2), "bias": lib.zeros(1)}):
            results.append(module(lib.ones(1, 2)).tolist())
        assert module.weight is own
        with pytest.raises(RuntimeError), replace(module, {"weight": lib.ones(1, 2)}, strict=True):
            pass
    assert results[0] == results[1]
