import pytest
from loss_inputs import REDUCTIONS, numbers
from oracle import check

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_weights(name, reduction):
    check(
        F + name,
        numbers(3, 4),
        numbers(3, 4, seed=1),
        reduction=reduction,
        weight=numbers(3, 4, seed=2).abs(),
    )
    check(F + name, numbers(3, 4), numbers(3, 4), weight=numbers(4))


@pytest.mark.parametrize("options", [{"beta": 0.5}, {"beta": 0}, {"beta": -1.0}])
def test_smooth_l1_beta(options):
    check(F + "smooth_l1_loss", numbers(5), numbers(5, seed=1), **options)


@pytest.mark.parametrize("full", [True, False])
def test_gaussian_and_poisson(full):
    x, y = numbers(3, 4), numbers(3, 4, seed=1).abs() * 3
    for var in (y, y[:, :1], y[:, 0], 0.5, -1.0, -y, y[:2]):
        check(F + "gaussian_nll_loss", x, y, var, full)
    check(F + "poisson_nll_loss", x, y, full=full)
    check(F + "poisson_nll_loss", x.abs(), y, log_input=False, full=full)
