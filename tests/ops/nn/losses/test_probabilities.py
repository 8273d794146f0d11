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
