"""Averages of weights against the oracle."""

import numpy as np
import pytest
import torch
from oracle import assert_same, to_weft
from torch.optim import swa_utils as theirs

import weft
from weft.optim import swa_utils as ours


def models(norm=True):
    """The same model of both libraries."""
    result = []
    for library in (weft, torch):
        nn = library.nn
        layers = [nn.Linear(3, 4), nn.BatchNorm1d(4)] if norm else [nn.Linear(3, 4)]
        result.append(nn.Sequential(*layers))
    result[0].load_state_dict({name: to_weft(value) for name, value in result[1].state_dict().items()})
    return result


def shift(model, library):
    with library.no_grad():
        for number, param in enumerate(model.parameters()):
            param.add_(0.1 * (number + 1)).mul_(1.3)
        for buffer in model.buffers():
            buffer.add_(1)


def assert_same_state(one, other):
    mine, expected = one.state_dict(), other.state_dict()
    assert list(mine) == list(expected)
    for name, value in expected.items():
        assert_same(mine[name], value, name)


FUNCTIONS = [
    lambda utils: {},
    lambda utils: {"use_buffers": True},
    lambda utils: {"avg_fn": utils.get_swa_avg_fn()},
    lambda utils: {"avg_fn": utils.get_ema_avg_fn(0.9)},
    lambda utils: {"multi_avg_fn": utils.get_swa_multi_avg_fn()},
    lambda utils: {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.9)},
    lambda utils: {"avg_fn": lambda average, value, number: 0.5 * average + 0.5 * value},
]


@pytest.mark.parametrize("options", FUNCTIONS)
def test_averaged_model(options):
    mine, expected = models()
    average = ours.AveragedModel(mine, **options(ours))
    reference = theirs.AveragedModel(expected, **options(theirs))
    for _ in range(4):
        average.update_parameters(mine)
        reference.update_parameters(expected)
        shift(mine, weft)
        shift(expected, torch)
    assert_same_state(average, reference)
    assert average.n_averaged.item() == 4
    x = torch.randn(5, 3)
    assert_same(average.eval()(to_weft(x)).detach(), reference.eval()(x).detach())


def test_average_is_a_copy():
    model, _ = models(norm=False)
    average = ours.AveragedModel(model)
    average.update_parameters(model)
    before = average.module[0].weight.detach().clone()
    shift(model, weft)
    assert np.array_equal(average.module[0].weight.detach().numpy(), before.numpy())
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn should be provided"):
        ours.AveragedModel(model, avg_fn=ours.get_swa_avg_fn(), multi_avg_fn=ours.get_swa_multi_avg_fn())


@pytest.mark.parametrize("decay", [-0.1, 1.1])
def test_decay_is_checked(decay):
    for function in (ours.get_ema_avg_fn, ours.get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match="Invalid decay value"):
            function(decay)


@pytest.mark.parametrize("pack", [lambda x: x, lambda x: (x, 3), lambda x: [x]])
def test_update_bn(pack):
    mine, expected = models()
    batches = [torch.randn(6, 3) for _ in range(3)]
    mine.eval()
    ours.update_bn([pack(to_weft(batch)) for batch in batches], mine)
    theirs.update_bn([pack(batch) for batch in batches], expected)
    assert_same_state(mine, expected)
    assert not mine.training and mine[1].momentum == 0.1


def test_update_bn_without_norms_reads_nothing():
    mine, _ = models(norm=False)
    ours.update_bn((pytest.fail("read") for _ in range(3)), mine)


@pytest.mark.parametrize(
    "options",
    [{}, {"anneal_epochs": 0}, {"anneal_epochs": 3, "anneal_strategy": "linear"}, {"swa_lr": [0.01, 0.2]}],
)
def test_swalr(options):
    options = {"swa_lr": 0.05, **options}
    schedules = []
    for library, utils in ((weft, ours), (torch, theirs)):
        groups = [{"params": [library.zeros(1)], "lr": rate} for rate in (0.1, 0.25)]
        schedules.append(utils.SWALR(library.optim.SGD(groups), **options))
    for _ in range(20):
        states = [each.state_dict() for each in schedules]
        assert states[0] == states[1] and list(states[0]) == list(states[1])
        for each in schedules:
            each.optimizer.step()
            each.step()


@pytest.mark.parametrize("options", [{"anneal_strategy": "x"}, {"anneal_epochs": -1}, {"swa_lr": [0.1]}])
def test_swalr_errors(options):
    messages = []
    for library, utils in ((weft, ours), (torch, theirs)):
        optimizer = library.optim.SGD([{"params": [library.zeros(1)]}, {"params": [library.zeros(1)]}])
        with pytest.raises(ValueError) as error:
            utils.SWALR(optimizer, **{"swa_lr": 0.1, **options})
        messages.append(str(error.value))
    assert messages[0] == messages[1]
