import pytest
from loss_inputs import REDUCTIONS, numbers
from oracle import check

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@pytest.mark.refuses(2)
@pytest.mark.parametrize("swap", [True, False])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_triplets(swap, reduction):
    a, p, n = (numbers(4, 3, seed=seed) for seed in range(3))
    check(F + "triplet_margin_loss", a, p, n, 0.8, 3.0, swap=swap, reduction=reduction)
    check(F + "triplet_margin_with_distance_loss", a, p, n, swap=swap, reduction=reduction)
    check(F + "triplet_margin_loss", a, p, n[0])
    check(F + "triplet_margin_loss", a, p, n, -1.0)
