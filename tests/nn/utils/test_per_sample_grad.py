"""Gradients of each sample's loss, beside PyTorch's."""

import numpy as np
import pytest
import torch

import weft

LAYERS = {
    "linear": (lambda nn: nn.Linear(4, 3), (5, 4)),
    "linear of sequences": (lambda nn: nn.Linear(4, 3, bias=False), (5, 2, 4)),
    "conv1d": (lambda nn: nn.Conv1d(2, 4, 3, padding="same"), (3, 2, 5)),
    "conv2d in groups": (lambda nn: nn.Conv2d(2, 4, 3, padding=1, groups=2), (3, 2, 5, 5)),
    "conv3d with stride": (lambda nn: nn.Conv3d(2, 3, 2, stride=2), (2, 2, 4, 4, 4)),
    "layer_norm": (lambda nn: nn.LayerNorm(4), (3, 2, 4)),
    "group_norm": (lambda nn: nn.GroupNorm(2, 4), (3, 4, 5)),
    "instance_norm": (lambda nn: nn.InstanceNorm1d(4, affine=True, track_running_stats=True), (3, 4, 5)),
    "two layers": (lambda nn: nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)), (3, 4)),
}


def per_sample(library):
    if library is weft:
        from weft.nn.utils._per_sample_grad import call_for_per_sample_grads
    else:
        from torch.nn.utils._per_sample_grad import call_for_per_sample_grads
    return call_for_per_sample_grads


def grads(library, layer, weights, x, loss_reduction):
    """The results, the gradients of the samples, the gradient of the input, and the state afterwards."""
    module = layer(library.nn).double()
    module.load_state_dict({name: library.tensor(each) for name, each in weights.items()})
    x = library.tensor(x, requires_grad=True) if x.dtype == float else library.tensor(x)
    y = per_sample(library)(module, loss_reduction=loss_reduction)(x)
    (y * y).sum().backward()
    assert all(each.grad is None for each in module.parameters())
    found = [y, *(each.grad_sample for each in module.parameters()), *module.buffers()]
    return [each.detach().numpy() for each in [*found, *([] if x.grad is None else [x.grad])]]


def state(layer):
    return {name: each.numpy() for name, each in layer(torch.nn).double().state_dict().items()}


@pytest.mark.parametrize("loss_reduction", ["sum", "mean"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, loss_reduction):
    layer, shape = LAYERS[name]
    weights, x = state(layer), np.random.default_rng(0).standard_normal(shape)
    own, other = (grads(library, layer, weights, x, loss_reduction) for library in (weft, torch))
    assert len(own) == len(other)
    for a, b in zip(own, other):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"padding_idx": 1}, {"sparse": True}])
def test_embedding(options):
    def layer(nn):
        return nn.Embedding(7, 3, **options)

    x = np.array([[1, 2], [3, 3], [0, 1]])
    weights = state(layer)
    own, other = (grads(library, layer, weights, x, "sum") for library in (weft, torch))
    for a, b in zip(own, other):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def used_twice(library):
    """The gradients of the samples of a layer that a module calls two times."""

    class Twice(library.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = library.nn.Linear(2, 2).double()
            self.linear.load_state_dict(
                {"weight": library.ones(2, 2).double() / 2, "bias": library.zeros(2).double()}
            )

        def forward(self, x):
            return self.linear(self.linear(x))

    module = Twice()
    per_sample(library)(module)(library.arange(6.0).double().reshape(3, 2)).sum().backward()
    return module.linear.weight.grad_sample.numpy()


def test_a_layer_that_is_used_twice_adds():
    np.testing.assert_allclose(used_twice(weft), used_twice(torch))


@pytest.mark.parametrize(
    "call",
    [
        lambda t, f: f(t.nn.Linear(2, 2), loss_reduction="max"),
        lambda t, f: f(t.ones(2)),
        lambda t, f: f(t.nn.Linear(2, 2), batch_size=2.0),
        lambda t, f: f(t.nn.Linear(2, 2), batch_size=0),
        lambda t, f: f(t.nn.Linear(2, 2), batch_size=4)(t.ones(3, 2)),
        lambda t, f: f(t.nn.Linear(2, 2))(t.ones(2)),
        lambda t, f: f(t.nn.Linear(2, 2))(3),
        lambda t, f: f(t.nn.Bilinear(2, 2, 2))(t.ones(3, 2), t.ones(4, 2)),
        lambda t, f: f(t.nn.LayerNorm((3, 2)))(t.ones(3, 2)),
        lambda t, f: f(t.nn.Embedding(3, 2))(t.tensor([1, 2])),
        lambda t, f: f(t.nn.BatchNorm1d(2))(t.ones(3, 2)),
        lambda t, f: f(t.nn.Linear(2, 2))(t.ones(0, 2)),
    ],
)
def test_errors(call):
    for library in (weft, torch):
        with pytest.raises(RuntimeError):
            call(library, per_sample(library))


def test_gradients_of_a_call_before_must_be_taken_away():
    linear = weft.nn.Linear(2, 2)
    per_sample(weft)(linear)(weft.ones(3, 2)).sum().backward()
    with pytest.raises(RuntimeError, match="grad_sample already"):
        per_sample(weft)(linear)
