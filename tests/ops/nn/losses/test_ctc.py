import numpy as np
import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from loss_inputs import REDUCTIONS, numbers
from oracle import check

import weft

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@pytest.mark.may_raise(least=0.4)
@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 6),
    st.integers(0, 4),
    st.sampled_from(REDUCTIONS),
    st.booleans(),
    st.booleans(),
    st.integers(0, 99),
)
def test_ctc(batch, steps, most, reduction, zero_infinity, flat, seed):
    generator = torch.Generator().manual_seed(seed)
    log_probs = numbers(steps, batch, 4, seed=seed).log_softmax(2)
    targets = torch.randint(1, 4, (batch, max(most, 1)), generator=generator)
    lengths = torch.randint(0, most + 1, (batch,), generator=generator)
    inputs = torch.randint(1, steps + 1, (batch,), generator=generator)
    if flat:
        targets = torch.cat([row[:n] for row, n in zip(targets, lengths, strict=True)])
    options = {"reduction": reduction, "zero_infinity": zero_infinity}
    check(F + "ctc_loss", log_probs, targets, inputs, lengths, **options)
    check(F + "ctc_loss", log_probs, targets, inputs + steps, lengths, **options)


def test_a_second_derivative_is_refused_as_in_pytorch():
    scores = weft.randn(5, 2, 4, requires_grad=True)
    loss = weft.nn.functional.ctc_loss(scores, weft.tensor([[1, 2], [2, 3]]), (5, 5), (2, 2))
    (gradient,) = weft.autograd.grad(loss, scores, create_graph=True)
    with pytest.raises(NotImplementedError, match="the derivative of ctc_loss_backward is not implemented"):
        gradient.sum().backward()


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_steps_behind_the_end_of_an_input_have_no_gradient(reduction):
    found = []
    for lib in (torch, weft):
        scores = lib.arange(60.0, dtype=lib.float64).reshape(5, 3, 4).sin().log_softmax(2).requires_grad_()
        loss = lib.nn.functional.ctc_loss(
            scores, lib.tensor([[1, 2], [3, 3], [2, 1]]), (5, 4, 2), (2, 2, 1), reduction=reduction
        )
        (gradient,) = lib.autograd.grad(loss.sum(), scores)
        assert not gradient[4, 1].any() and not gradient[2:, 2].any() and gradient[4, 0].any()
        found.append(gradient.detach().numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-12)


def test_long_inputs_with_many_labels():
    """Rows of more states than a vector has lanes, sequences for several threads, repeated labels, and an input of no steps."""
    found = []
    for lib in (torch, weft):
        scores = (
            (lib.arange(90 * 9 * 6.0).reshape(90, 9, 6) ** 2).sin().mul(3).log_softmax(2).requires_grad_()
        )
        with lib.no_grad():
            scores[2, 5, 3] = scores[7, 5, 0] = -float("inf")
        targets = (lib.arange(9 * 30).reshape(9, 30) // 2 % 5) + 1
        lengths = (30, 29, 1, 0, 17, 16, 8, 30, 0), (90, 61, 90, 5, 34, 33, 16, 30, 0)
        losses = lib.nn.functional.ctc_loss(scores, targets, lengths[1], lengths[0], reduction="none")
        losses.masked_fill(losses == float("inf"), 0).sum().backward()
        found.append((losses.detach().numpy(), scores.grad.numpy()))
    for own, expected in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-4)
    assert np.isinf(found[1][0]).any() and np.signbit(found[1][0][-1])


UNFIT = """
torch.nn.functional.ctc_loss(torch.ones(5, 1, 3), torch.ones(1, 2).long(), torch.tensor([5]), None)  # raises
torch.nn.functional.ctc_loss(torch.ones(5, 1, 3), torch.ones(1, 2).long(), 5, 2)  # raises
torch.nn.functional.ctc_loss(torch.ones(5, 1, 3), torch.ones(1, 2).long(), torch.tensor([5]), torch.tensor([True]))  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
