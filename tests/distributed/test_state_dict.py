import pytest
import torch
import torch.distributed.checkpoint.state_dict
from one_rank import groups, same

import weft
import weft.distributed.checkpoint.state_dict


def trained(library, optimizer="Adam", steps=1, wrap=lambda library, model: model):
    library.manual_seed(0)
    nn = library.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 1)
            self.b = nn.BatchNorm1d(1)

        def forward(self, x):
            return self.b(self.a(x))

    model = wrap(library, Net())
    groups = [{"params": list(model.parameters())[:2]}, {"params": list(model.parameters())[2:], "lr": 0.5}]
    optimizer = getattr(library.optim, optimizer)(groups, lr=0.1)
    for _ in range(steps):
        model(library.arange(4.0).reshape(2, 2)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return library.distributed.checkpoint.state_dict, model, optimizer


@pytest.mark.parametrize("optimizer", ["Adam", "SGD", "RMSprop"])
@pytest.mark.parametrize("flat", [True, False])
def test_state_of_optimizers(optimizer, flat):
    def program(library):
        module, model, made = trained(library, optimizer, steps=0)
        options = module.StateDictOptions(flatten_optimizer_state_dict=flat)
        state = module.get_optimizer_state_dict(model, made, options=options)
        module.set_optimizer_state_dict(model, made, optim_state_dict=state, options=options)
        return state, made.state_dict()

    same(program)


def test_state_of_models():
    def names(library, **options):
        module, model, _ = trained(library, steps=0)
        model.a.weight.requires_grad_(False)
        chosen = {model.a} if options.pop("part", False) else None
        made = module.StateDictOptions(**options)
        return list(module.get_model_state_dict(model, submodules=chosen, options=made))

    same(names)
    same(lambda library: names(library, ignore_frozen_params=True))
    same(lambda library: names(library, part=True))
    same(lambda library: names(library, part=True, keep_submodule_prefixes=False))
    same(lambda library: names(library, full_state_dict=True, cpu_offload=True))
    same(lambda library: library.distributed.checkpoint.state_dict.StateDictOptions())


def test_wrappers_leave_no_trace():
    def program(library):
        module, model, optimizer = trained(
            library, wrap=lambda library, model: library.nn.parallel.DistributedDataParallel(model)
        )
        state, of_optimizer = module.get_state_dict(model, optimizer)
        names = list(state)  # PyTorch's function changes the names in the dict that it is given
        module.set_state_dict(model, optimizer, model_state_dict=state, optim_state_dict=of_optimizer)
        return (
            names,
            list(of_optimizer["state"]),
            [group["params"] for group in of_optimizer["param_groups"]],
        )

    with groups():
        same(program)


def test_a_state_moves_to_another_model():
    module, model, optimizer = trained(weft, steps=3)
    _, other, blank = trained(weft, steps=0)
    state, of_optimizer = module.get_state_dict(model, optimizer)
    assert not module.set_state_dict(
        other, blank, model_state_dict=state, optim_state_dict=of_optimizer
    ).missing_keys
    assert repr(blank.state_dict()) == repr(optimizer.state_dict())
    assert other.a.weight.equal(model.a.weight)


def test_names_that_do_not_fit():
    def program(library, strict):
        module, model, _ = trained(library, steps=0)
        options = module.StateDictOptions(strict=strict)
        return module.set_model_state_dict(model, {"zz": library.ones(1)}, options=options).unexpected_keys

    same(lambda library: program(library, True))
    same(lambda library: program(library, False))


def test_parts_of_a_model():
    module, model, _ = trained(weft, steps=0)
    options = module.StateDictOptions(strict=False)
    module.set_model_state_dict(model, {model.a: {"bias": weft.tensor([7.0])}}, options=options)
    assert model.a.bias.tolist() == [7]
    assert hasattr(torch.distributed.checkpoint.state_dict, "set_model_state_dict")
