import itertools

import pytest
import torch
from loss_inputs import REDUCTIONS, numbers
from oracle import check

import weft

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@pytest.mark.refuses(
    [
        "mse_loss-other", "l1_loss-other", "smooth_l1_loss-other", "huber_loss-other",
        "soft_margin_loss-other", "poisson_nll_loss-other", "kl_div-other",
        "binary_cross_entropy_with_logits-other", "multilabel_soft_margin_loss-other",
    ]
)  # fmt: skip
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


NAMES = ("l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "kl_div", "hinge_embedding_loss",
         "binary_cross_entropy", "binary_cross_entropy_with_logits", "gaussian_nll_loss")  # fmt: skip
KINDS = ("bool", "uint8", "int64", "float16", "float32", "float64", "complex64")
SHAPES = ((3, 3), (3, None), (None, 3), (None, None))


def outcome(library, name, kinds, sizes, reduction):
    """The dtype of the loss, or the type of the exception."""
    operands = [
        library.tensor([1.0, 0.0, 1.0] if size else 1.0).to(getattr(library, kind))
        for kind, size in zip(kinds, sizes)
    ]
    if name == "gaussian_nll_loss":
        operands.append(library.ones_like(operands[0]))
    try:
        loss = getattr(library.nn.functional, name)(*operands, reduction=reduction)
    except Exception as error:
        return type(error)
    return str(loss.dtype)


@pytest.mark.parametrize("name", NAMES)
def test_dtypes_promote_or_are_refused(name):
    for kinds in itertools.product(KINDS, KINDS):
        for sizes, reduction in itertools.product(SHAPES, ("mean", "none")):
            expected = outcome(torch, name, kinds, sizes, reduction)
            found = outcome(weft, name, kinds, sizes, reduction)
            if expected is not NotImplementedError or not isinstance(found, str):  # weft has more kernels
                assert found == expected, (kinds, sizes, reduction)


def test_the_loss_of_mixed_dtypes_is_computed_in_that_of_the_wider():
    check(F + "mse_loss", torch.tensor([1.0, 2.0, 4.0]), torch.tensor(0.3, dtype=torch.float64))
    check(F + "huber_loss", torch.tensor([1.0, 2.0, 4.0]).half(), torch.tensor([0.3, 2.5, 1.0]))
    check(F + "binary_cross_entropy_with_logits", torch.tensor([0.3, -2.0]).half(), torch.tensor([0.3, 1.0]))
    check(F + "binary_cross_entropy_with_logits", torch.tensor([0.3, -2.0]), torch.tensor([0.3, 1.0j]))
