"""A backward pass in two halves adds what a whole one adds, and the first half nothing but the gradients of the inputs."""

import pytest

import weft
from weft.autograd.halves import backward_inputs


class Model(weft.nn.Module):
    """Two uses of a layer, a result that no input reaches, and one that is a parameter."""

    def __init__(self):
        super().__init__()
        self.layer, self.norm = weft.nn.Linear(4, 4), weft.nn.LayerNorm(4)
        self.attention = weft.nn.MultiheadAttention(4, 2, batch_first=True)
        self.scale = weft.nn.Parameter(weft.ones(4) / 2)

    def forward(self, x):
        y = weft.tanh(self.layer(x))
        y = self.norm(self.layer(y) + x) * self.scale.exp()
        return self.attention(y, y, y)[0] + y, self.scale * 2, self.scale, y[:1].sum(0) @ self.layer.weight


@pytest.mark.parametrize("requires_grad", [True, False])
def test_same_as_a_whole_pass(requires_grad):
    weft.manual_seed(0)
    model = Model().double()
    x = weft.randn(2, 3, 4, dtype=weft.float64, requires_grad=requires_grad)
    results = model(x)
    gradients = [weft.randn_like(each) for each in results]
    weft.autograd.backward(results, gradients)
    expected = [each.grad.clone() for each in (x, *model.parameters()) if each.requires_grad]
    model.zero_grad()
    x.grad = None
    complete = []
    for each in model.parameters():
        each.register_post_accumulate_grad_hook(lambda each: complete.append(each))
    rest = backward_inputs(model(x), gradients, [x] if requires_grad else [])
    assert not complete and all(each.grad is None for each in model.parameters())
    assert (x.grad is not None) == requires_grad
    rest.run()
    assert len(complete) == len(list(model.parameters()))
    found = [each.grad for each in (x, *model.parameters()) if each.requires_grad]
    for ours, whole in zip(found, expected, strict=True):
        weft.testing.assert_close(ours, whole)


def test_a_function_with_gradients_of_its_own():
    calls = []

    class Scaled(weft.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x * weight

        @staticmethod
        def backward(ctx, gradient):
            calls.append(ctx.needs_input_grad)
            x, weight = ctx.saved_tensors
            return gradient * weight, gradient * x

    x, weight = (weft.full((2,), value, requires_grad=True) for value in (2.0, 3.0))
    rest = backward_inputs([Scaled.apply(x, weight)], [weft.ones(2)], [x])
    rest.run()
    assert (x.grad.tolist(), weight.grad.tolist()) == ([3, 3], [2, 2])
    assert len(calls) == 2  # it computes both gradients, whatever the halves want
