"""Histograms, counts and losses of alignments on a device give what the CPU's give, without arrays on the host.

The device is the reference device, or the one that TESTED_DEVICE names.
"""

import pytest
from drawn import HERE, check
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft as torch
from weft.nn import functional as F

pytestmark = pytest.mark.usefixtures("without_arrays")


def numbers(*shape, dtype=torch.float32, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def moved(at, *tensors):
    return [each.to(at) for each in tensors]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("density", [False, True])
def test_histograms(dtype, density):
    x, weight, edges = numbers(3000, dtype=dtype), numbers(3000, seed=1).abs(), torch.tensor([-2.0, 0, 0, 1])
    x[:3] = torch.tensor([float("nan"), float("inf"), 1.0])
    weight, edges = weight.to(dtype), edges.to(dtype)

    def function(x, weight, edges):
        options = {"density": density, "range": (-1.0, 1.0)}
        equal = torch.histogram(x, 7, weight=weight, **options), torch.histogram(x, 7, **options)
        plane = torch.histogramdd(x[3:].reshape(-1, 3), [2, 3, 4], density=density).hist
        return *(each.hist for each in (*equal, torch.histogram(x, edges, density=density))), plane

    check(function, lambda at: moved(at, x, weight, edges), exactly=False)
    check(lambda x, weight, edges: torch.histogram(x[:0], 3), lambda at: moved(at, x, weight, edges))


def test_counts_of_integers():
    x, weight = torch.randint(0, 50, (3000,), generator=torch.Generator().manual_seed(0)), numbers(3000)

    def function(x, weight):
        counts = torch.bincount(x, minlength=70), torch.bincount(x.int())
        return *counts, torch.bincount(x, weight), torch.bincount(x.to(torch.uint8), x)

    check(function, lambda at: moved(at, x, weight))


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_alignments(dtype, data):
    steps, batch, most, classes = (
        data.draw(st.integers(*each)) for each in ((1, 40), (1, 5), (0, 9), (2, 6))
    )
    scores = numbers(steps, batch, classes, dtype=dtype).log_softmax(2)
    targets = torch.tensor(
        [[data.draw(st.integers(1, classes - 1)) for _ in range(most)] for _ in range(batch)]
    )
    targets = targets.reshape(batch, most).to(torch.int64)
    inputs, lengths = (
        torch.tensor([data.draw(st.integers(0, bound)) for _ in range(batch)]) for bound in (steps, most)
    )
    if data.draw(st.booleans()):
        targets = torch.cat([row[:length] for row, length in zip(targets, lengths, strict=True)])
    options = {"zero_infinity": data.draw(st.booleans())}

    def function(scores, targets):
        scores = scores.detach().clone().requires_grad_()
        losses = F.ctc_loss(scores, targets, inputs, lengths, reduction="none", **options)
        return losses.detach(), torch.autograd.grad(losses.sum(), scores)[0]

    check(function, lambda at: moved(at, scores, targets), exactly=False)


def test_a_label_out_of_range_is_named():
    for where in ("cpu", HERE):
        scores, targets = moved(where, numbers(5, 1, 3), torch.tensor([[7]]))
        with pytest.raises(IndexError, match="target 7 is out of bounds, there are 3 classes"):
            F.ctc_loss(scores, targets, (5,), (1,))
