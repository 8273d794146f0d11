import pytest
import torch
from loss_inputs import REDUCTIONS, numbers
from oracle import check

import weft

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@pytest.mark.refuses(4)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_cross_entropy(reduction):
    p, q = numbers(3, 4).sigmoid(), numbers(3, 4, seed=1).sigmoid()
    check(F + "binary_cross_entropy", p, q, weight=numbers(4).abs(), reduction=reduction)
    check(F + "binary_cross_entropy", (p > 0.5).double(), q, reduction=reduction)
    check(
        F + "binary_cross_entropy_with_logits", p, q, numbers(4), pos_weight=numbers(4), reduction=reduction
    )
    for wrong in ((p - 1, q), (p, q + 1), (p, q[:2]), (p, q.float())):
        check(F + "binary_cross_entropy", *wrong)


@pytest.mark.parametrize("log_target", [True, False])
@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
def test_kl_div(log_target, reduction):
    target = numbers(3, 4, seed=1).log_softmax(1)
    target = target if log_target else target.exp() * (target > -2)
    check(F + "kl_div", numbers(3, 4), target, log_target=log_target, reduction=reduction)


@pytest.mark.refuses(["dtype0", "dtype1", "dtype2"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.bool, torch.float32])
def test_targets_of_logits_are_floats(dtype):
    x, target = numbers(3, 4), numbers(3, 4).sigmoid().round().to(dtype)
    check(F + "binary_cross_entropy_with_logits", x.float(), target)
    check(F + "binary_cross_entropy_with_logits", x.float(), target, reduction="none")
    check(F + "binary_cross_entropy_with_logits", x.float(), target, pos_weight=numbers(4).float())
    check(F + "binary_cross_entropy_with_logits", x.long(), target)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_gradients_at_the_ends(reduction):
    """Of probabilities that are 0 or 1: bounded for the input, but not for the target."""
    found = []
    for lib in (torch, weft):
        values = ([0.0, 1.0, 0.0, 1.0, 0.3], [0.0, 0.0, 1.0, 1.0, 0.6])
        p, target = (lib.tensor(each, dtype=lib.float64, requires_grad=True) for each in values)
        loss = lib.nn.functional.binary_cross_entropy(p, target, reduction=reduction)
        found.append([g.tolist() for g in lib.autograd.grad(loss.sum(), (p, target))])
    assert found[1] == [pytest.approx(each, rel=1e-8) for each in found[0]]


def test_gradient_of_weighted_logits_keeps_the_digits_of_bfloat16():
    """A few units in the last place, also where the two terms of the loss almost cancel."""
    x, target = (numbers(40, 5, seed=seed).bfloat16() for seed in (2, 3))
    target, weight = target.sigmoid(), numbers(5, seed=4).exp().bfloat16()
    found = []
    for lib in (torch, weft):
        logits, targets, weights = (
            lib.tensor(each.tolist(), dtype=lib.bfloat16) for each in (x, target, weight)
        )
        inputs = (logits.requires_grad_(), targets.requires_grad_())  # PyTorch has no gradient of pos_weight
        loss = lib.nn.functional.binary_cross_entropy_with_logits(*inputs, pos_weight=weights)
        found.append([torch.tensor(g.tolist()) for g in lib.autograd.grad(loss, inputs)])
    for got, want in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(got, want, rtol=0.016, atol=1e-5)
