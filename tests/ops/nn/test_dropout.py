import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import assert_same, check, to_weft

import weft

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."
NAMES = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")


def check_drawn(path, *args, seed=0, **kwargs):
    """The same numbers after the same seed."""
    torch.manual_seed(seed)
    weft.manual_seed(seed)
    check(path, *args, **kwargs)


@pytest.mark.may_raise(least=0.6)
@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(NAMES),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.2, 0.7, 1.0, 1.5]),
    st.booleans(),
    st.sampled_from(["float32", "float64"]),
    st.integers(0, 99),
)
def test_dropout_drops_the_same_elements(name, ndim, p, training, dtype, seed):
    x = torch.randn((3, 4, 2, 3, 2)[:ndim]).to(getattr(torch, dtype))
    check_drawn(F + name, x, p, training, seed=seed)


def test_noise_follows_memory():
    x = torch.randn(4, 6)
    check_drawn(F + "dropout", x.t(), 0.5)
    check_drawn(F + "dropout", x[:, ::2], 0.5)


@pytest.mark.parametrize("name", ["dropout_", "feature_dropout_", "alpha_dropout_", "feature_alpha_dropout_"])
def test_in_place_forms(name):
    check_drawn(name, torch.randn(3, 4), 0.4, True)


def test_native_dropout_gives_the_mask():
    check_drawn("native_dropout", torch.randn(20), 0.4, True)
    check_drawn("native_dropout", torch.randn(20), 0.4, False)


@pytest.mark.refuses(1)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("inplace", [True, False])
def test_rrelu(training, inplace):
    check_drawn(F + "rrelu", torch.randn(5, 6), 0.1, 0.6, training, inplace)
    check(F + "rrelu", torch.randn(3), 0.6, 0.1)


@pytest.mark.parametrize("hard", [True, False])
def test_gumbel_softmax(hard):
    logits = torch.randn(4, 5)
    torch.manual_seed(5)
    expected = torch.nn.functional.gumbel_softmax(logits, 0.7, hard)
    weft.manual_seed(5)
    assert_same(weft.nn.functional.gumbel_softmax(to_weft(logits), 0.7, hard), expected)


UNFIT = """
torch.nn.functional.dropout("a", training=False)  # raises
torch.nn.functional.dropout(None, 0.0)  # raises
torch.nn.functional.dropout(torch.ones(2), 0.0, "a")  # raises
torch.nn.functional.dropout(torch.ones(2), training=2)  # raises
torch.nn.functional.dropout(torch.ones(2), nan)  # raises
torch.nn.functional.dropout(torch.ones(2), nan, False)  # raises
torch.nn.functional.dropout(torch.ones(2), "a")  # raises
torch.nn.functional.dropout(torch.ones(2), 2)  # raises
torch.nn.functional.dropout(torch.ones(2), 1)
torch.nn.functional.alpha_dropout(torch.ones(2), nan)  # raises
torch.nn.functional.dropout3d(torch.ones(2, 2, 2, 2), nan)  # raises
torch.nn.functional.scaled_dot_product_attention(*[torch.ones(1, 2, 2, 3)] * 3, dropout_p=2.0)  # raises
torch.nn.functional.scaled_dot_product_attention(*[torch.ones(1, 2, 2, 3)] * 3, dropout_p=nan)  # raises
torch.nn.functional.rrelu(torch.ones(2), -1.0, inf, True)  # raises
torch.nn.functional.rrelu(torch.ones(2), nan, 1.0)  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
