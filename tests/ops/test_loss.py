import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import check

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."
REDUCTIONS = ("none", "mean", "sum")
reductions = st.sampled_from(REDUCTIONS)


def numbers(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("reduction", [*REDUCTIONS, "other"])
@pytest.mark.parametrize(
    "name",
    ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "poisson_nll_loss", "kl_div",
     "binary_cross_entropy_with_logits", "multilabel_soft_margin_loss"],
)  # fmt: skip
def test_elementwise_losses(name, reduction):
    check(F + name, numbers(3, 4), numbers(3, 4, seed=1), reduction=reduction)


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


@pytest.mark.parametrize("size_average", [None, True, False])
@pytest.mark.parametrize("reduce", [None, True, False])
def test_older_names_of_reductions(size_average, reduce):
    check(F + "mse_loss", numbers(3), numbers(3, seed=1), size_average=size_average, reduce=reduce)


@pytest.mark.parametrize("options", [{"beta": 0.5}, {"beta": 0}, {"beta": -1.0}])
def test_smooth_l1_beta(options):
    check(F + "smooth_l1_loss", numbers(5), numbers(5, seed=1), **options)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([(5,), (3, 5), (2, 5, 3), (2, 5, 2, 2)]),
    reductions,
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


def test_targets_that_do_not_fit_are_errors():
    scores = numbers(3, 5)
    for target in (torch.zeros(2).long(), torch.zeros(3), torch.zeros(3, 1).long(), torch.zeros(3).int()):
        check(F + "cross_entropy", scores, target)
        check(F + "nll_loss", scores, target)
    check(F + "nll_loss", scores, torch.tensor([0, -1, 2]))
    check(F + "cross_entropy", scores, torch.zeros(3).long(), numbers(4))
    check(F + "cross_entropy", scores, torch.full((3,), -100))


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


@pytest.mark.parametrize("swap", [True, False])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_triplets(swap, reduction):
    a, p, n = (numbers(4, 3, seed=seed) for seed in range(3))
    check(F + "triplet_margin_loss", a, p, n, 0.8, 3.0, swap=swap, reduction=reduction)
    check(F + "triplet_margin_with_distance_loss", a, p, n, swap=swap, reduction=reduction)
    check(F + "triplet_margin_loss", a, p, n[0])
    check(F + "triplet_margin_loss", a, p, n, -1.0)


@pytest.mark.parametrize("full", [True, False])
def test_gaussian_and_poisson(full):
    x, y = numbers(3, 4), numbers(3, 4, seed=1).abs() * 3
    for var in (y, y[:, :1], y[:, 0], 0.5, -1.0, -y, y[:2]):
        check(F + "gaussian_nll_loss", x, y, var, full)
    check(F + "poisson_nll_loss", x, y, full=full)
    check(F + "poisson_nll_loss", x.abs(), y, log_input=False, full=full)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 6),
    st.integers(0, 4),
    reductions,
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
