import pytest
from loss_inputs import REDUCTIONS, numbers
from oracle import check

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@pytest.mark.refuses(
    [
        "mse_loss-other",
        "l1_loss-other",
        "smooth_l1_loss-other",
        "huber_loss-other",
        "soft_margin_loss-other",
        "poisson_nll_loss-other",
        "kl_div-other",
        "binary_cross_entropy_with_logits-other",
        "multilabel_soft_margin_loss-other",
    ]
)
@pytest.mark.parametrize("reduction", [*REDUCTIONS, "other"])
@pytest.mark.parametrize(
    "name",
    ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "poisson_nll_loss", "kl_div",
     "binary_cross_entropy_with_logits", "multilabel_soft_margin_loss"],
)  # fmt: skip
def test_elementwise_losses(name, reduction):
    check(F + name, numbers(3, 4), numbers(3, 4, seed=1), reduction=reduction)


@pytest.mark.parametrize("size_average", [None, True, False])
@pytest.mark.parametrize("reduce", [None, True, False])
def test_older_names_of_reductions(size_average, reduce):
    check(F + "mse_loss", numbers(3), numbers(3, seed=1), size_average=size_average, reduce=reduce)
