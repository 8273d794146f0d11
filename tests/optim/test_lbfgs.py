"""L-BFGS against the oracle, on functions whose gradients are computed by NumPy for both."""

import numpy as np
import pytest
import torch
from alike import same

import weft

OPTIONS = [
    {"lr": 0.1},
    {"lr": 1, "max_iter": 10},
    {"lr": 1, "history_size": 2, "max_iter": 7},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "max_iter": 3, "history_size": 3},
    {"line_search_fn": "strong_wolfe", "max_eval": 5, "lr": 0.01},
    {"tolerance_grad": 1e-1},
    {"tolerance_change": 1e-2},
]


def rosenbrock(x):
    """Value and gradient; its valley is curved, so line searches have work to do."""
    a, b = x[:-1], x[1:]
    value = np.sum(100 * (b - a * a) ** 2 + (1 - a) ** 2)
    grad = np.zeros_like(x)
    grad[:-1] = -400 * a * (b - a * a) - 2 * (1 - a)
    grad[1:] += 200 * (b - a * a)
    return value, grad


def bowl(x):
    weights = np.arange(1, len(x) + 1)
    return np.sum(weights * (x - 1) ** 2), 2 * weights * (x - 1)


def minimise(library, function, start, options, steps):
    """Two parameters, which are halves of the vector; the state after some steps, and the losses."""
    half = len(start) // 2
    params = [library.tensor(part.tolist(), dtype=library.float64) for part in (start[:half], start[half:])]
    optimizer = library.optim.LBFGS(params, **options)

    def closure():
        value, grad = function(np.concatenate([param.numpy() for param in params]))
        params[0].grad = library.tensor(grad[:half].tolist(), dtype=library.float64)
        params[1].grad = library.tensor(grad[half:].tolist(), dtype=library.float64)
        return library.tensor(float(value), dtype=library.float64)

    losses = [optimizer.step(closure).item() for _ in range(steps)]
    return np.concatenate([param.numpy() for param in params]), losses, optimizer


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("function", [rosenbrock, bowl])
def test_same_way_as_the_oracle(function, options):
    start = np.array([-1.2, 1.0, 0.5, -0.3])
    if function is rosenbrock and "line_search_fn" not in options:
        options = {**options, "lr": 1e-3}  # whole steps would leave the valley for good
    ours, losses, optimizer = minimise(weft, function, start, options, 4)
    theirs, reference, their_optimizer = minimise(torch, function, start, options, 4)
    np.testing.assert_allclose(losses, reference, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)
    state, expected = (each.state_dict()["state"] for each in (optimizer, their_optimizer))
    assert state[0]["func_evals"] == expected[0]["func_evals"] and state[0]["n_iter"] == expected[0]["n_iter"]
    assert set(state[0]) == set(expected[0])
    assert len(state[0]["old_dirs"]) == len(expected[0]["old_dirs"])


@pytest.mark.parametrize("lr", [1, 0.5, "tensor"])
def test_step_size_in_the_state_has_the_type_of_the_rate(lr):
    def program(lib):
        weight = lib.tensor([1.0, 2.0])
        optimizer = lib.optim.LBFGS([weight], lr=lib.tensor([0.5]) if lr == "tensor" else lr, max_iter=3)

        def closure():
            weight.grad = weight * 2
            return (weight * weight).sum()

        optimizer.step(closure)
        return optimizer.state_dict()["state"][0]["t"]

    same(program)


def test_finds_the_minimum():
    found, losses, _ = minimise(
        weft, rosenbrock, np.array([0.5, 0.3, 0.2, -0.3]), {"line_search_fn": "strong_wolfe"}, 6
    )
    np.testing.assert_allclose(found, np.ones(4), atol=1e-5)
    assert losses[-1] < 1e-8 < losses[0]


def test_errors():
    weights = [weft.ones(2), weft.ones(2)]
    with pytest.raises(ValueError, match="LBFGS doesn't support per-parameter options"):
        weft.optim.LBFGS([{"params": [each]} for each in weights])
    optimizer = weft.optim.LBFGS(weights, line_search_fn="x")

    def closure():
        weights[0].grad = weft.ones(2)
        return weft.tensor(1.0)

    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optimizer.step(closure)
    with pytest.raises(TypeError, match="closure"):
        optimizer.step()
