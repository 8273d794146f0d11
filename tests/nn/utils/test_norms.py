"""The older weight and spectral normalization."""

import pytest
from alike import backward, same


def layer(lib, norm, **options):
    result = lib.nn.Linear(3, 2)
    result.load_state_dict({"weight": lib.arange(6.0).reshape(2, 3), "bias": lib.ones(2)})
    return getattr(lib.nn.utils, norm)(result, **options)


def graded(lib, module):
    backward(module(lib.ones(1, 3)))
    return [(name, parameter.grad) for name, parameter in module.named_parameters()]


def removed(lib, module, norm):
    getattr(lib.nn.utils, f"remove_{norm}")(module)
    return module.weight, list(module.state_dict()), module._forward_pre_hooks, module._state_dict_hooks


ACTIONS = {
    "weight": lambda lib, m, norm: m.weight,
    "state": lambda lib, m, norm: (m.state_dict(), m.state_dict()._metadata),
    "calls": lambda lib, m, norm: [m(lib.ones(1, 3)), m(lib.ones(1, 3)), m.eval()(lib.ones(1, 3))],
    "gradients": lambda lib, m, norm: graded(lib, m),
    "removed": removed,
    "loaded": lambda lib, m, norm: m.load_state_dict(m.state_dict()),
    "twice": lambda lib, m, norm: getattr(lib.nn.utils, norm)(m),
    "not there": lambda lib, m, norm: getattr(lib.nn.utils, f"remove_{norm}")(lib.nn.Linear(1, 1)),
}


@pytest.mark.refuses(
    ["twice-weight_norm", "twice-spectral_norm", "not there-weight_norm", "not there-spectral_norm"]
)
@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm"])
@pytest.mark.parametrize("action", ACTIONS)
def test_as_in_torch(action, norm):
    same(lambda lib: ACTIONS[action](lib, layer(lib, norm), norm))


@pytest.mark.parametrize("dim", [1, None])
def test_dims_as_in_torch(dim):
    same(lambda lib: layer(lib, "weight_norm", dim=dim).state_dict())


@pytest.mark.refuses("all")
def test_power_iterations_must_be_positive():
    same(lambda lib: layer(lib, "spectral_norm", n_power_iterations=0))


def test_rows_of_convolutions():
    same(lambda lib: lib.nn.utils.spectral_norm(lib.nn.Conv2d(3, 5, 2)).weight_u.shape)
    same(lambda lib: lib.nn.utils.spectral_norm(lib.nn.ConvTranspose2d(3, 5, 2)).weight_u.shape)
