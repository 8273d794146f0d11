"""Masks of weights while a model is trained: the masks, the levels of sparsity and the states are PyTorch's."""

import copy
import warnings

import numpy as np
import pytest
import torch

import weft

LIBRARIES = weft, torch
RANDOM = np.random.default_rng(1)
WEIGHTS = {"0.weight": (8, 12), "2.inner.weight": (5, 8)}


def model_of(library):
    nn = library.nn
    inner = nn.Sequential()
    inner.add_module("inner", nn.Linear(8, 5))
    model = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), inner)
    random = np.random.default_rng(2)
    with library.no_grad():
        for name, shape in WEIGHTS.items():
            model.get_parameter(name).copy_(
                library.from_numpy(random.standard_normal(shape).astype(np.float32))
            )
        for each in (model[0].bias, inner.inner.bias):
            each.zero_()
    return model


SETTINGS = [
    dict(),
    dict(sparsity_level=0.3, sparse_block_shape=(2, 4)),
    dict(sparsity_level=0.7, sparse_block_shape=(1, 1), norm=1),
    dict(sparsity_level=0.6, sparse_block_shape=(1, 4), zeros_per_block=2),
    dict(sparsity_level=1.0, sparse_block_shape=(1, 4), zeros_per_block=2),
    dict(sparsity_level=0.5, sparse_block_shape=(4, 4), zeros_per_block=5, norm=lambda t: t.abs().sqrt()),
    dict(sparsity_level=0.0),
    dict(sparsity_level=1.0),
    dict(sparsity_level=0.5, sparse_block_shape=(3, 5)),
    dict(zeros_per_block=0),
]


@pytest.mark.parametrize(
    "settings", SETTINGS, ids=lambda settings: ", ".join(map(str, settings)) or "defaults"
)
def test_norms_of_weights(settings):
    found = []
    for library in LIBRARIES:
        pruning, model = library.ao.pruning, model_of(library)
        sparsifier = pruning.WeightNormSparsifier(**settings)
        config = (
            [{"tensor_fqn": "0.weight"}] if "zeros_per_block" in settings else None
        )  # blocks of PyTorch must fit
        sparsifier.prepare(model, config)
        sparsifier.step()
        masks = [
            sparsifier.state[group["tensor_fqn"]]["mask"].double().numpy() for group in sparsifier.groups
        ]
        x = library.from_numpy(RANDOM.standard_normal((3, 12)).astype(np.float32) * 0 + 0.5)
        out = model(x)
        out.sum().backward()
        gradient = model[0].parametrizations.weight.original.grad.numpy()
        names = sorted(model.state_dict())
        text = repr(sparsifier)
        sparsifier.squash_mask(
            params_to_keep=("sparsity_level",), params_to_keep_per_layer={"0": ("zeros_per_block",)}
        )
        found.append(
            (
                masks,
                out.detach().numpy(),
                gradient,
                names,
                model[0].sparse_params,
                type(model[0].weight).__name__,
                text.count("\n"),
            )
        )
    for own, other in zip(found[0][0], found[1][0]):
        np.testing.assert_array_equal(own, other)
    for i in (1, 2):
        np.testing.assert_allclose(found[0][i], found[1][i], rtol=1e-5, atol=1e-6)
    assert found[0][3:] == found[1][3:]


@pytest.mark.parametrize("nearliness", [-1, 1, 3, 5, 2, 11])
def test_diagonals(nearliness):
    found = []
    for library in LIBRARIES:
        sparsifier = library.ao.pruning.NearlyDiagonalSparsifier(nearliness)
        model = model_of(library)
        sparsifier.prepare(model, None)
        try:
            sparsifier.step()
            found.append(
                [model[0].weight.tolist(), sorted(group["tensor_fqn"] for group in sparsifier.groups)]
            )
        except ValueError:
            found.append("refused")
    assert found[0] == found[1]


