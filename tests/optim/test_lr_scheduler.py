"""Every schedule against the oracle: the same rates, options of the groups, states and messages for 50 epochs."""

import pickle
import warnings
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import weft

SCHEDULES = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda epoch: 0.95**epoch),
    "lambda per group": lambda s, o: s.LambdaLR(
        o, [lambda epoch: 0.95**epoch, lambda epoch: 1 / (epoch + 1)]
    ),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.95),
    "step 1": lambda s, o: s.StepLR(o, 1, 0.5),
    "step 7": lambda s, o: s.StepLR(o, 7),
    "milestones": lambda s, o: s.MultiStepLR(o, [2, 2, 5], 0.3),
    "milestone 0": lambda s, o: s.MultiStepLR(o, [0, 3], 0.3),
    "constant": lambda s, o: s.ConstantLR(o, 0.5, 4),
    "constant 0": lambda s, o: s.ConstantLR(o, 0.1, 0),
    "linear": lambda s, o: s.LinearLR(o, 0.5, 1.0, 4),
    "linear down": lambda s, o: s.LinearLR(o, 1.0, 0.1, 7),
    "linear to 0": lambda s, o: s.LinearLR(o, 1.0, 0.0, 5),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.9),
    "polynomial": lambda s, o: s.PolynomialLR(o, 20, 2.0),
    "polynomial 1": lambda s, o: s.PolynomialLR(o, 1, 0.5),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 10),
    "cosine low": lambda s, o: s.CosineAnnealingLR(o, 7, 0.01),
    "triangular": lambda s, o: s.CyclicLR(o, [0.01, 0.02], 0.3, 7, 5),
    "triangular2": lambda s, o: s.CyclicLR(o, 0.01, 0.3, 3, mode="triangular2", cycle_momentum=False),
    "exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.3, 6, mode="exp_range", gamma=0.99, base_momentum=0.7),
    "one cycle": lambda s, o: s.OneCycleLR(o, [0.1, 0.4], 60),
    "one cycle, linear": lambda s, o: s.OneCycleLR(
        o, 0.1, epochs=6, steps_per_epoch=10, anneal_strategy="linear"
    ),
    "one cycle, three phases": lambda s, o: s.OneCycleLR(o, 0.1, 55, three_phase=True, pct_start=0.2),
    "one cycle, too short": lambda s, o: s.OneCycleLR(o, 0.1, 20, cycle_momentum=False),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5),
    "restarts, longer": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.001),
}
COMBINED = {
    "sequence": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1.0, 5), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 9)], [5, 20]
    ),
    "sequence of restarts": lambda s, o: s.SequentialLR(
        o,
        [s.ConstantLR(o, 0.1, 3), s.CosineAnnealingWarmRestarts(o, 10), s.MultiplicativeLR(o, lambda e: 0.9)],
        [4, 30],
    ),
    "sequence in sequence": lambda s, o: s.SequentialLR(
        o, [s.SequentialLR(o, [s.ConstantLR(o), s.MultiStepLR(o, [3])], [3]), s.StepLR(o, 2)], [8]
    ),
    "chain": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.5, 5), s.ExponentialLR(o, 0.97), s.CosineAnnealingLR(o, 12)]
    ),
}


def optimizer(library, kind="SGD", rates=(0.1, 0.25), **options):
    groups = [{"params": [library.zeros(1)], "lr": rate} for rate in rates]
    return getattr(library.optim, kind)(groups, **({"momentum": 0.9} if kind == "SGD" else {}), **options)


class At:
    """The module of schedules, whose constructors go on after an epoch."""

    def __init__(self, module, last_epoch):
        self.module, self.last_epoch = module, last_epoch

    def __getattr__(self, name):
        return partial(getattr(self.module, name), last_epoch=self.last_epoch)


def options_of(owner):
    return [
        {name: value for name, value in group.items() if name != "params"} for group in owner.param_groups
    ]


def attempt(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)


def assert_same_course(ours, theirs, arguments=lambda epoch: (), epochs=50):
    for epoch in range(epochs):
        assert options_of(ours.optimizer) == options_of(theirs.optimizer), epoch
        assert ours.get_last_lr() == theirs.get_last_lr(), epoch
        mine, expected = ours.state_dict(), theirs.state_dict()
        assert mine == expected and list(mine) == list(expected), epoch
        for each in (ours, theirs):
            each.optimizer.step()
        assert attempt(ours.step, *arguments(epoch)) == attempt(theirs.step, *arguments(epoch)), epoch


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("make", {**SCHEDULES, **COMBINED}.values(), ids={**SCHEDULES, **COMBINED}.keys())
def test_fifty_epochs(make, kind):
    ours = make(weft.optim.lr_scheduler, optimizer(weft, kind))
    assert_same_course(ours, make(torch.optim.lr_scheduler, optimizer(torch, kind)))


@pytest.mark.filterwarnings("ignore:The epoch parameter")
@pytest.mark.parametrize("make", SCHEDULES.values(), ids=SCHEDULES.keys())
def test_given_epochs(make):
    ours = make(weft.optim.lr_scheduler, optimizer(weft))
    theirs = make(torch.optim.lr_scheduler, optimizer(torch))
    assert_same_course(ours, theirs, lambda epoch: (int(epoch * 1.5),), 20)


