import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from loss_inputs import REDUCTIONS, numbers
from oracle import check, to_torch, to_weft

import weft

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@pytest.mark.may_raise(least=0.5)
@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([(5,), (3, 5), (2, 5, 3), (2, 5, 2, 2)]),
    st.sampled_from(REDUCTIONS),
    st.booleans(),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([-100, 1]),
    st.sampled_from(["classes", "probabilities", "bytes", "beyond"]),
    st.integers(0, 9),
)
def test_cross_entropy(shape, reduction, weighted, label_smoothing, ignore_index, kind, seed):
    target_shape = shape[:1] + shape[2:] if len(shape) > 1 else ()
    target = torch.randint(
        0, 6 if kind == "beyond" else 5, target_shape, generator=torch.Generator().manual_seed(seed)
    )
    if kind == "probabilities":
        target = numbers(*shape, seed=seed).softmax(0)
    elif kind == "bytes":
        target = target.byte()
    weight = numbers(5, seed=7).abs() if weighted else None
    options = {"ignore_index": ignore_index, "reduction": reduction}
    check(F + "cross_entropy", numbers(*shape), target, weight, **options, label_smoothing=label_smoothing)
    if kind != "probabilities":
        check(F + "nll_loss", numbers(*shape), target, weight, **options)


@pytest.mark.parametrize("options", [{}, {"reduction": "sum"}, {"ignore_index": 2}])
@pytest.mark.parametrize("weighted", [False, True])
def test_second_derivatives_of_cross_entropy(options, weighted):
    found = []
    for lib in (torch, weft):
        scores = lib.tensor([[0.1, 0.5, -0.3], [0.2, 0.3, 0.9]], dtype=lib.float64, requires_grad=True)
        weight = lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64) if weighted else None
        loss = lib.nn.functional.cross_entropy(scores, lib.tensor([0, 2]), weight, **options)
        (first,) = lib.autograd.grad(loss**2, scores, create_graph=True)
        (second,) = lib.autograd.grad((first**2).sum(), scores)
        found.append([first.tolist(), second.tolist()])
    torch.testing.assert_close(torch.tensor(found[1]), torch.tensor(found[0]))


@pytest.mark.refuses(10)
def test_targets_that_do_not_fit_are_errors():
    scores = numbers(3, 5)
    for target in (torch.zeros(2).long(), torch.zeros(3), torch.zeros(3, 1).long(), torch.zeros(3).int()):
        check(F + "cross_entropy", scores, target)
        check(F + "nll_loss", scores, target)
    check(F + "nll_loss", scores, torch.tensor([0, -1, 2]))
    check(F + "cross_entropy", scores, torch.zeros(3).long(), numbers(4))
    check(F + "cross_entropy", scores, torch.full((3,), -100))


@pytest.mark.refuses(1)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_linear_cross_entropy(reduction):
    target = torch.tensor([0, 3])
    check(F + "linear_cross_entropy", numbers(2, 3), numbers(4, 3, seed=1), target, reduction=reduction)
    check(
        F + "linear_cross_entropy",
        numbers(2, 3),
        numbers(4, 5, 3),
        torch.zeros(2, 5).long(),
        linear_bias=numbers(4, 5),
    )
    check(F + "linear_cross_entropy", numbers(2, 3), numbers(4, 2), target)


UNFIT = """
torch.nn.functional.nll_loss(torch.ones(3), torch.tensor([0, 0]))  # raises
torch.nn.functional.nll_loss(torch.ones(0), torch.tensor([0, 0]))  # raises
torch.nn.functional.nll_loss(torch.ones(3), torch.tensor([[0]]))  # raises
torch.nn.functional.nll_loss(torch.ones(3), torch.tensor([3]))  # raises
torch.nn.functional.nll_loss(torch.ones(3), torch.tensor([1]))
torch.nn.functional.nll_loss(torch.ones(3), torch.tensor([1]), reduction="none")
torch.nn.functional.cross_entropy(torch.ones(3), torch.tensor([0, 1]))  # raises
torch.nn.functional.cross_entropy(torch.ones(3), torch.tensor([1]), torch.ones(3))
torch.nn.functional.cross_entropy(torch.ones(3), torch.tensor([1]), reduction="none")
torch.nn.functional.nll_loss(torch.ones(2, 3).int(), torch.tensor([1, 1]))  # raises
torch.nn.functional.nll_loss(torch.ones(2, 3).int(), torch.tensor([1, 1]), torch.ones(3))  # raises
torch.nn.functional.nll_loss(torch.ones(2, 3).cfloat(), torch.tensor([1, 1]))  # raises
"""

NO_CLASSES = """
torch.nn.functional.nll_loss(torch.ones(2, 0), torch.tensor([-100, -100]))
torch.nn.functional.nll_loss(torch.ones(2, 0), torch.tensor([-100, -100]), torch.ones(0), reduction="none")
torch.nn.functional.nll_loss(torch.ones(0), torch.tensor(-100), reduction="sum")
torch.nn.functional.cross_entropy(torch.ones(2, 0), torch.tensor([7, 7]), ignore_index=7, reduction="sum")
torch.nn.functional.cross_entropy(torch.ones(2, 0), torch.tensor([-100, -100]), label_smoothing=0.1)
torch.nn.functional.cross_entropy(torch.ones(2, 0), torch.tensor([-100, 0]))  # raises
torch.nn.functional.nll_loss(torch.ones(2, 0), torch.tensor([-100, -1]))  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


@pytest.mark.parametrize("expression", lines(NO_CLASSES))
def test_without_classes_all_targets_must_be_ignored(expression):
    check_expression(expression)


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
def test_the_gradient_without_classes_has_no_elements(name):
    scores = weft.zeros(2, 0, requires_grad=True)
    getattr(weft.nn.functional, name)(scores, weft.tensor([-100, -100]), reduction="sum").backward()
    assert scores.grad.shape == (2, 0)


@pytest.mark.parametrize("name", ("nll_loss", "cross_entropy"))
def test_the_gradient_of_one_sample_whose_target_has_a_dim(name):
    # PyTorch computes the loss, but refuses the backward pass.
    loss = getattr(weft.nn.functional, name)
    found = []
    for target in (weft.tensor(1), weft.tensor([1])):
        x = weft.tensor([1.0, 2.0, 4.0], requires_grad=True)
        loss(x, target).backward()
        found.append(x.grad.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_linear_cross_entropy_of_narrow_floats_accumulates_in_float32(reduction):
    """PyTorch's options ask for float32 by default; the result is that of float32, rounded at the end."""
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(shape, generator=generator).bfloat16() for shape in ((16, 32), (8, 32))]
    target = torch.randint(8, (16,), generator=generator)
    input, linear_weight = (to_weft(each).requires_grad_() for each in given)
    options = weft.nn.LinearCrossEntropyOptions(batch_chunk_size=4)
    loss = weft.nn.functional.linear_cross_entropy(
        input, linear_weight, to_weft(target), reduction=reduction, options=options
    )
    loss.sum().backward()
    exact = [each.double().requires_grad_() for each in given]
    expected = torch.nn.functional.linear_cross_entropy(*exact, target, reduction=reduction)
    expected.sum().backward()
    assert loss.dtype is weft.bfloat16
    for got, wanted in ((loss, expected), (input.grad, exact[0].grad), (linear_weight.grad, exact[1].grad)):
        torch.testing.assert_close(to_torch(got.detach()).double(), wanted.detach(), rtol=2**-8, atol=1e-6)