def test_schedules():
    found = []
    for library in LIBRARIES:
        pruning = library.ao.pruning
        levels = []
        for make in (
            lambda s, pruning=pruning: pruning.LambdaSL(s, lambda epoch: 0.5**epoch),
            lambda s, pruning=pruning: pruning.LambdaSL(s, [lambda epoch: epoch, lambda epoch: 2.0]),
            lambda s, pruning=pruning: pruning.CubicSL(
                s, init_sl=[0.1, 0.0], init_t=2, delta_t=1, total_t=4, initially_zero=[True, False]
            ),
        ):
            sparsifier = pruning.WeightNormSparsifier(sparsity_level=0.8)
            sparsifier.prepare(
                model_of(library),
                [{"tensor_fqn": "0.weight"}, {"tensor_fqn": "2.inner.weight", "sparsity_level": 0.4}],
            )
            schedule = make(sparsifier)
            for _ in range(7):
                levels.append(schedule.get_last_sl())
                sparsifier.step()
                schedule.step()
            levels.append((schedule.last_epoch, sorted(set(schedule.state_dict()) - {"sl_lambdas"})))
            with pytest.raises(ValueError):
                pruning.CubicSL(sparsifier, init_sl=[1.0])
        found.append(levels)
    assert found[0] == found[1]


def test_a_schedule_before_the_first_step_warns():
    for library in LIBRARIES:
        sparsifier = library.ao.pruning.WeightNormSparsifier()
        sparsifier.prepare(model_of(library), None)
        schedule = library.ao.pruning.LambdaSL(sparsifier, lambda epoch: 1.0)
        with pytest.warns(UserWarning, match="before"):
            schedule.step()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sparsifier.step()
            schedule.step()


def test_states():
    found = []
    for library in LIBRARIES:
        pruning = library.ao.pruning
        first = pruning.WeightNormSparsifier(sparsity_level=0.25)
        first.prepare(model_of(library), [{"tensor_fqn": "0.weight"}])
        first.step()
        state = copy.deepcopy(first.state_dict())
        second = pruning.WeightNormSparsifier()
        second.prepare(model_of(library), [{"tensor_fqn": "0.weight"}])
        second.load_state_dict(state)
        assert second.groups[0]["module"] is second.model[0]
        found.append(
            (second.model[0].weight.tolist(), [sorted(group) for group in first.state_dict()["groups"]])
        )
    assert found[0] == found[1]


def test_names_and_errors():
    for library in LIBRARIES:
        pruning, model = library.ao.pruning, model_of(library)
        assert (
            pruning.module_to_fqn(model, model[2][0]) == "2.inner"
            and pruning.module_to_fqn(model[0], model) is None
        )
        assert pruning.fqn_to_module(model, "2.inner.weight") is model[2][0].weight
        assert pruning.fqn_to_module(model, "3.inner") is None
        info = pruning.get_arg_info_from_tensor_fqn(model, "2.inner.bias")
        assert (info["module_fqn"], info["tensor_name"]) == ("2.inner", "bias")
        for config in ([{}], [3], [{"tensor_fqn": "0.weight", "module": model[1]}]):
            with pytest.raises(AssertionError):
                pruning.WeightNormSparsifier().prepare(model_of(library), config)
        with pytest.raises(NotImplementedError):
            pruning.WeightNormSparsifier(norm=3)
        with pytest.raises(TypeError):
            pruning.BaseScheduler(3)
        with pytest.raises(TypeError):
            pruning.BaseSparsifier()
        sparsifier = pruning.WeightNormSparsifier(zeros_per_block=9)
        sparsifier.prepare(model, None)
        with pytest.raises(ValueError):
            sparsifier.step()
        with pytest.raises(NotImplementedError):
            sparsifier.convert(model)


def test_convert():
    for library in LIBRARIES:

        class Dense(library.nn.Identity):
            @classmethod
            def from_dense(cls, mod):
                return cls()

        sparsifier, model = library.ao.pruning.WeightNormSparsifier(), model_of(library)
        sparsifier.prepare(model, [{"tensor_fqn": "2.inner.weight"}])
        made = sparsifier.convert(model, {library.nn.Linear: Dense})
        assert (
            type(made[2][0]) is Dense
            and type(made[0]) is library.nn.Linear
            and type(model[2][0]) is not Dense
        )