@pytest.mark.parametrize("make", SCHEDULES.values(), ids=SCHEDULES.keys())
def test_going_on(make):
    """From epoch 3, with groups whose rates are no longer the initial ones."""
    results = []
    for library in (weft, torch):
        owner = optimizer(library)
        for group in owner.param_groups:
            extra = {"max_lr": 0.5, "min_lr": 1e-5, "max_momentum": 0.95, "base_momentum": 0.85}
            group.update(initial_lr=group["lr"], lr=group["lr"] * 0.7, **extra)
        results.append(make(At(library.optim.lr_scheduler, 3), owner))
    assert_same_course(*results, epochs=20)


@pytest.mark.parametrize("make", {**SCHEDULES, **COMBINED}.values(), ids={**SCHEDULES, **COMBINED}.keys())
def test_loaded_states_go_on_alike(make):
    first = make(weft.optim.lr_scheduler, optimizer(weft))
    for _ in range(6):
        first.optimizer.step()
        first.step()
    second = make(weft.optim.lr_scheduler, optimizer(weft))
    state = first.state_dict()
    second.load_state_dict(pickle.loads(pickle.dumps(state)))
    for group, other in zip(second.optimizer.param_groups, first.optimizer.param_groups, strict=True):
        group.update((name, value) for name, value in other.items() if name != "params")
    for _ in range(10):
        for each in (first, second):
            each.optimizer.step()
            each.step()
        assert first.get_last_lr() == second.get_last_lr()


@given(
    mode=st.sampled_from(["min", "max"]),
    threshold_mode=st.sampled_from(["rel", "abs"]),
    threshold=st.sampled_from([1e-4, 0.1]),
    patience=st.integers(0, 3),
    cooldown=st.integers(0, 3),
    min_lr=st.sampled_from([0, 0.01, [0.02, 0.001]]),
    metrics=st.lists(st.sampled_from([0.5, 0.9, 0.95, 1.0, 1.05, float("nan")]), min_size=1, max_size=30),
)
def test_plateaus(mode, threshold_mode, threshold, patience, cooldown, min_lr, metrics):
    options = {"mode": mode, "threshold_mode": threshold_mode, "threshold": threshold, "patience": patience}
    options |= {"cooldown": cooldown, "min_lr": min_lr, "factor": 0.5}
    ours = weft.optim.lr_scheduler.ReduceLROnPlateau(optimizer(weft), **options)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer(torch), **options)
    for metric in metrics:
        for each in (ours, theirs):
            each.step(metric)
        assert ours.state_dict() == theirs.state_dict() and list(ours.__dict__) == list(theirs.__dict__)
        assert options_of(ours.optimizer) == options_of(theirs.optimizer)


def test_plateau_takes_tensors_and_new_groups():
    schedule = weft.optim.lr_scheduler.ReduceLROnPlateau(optimizer(weft), patience=0)
    schedule.optimizer.add_param_group({"params": [weft.ones(1)], "lr": 1.0})
    for _ in range(2):
        schedule.step(weft.tensor(1.0))
    assert [group["lr"] for group in schedule.optimizer.param_groups] == [0.1 * 0.1, 0.025, 0.1]
    assert schedule.min_lrs == [0, 0, 0]


def test_objects_as_functions_are_saved():
    class Halve:
        def __init__(self):
            self.base = 0.5

        def __call__(self, epoch):
            return self.base**epoch

    schedules = weft.optim.lr_scheduler
    schedule = schedules.LambdaLR(optimizer(weft), [Halve(), lambda epoch: 1.0])
    state = schedule.state_dict()
    assert state["lr_lambdas"] == [{"base": 0.5}, None]
    state["lr_lambdas"][0]["base"] = 0.25
    schedule.load_state_dict(state)
    assert schedule.lr_lambdas[0].base == 0.25
    cyclic = schedules.CyclicLR(optimizer(weft), 0.1, 0.2, scale_fn=Halve(), scale_mode="iterations")
    assert cyclic.state_dict()["_scale_fn_custom"] == {"base": 0.5}


def test_rates_that_are_tensors_are_written_into():
    rate = weft.tensor(0.5)
    owner = weft.optim.SGD([weft.ones(1)], lr=rate)
    schedule = weft.optim.lr_scheduler.ExponentialLR(owner, 0.5)
    owner.step()
    schedule.step()
    assert owner.param_groups[0]["lr"] is rate and rate.item() == 0.25
    assert owner.param_groups[0]["initial_lr"].item() == 0.5


class Own:
    """A schedule of a user, of either library."""

    def __new__(cls, library, owner):
        class Schedule(library.optim.lr_scheduler.LRScheduler):
            def get_lr(self):
                return [base / (1 + self.last_epoch) for base in self.base_lrs]

        return Schedule(owner)


