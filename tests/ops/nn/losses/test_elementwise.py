import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from loss_inputs import REDUCTIONS, numbers
from oracle import to_torch, to_weft

import weft

LOSSES = {
    "mse_loss": {},
    "smooth_l1_loss": {"beta": 0.5},
    "huber_loss": {"delta": 0.5},
    "binary_cross_entropy": {},
    "binary_cross_entropy_with_logits": {},
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.filterwarnings("ignore")
def test_first_and_second_derivatives(name, reduction):
    values = numbers(3, 4).sigmoid(), numbers(3, 4, seed=1).sigmoid(), numbers(3, 4, seed=2)
    found = []
    for library, convert, back in ((torch, torch.clone, torch.clone), (weft, to_weft, to_torch)):
        x, target, direction = (convert(each) for each in values)
        x.requires_grad_(), target.requires_grad_()
        loss = getattr(library.nn.functional, name)(x, target, reduction=reduction, **LOSSES[name])
        first = library.autograd.grad(loss.sum(), (x, target), create_graph=True)
        second = library.autograd.grad((first[0] * direction).sum(), x)
        found.append((loss.grad_fn.name(), [back(each.detach()) for each in (loss, *first, *second)]))
    assert found[0][0] == found[1][0]
    for expected, got in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize(
    "expression",
    lines("""
torch.nn.functional.smooth_l1_loss(torch.ones(2), torch.zeros(2), beta=nan)  # raises
torch.nn.functional.smooth_l1_loss(torch.ones(2), torch.zeros(2), beta=-1.0)  # raises
torch.nn.functional.huber_loss(torch.ones(2), torch.zeros(2), delta=nan)  # raises
"""),
)
def test_thresholds_that_are_no_lengths_are_refused(expression):
    check_expression(expression)
