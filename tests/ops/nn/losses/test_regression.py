import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from loss_inputs import REDUCTIONS, numbers
from oracle import check

import weft

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@pytest.mark.refuses(1)
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


@pytest.mark.refuses(["options2"])
@pytest.mark.parametrize("options", [{"beta": 0.5}, {"beta": 0}, {"beta": -1.0}])
def test_smooth_l1_beta(options):
    check(F + "smooth_l1_loss", numbers(5), numbers(5, seed=1), **options)


@pytest.mark.refuses(3)
@pytest.mark.parametrize("full", [True, False])
def test_gaussian_and_poisson(full):
    x, y = numbers(3, 4), numbers(3, 4, seed=1).abs() * 3
    for var in (y, y[:, :1], y[:, 0], 0.5, -1.0, -y, y[:2]):
        check(F + "gaussian_nll_loss", x, y, var, full)
    check(F + "poisson_nll_loss", x, y, full=full)
    check(F + "poisson_nll_loss", x.abs(), y, log_input=False, full=full)


@pytest.mark.parametrize("log_input", [True, False])
def test_the_stirling_term_of_poisson_is_for_targets_above_1(log_input):
    target = torch.tensor([0.0, 0.5, 1.0, 1.0 + 2**-52, 1.5, 3.0], dtype=torch.float64)
    check(F + "poisson_nll_loss", numbers(6).abs(), target, log_input, True, reduction="none")


LOSSES = [
    ("mse_loss", {}),
    ("l1_loss", {}),
    ("huber_loss", {"delta": 0.7}),
    ("smooth_l1_loss", {"beta": 0.0}),
    ("smooth_l1_loss", {"beta": 0.7}),
    ("smooth_l1_loss", {"beta": 2.0}),
    ("poisson_nll_loss", {"full": True}),
    ("gaussian_nll_loss", {"var": 2.0}),
    ("kl_div", {}),
    ("binary_cross_entropy_with_logits", {}),
]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name, options", LOSSES, ids=str)
def test_gradients_of_inputs_and_targets(name, options, reduction):
    found = []
    for lib in (torch, weft):
        values = ([0.5, -1.0, 3.0, 0.2, 2.0], [1.5, 1.0, 0.5, 0.2, 0.1])
        x, target = (lib.tensor(each, dtype=lib.float64, requires_grad=True) for each in values)
        loss = getattr(lib.nn.functional, name)(x, target, **options, reduction=reduction)
        found.append([each.tolist() for each in lib.autograd.grad((loss * loss).sum(), (x, target))])
    assert found[1] == [pytest.approx(each, rel=1e-12) for each in found[0]]


UNFIT = """
torch.func.grad(torch.nn.functional.mse_loss)(torch.tensor([0.5, 1.0]), torch.tensor([True, False]))
torch.func.grad(torch.nn.functional.smooth_l1_loss)(torch.tensor([0.5, 1.0]), torch.tensor([True, False]))
torch.func.grad(torch.nn.functional.huber_loss)(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 0.0]))
torch.nn.functional.smooth_l1_loss(torch.ones(2), torch.ones(2).cfloat())  # raises
torch.nn.functional.mse_loss(torch.ones(2), torch.ones(2) > 0)
torch.nn.functional.huber_loss(torch.ones(2), torch.ones(2), delta=nan)  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
