"""torch.__future__: what converting a module, and loading its state, does to its parameters."""

import contextlib
import weakref

import pytest
import torch
from alike import same

import weft


@contextlib.contextmanager
def switched(library, name):
    setter = getattr(library.__future__, f"set_{name}_module_params_on_conversion")
    getter = getattr(library.__future__, f"get_{name}_module_params_on_conversion")
    assert getter() is False
    setter(True)
    try:
        assert getter() is True
        yield
    finally:
        setter(False)


def layer(library):
    module = library.nn.Linear(2, 2)
    module.register_buffer("scale", library.ones(1))
    with library.no_grad():
        module.weight.fill_(2)
        module.bias.fill_(1)
    module.weight.requires_grad_(True)
    module.bias.requires_grad_(False)
    return module


CONVERSIONS = {
    "double": lambda module: module.double(),
    "nothing": lambda module: module.float(),
    "meta": lambda module: module.to("meta"),
    "empty": lambda module: module.to_empty(device="meta"),
}


@pytest.mark.parametrize("conversion", CONVERSIONS)
@pytest.mark.parametrize("name", ["overwrite", "swap"])
def test_parameters(name, conversion):
    def program(library):
        module = layer(library)
        module(library.ones(1, 2)).sum().backward()
        before = dict(module.named_parameters())
        grad = module.weight.grad
        with switched(library, name):
            CONVERSIONS[conversion](module)
        after = dict(module.named_parameters())
        return (
            [after[key] is before[key] for key in before],
            [(each.dtype, each.device, each.requires_grad, type(each).__name__) for each in after.values()],
            [(each.dtype, each.device) for each in before.values()],
            module.weight.grad is grad,
            module.weight.grad.dtype,
            module.weight.grad.device,
            module.bias.grad,
        )

    same(program)


@pytest.mark.parametrize("assign", [False, True])
def test_loading_swaps(assign):
    def program(library):
        module, other = layer(library), layer(library).double()
        before = dict(module.named_parameters())
        with switched(library, "swap"):
            keys = module.load_state_dict(other.state_dict(), assign=assign)
        after = dict(module.named_parameters())
        return [after[key] is before[key] for key in before], keys, module.state_dict(), list(after.values())

    same(program)


def test_a_class_says_what_it_loads():
    def program(library):
        class Scaled(library.nn.Parameter):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                if func is library.Tensor.module_load:
                    return library.nn.Parameter(args[1] * 10)
                return super().__torch_function__(func, types, args, kwargs or {})

        module = library.nn.Linear(1, 1)
        module.weight = Scaled(library.zeros(1, 1))
        with switched(library, "swap"):
            module.load_state_dict({"weight": library.ones(1, 1), "bias": library.ones(1)})
        return module.weight.tolist(), module.bias.tolist()

    same(program)


def test_what_cannot_be_swapped_is_named():
    for library in (weft, torch):
        module = layer(library)
        reference = weakref.ref(module.weight, print)
        with switched(library, "swap"):
            with pytest.raises(RuntimeError, match=r"_apply\(\): Couldn't swap Linear.weight"):
                module.double()
            with pytest.raises(RuntimeError, match='While swapping the parameter named "weight"'):
                module.load_state_dict(layer(library).state_dict())
        assert reference() is module.weight