def test_own_schedules():
    assert_same_course(Own(weft, optimizer(weft)), Own(torch, optimizer(torch)), epochs=5)
    with pytest.raises(NotImplementedError):
        weft.optim.lr_scheduler.LRScheduler(optimizer(weft))
    assert issubclass(weft.optim.lr_scheduler._LRScheduler, weft.optim.lr_scheduler.LRScheduler)


def warned(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [(each.category, str(each.message)) for each in caught]


def test_warnings():
    def early(library):
        schedule = library.optim.lr_scheduler.StepLR(optimizer(library), 3)
        schedule.step()
        schedule.step()

    def replaced(library):
        schedule = library.optim.lr_scheduler.StepLR(optimizer(library), 3)
        schedule.optimizer.step = lambda: None
        schedule.step()

    def asked(library):
        library.optim.lr_scheduler.StepLR(optimizer(library), 3).get_lr()

    def given_epoch(library):
        schedule = library.optim.lr_scheduler.StepLR(optimizer(library), 3)
        schedule.optimizer.step()
        schedule.step(4)

    def in_order(library):
        schedule = library.optim.lr_scheduler.StepLR(optimizer(library), 3)
        schedule.optimizer.step()
        schedule.step()

    for use, count in ((early, 1), (replaced, 1), (asked, 1), (given_epoch, 1), (in_order, 0)):
        ours = warned(partial(use, weft))
        assert ours == warned(partial(use, torch)) and len(ours) == count


WRONG = [
    lambda s, o: s.StepLR(3, 3),
    lambda s, o: s.StepLR(o(), 3, last_epoch=2),
    lambda s, o: s.LambdaLR(o(), [lambda epoch: 1]),
    lambda s, o: s.MultiplicativeLR(o(), [lambda epoch: 1]),
    lambda s, o: s.ConstantLR(o(), 2.0),
    lambda s, o: s.LinearLR(o(), 0),
    lambda s, o: s.LinearLR(o(), 0.5, 2.0),
    lambda s, o: s.SequentialLR(o(), [], []),
    lambda s, o: (lambda owner: s.SequentialLR(owner, [s.ConstantLR(owner)], [1]))(o()),
    lambda s, o: s.SequentialLR(o(), [s.ConstantLR(o())], []),
    lambda s, o: s.SequentialLR(o(), [object()], []),
    lambda s, o: (lambda owner: s.SequentialLR(owner, [s.ReduceLROnPlateau(owner)], []))(o()),
    lambda s, o: s.ChainedScheduler([]),
    lambda s, o: s.ChainedScheduler([object()]),
    lambda s, o: s.ChainedScheduler([s.ConstantLR(o()), s.ConstantLR(o())]),
    lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o())]),
    lambda s, o: s.ReduceLROnPlateau(3),
    lambda s, o: s.ReduceLROnPlateau(o(), factor=1.0),
    lambda s, o: s.ReduceLROnPlateau(o(), mode="x"),
    lambda s, o: s.ReduceLROnPlateau(o(), threshold_mode="x"),
    lambda s, o: s.ReduceLROnPlateau(o(), min_lr=[1]),
    lambda s, o: s.CyclicLR(3, 0.1, 0.2),
    lambda s, o: s.CyclicLR(o(), [0.1], 0.1),
    lambda s, o: s.CyclicLR(o(), 0.1, [0.1]),
    lambda s, o: s.CyclicLR(o(), 0.1, 0.2, mode="x"),
    lambda s, o: s.CyclicLR(o(), 0.1, 0.2, base_momentum=[0.1]),
    lambda s, o: s.CyclicLR(o("Adagrad"), 0.1, 0.2),
    lambda s, o: s.OneCycleLR(3, 0.1, 10),
    lambda s, o: s.OneCycleLR(o(), 0.1),
    lambda s, o: s.OneCycleLR(o(), 0.1, -1),
    lambda s, o: s.OneCycleLR(o(), 0.1, epochs=-1, steps_per_epoch=1),
    lambda s, o: s.OneCycleLR(o(), 0.1, epochs=1, steps_per_epoch=1.5),
    lambda s, o: s.OneCycleLR(o(), 0.1, 10, pct_start=2),
    lambda s, o: s.OneCycleLR(o(), 0.1, 10, anneal_strategy="x"),
    lambda s, o: s.OneCycleLR(o(), [0.1], 10),
    lambda s, o: s.OneCycleLR(o("Adagrad"), 0.1, 10),
    lambda s, o: s.CosineAnnealingWarmRestarts(o(), 0),
    lambda s, o: s.CosineAnnealingWarmRestarts(o(), 1.5),
    lambda s, o: s.CosineAnnealingWarmRestarts(o(), 1, 0),
    lambda s, o: s.CosineAnnealingWarmRestarts(o(), 1, eta_min="x"),
    lambda s, o: s.CosineAnnealingWarmRestarts(o(), 5).step(-1),
]


@pytest.mark.parametrize("make", WRONG)
def test_errors(make):
    results = [
        attempt(
            make, library.optim.lr_scheduler, lambda kind="SGD", library=library: optimizer(library, kind)
        )
        for library in (weft, torch)
    ]
    assert results[0] == results[1] and isinstance(results[0], tuple)
