import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from loss_inputs import REDUCTIONS, numbers
from oracle import check

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@pytest.mark.refuses(3)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_margin_losses(reduction):
    x, y, signs = numbers(3, 5), numbers(3, 5, seed=1), numbers(3, 5, seed=2).sign()
    check(F + "hinge_embedding_loss", x, signs, 2.0, reduction=reduction)
    check(F + "margin_ranking_loss", x, y, signs, 0.5, reduction=reduction)
    check(F + "cosine_embedding_loss", x, y, signs[:, 0], 0.2, reduction=reduction)
    check(F + "cosine_embedding_loss", x[0], y[0], signs[0, 0], reduction=reduction)
    classes = torch.tensor([4, 0, 2])
    for p in (1, 2, 3):
        check(F + "multi_margin_loss", x, classes, p, 0.7, numbers(5).abs(), reduction=reduction)
    check(F + "multi_margin_loss", x[0], classes[0], reduction=reduction)
    check(F + "multi_margin_loss", x, classes + 1)
    labels = torch.tensor([[0, 3, -1, 1, 1], [-1, 0, 0, 0, 0], [1, 1, 4, 0, 2]])
    check(F + "multilabel_margin_loss", x, labels, reduction=reduction)
    check(F + "multilabel_margin_loss", x[0], labels[0], reduction=reduction)
    check(F + "multilabel_margin_loss", x, labels + 3)


UNFIT = """
torch.nn.functional.multilabel_margin_loss(torch.ones(1), torch.tensor(0))
torch.nn.functional.multilabel_margin_loss(torch.tensor(1.0), torch.tensor([0]))
torch.nn.functional.multilabel_margin_loss(torch.ones(2), torch.tensor(0))  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
