"""Bags of embeddings."""

import oracle
import pytest
import torch
from expressions import check as check_expression
from expressions import lines

import weft

NUMBERS, STARTS, TABLE = torch.tensor([0, 3, 1, 1, 4, 2, 0]), torch.tensor([0, 2, 2, 5]), torch.randn(6, 3)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_values(mode, dtype):
    weight = TABLE.to(getattr(torch, dtype))
    for arguments in (
        (NUMBERS, weight, STARTS),
        (NUMBERS.int(), weight, STARTS.int()),
        (NUMBERS, weight, torch.tensor([0, 7])),
        (NUMBERS[:0], weight, torch.zeros(0, dtype=torch.int64)),
        (NUMBERS[:0], weight, torch.tensor([0, 0])),
        (NUMBERS[:6].view(2, 3), weight),
        (NUMBERS[:6].view(3, 2).t(), weight),
    ):
        for options in ({}, {"padding_idx": 1}, {"padding_idx": -6}):
            oracle.check("nn.functional.embedding_bag", *arguments, mode=mode, **options)
    oracle.check(
        "nn.functional.embedding_bag",
        NUMBERS,
        weight,
        torch.tensor([0, 2, 7]),
        mode=mode,
        include_last_offset=True,
    )


@pytest.mark.parametrize("starts", [None, [0, 2, 3]])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_products_with_sample_weights_round_once(dtype, starts):
    """Sums of products, in the result and in the gradient of the factors, have one rounding, as in PyTorch."""
    generator = torch.Generator().manual_seed(0)
    kind, numbers = getattr(torch, dtype), torch.tensor([4, 1, 1, 0, 4, 2])
    table, ct = (torch.randn(n, 40, generator=generator).to(kind) for n in (6, 3))
    factors = torch.randn(6, generator=generator).to(kind)
    if starts is None:
        numbers, factors = numbers.view(3, 2), factors.view(3, 2)
    found = []
    for lib in (torch, weft):
        weight, share, cotangent = (
            lib.tensor(each.tolist(), dtype=getattr(lib, dtype)) for each in (table, factors, ct)
        )
        share.requires_grad_()
        offsets = None if starts is None else lib.tensor(starts)
        result = lib.nn.functional.embedding_bag(
            lib.tensor(numbers.tolist()), weight, offsets, mode="sum", per_sample_weights=share
        )
        result.backward(cotangent)
        found.append([torch.tensor(each.tolist()) for each in (result, share.grad)])
    unit = torch.finfo(kind).eps
    for got, want in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(got, want, rtol=unit, atol=unit)


def test_sample_weights():
    factors = torch.randn(7)
    oracle.check(
        "nn.functional.embedding_bag", NUMBERS, TABLE, STARTS, mode="sum", per_sample_weights=factors
    )
    oracle.check(
        "nn.functional.embedding_bag",
        NUMBERS,
        TABLE,
        STARTS,
        mode="sum",
        per_sample_weights=factors,
        padding_idx=1,
    )
    oracle.check(
        "nn.functional.embedding_bag",
        NUMBERS[:6].view(2, 3),
        TABLE,
        mode="sum",
        per_sample_weights=factors[:6].view(2, 3),
    )


def test_rows_are_scaled_down_in_place():
    mine, theirs = oracle.to_weft(TABLE), TABLE.clone()
    got = weft.nn.functional.embedding_bag(
        oracle.to_weft(NUMBERS), mine, oracle.to_weft(STARTS), max_norm=0.5
    )
    expected = torch.nn.functional.embedding_bag(NUMBERS, theirs, STARTS, max_norm=0.5)
    oracle.assert_same(got, expected)
    oracle.assert_same(mine, theirs)


@pytest.mark.refuses("all")
@pytest.mark.parametrize(
    "arguments, options",
    [
        ((NUMBERS, TABLE), {}),
        ((NUMBERS[:6].view(2, 3), TABLE, STARTS), {}),
        ((NUMBERS[:6].view(1, 2, 3), TABLE), {}),
        ((NUMBERS, TABLE, STARTS + 1), {}),
        ((NUMBERS, TABLE, STARTS * 5), {}),
        ((NUMBERS, TABLE, STARTS), {"mode": "median"}),
        ((NUMBERS, TABLE, STARTS), {"mode": "mean", "per_sample_weights": torch.ones(7)}),
        ((NUMBERS, TABLE, STARTS), {"mode": "sum", "per_sample_weights": torch.ones(3)}),
        ((NUMBERS, TABLE, STARTS), {"padding_idx": 6}),
        ((NUMBERS + 3, TABLE, STARTS), {}),
        ((NUMBERS - 1, TABLE, STARTS), {}),
        ((NUMBERS.float(), TABLE, STARTS), {}),
        ((NUMBERS, TABLE.long(), STARTS), {}),
        ((NUMBERS, TABLE, STARTS.view(2, 2)), {}),
        ((NUMBERS, TABLE, STARTS), {"mode": "max", "sparse": True}),
        ((NUMBERS, TABLE, STARTS), {"mode": "max", "scale_grad_by_freq": True}),
    ],
)
def test_errors(arguments, options):
    oracle.check("nn.functional.embedding_bag", *arguments, **options)


UNFIT = """
torch.nn.functional.embedding_bag(torch.tensor([0, 1, 1]), torch.ones(3, 4), torch.tensor([0, 2]).byte())
torch.nn.functional.embedding_bag(torch.tensor([0, 1, 1]).byte(), torch.ones(3, 4), torch.tensor([0, 2]))
torch.nn.functional.embedding_bag(torch.tensor([0, 1, 1]).byte(), torch.ones(3, 4), torch.tensor([0, 2]).byte())  # raises
torch.nn.functional.embedding_bag(torch.tensor([0, 1, 1]), torch.ones(3, 4), torch.tensor([0.0, 2.0]))  # raises
torch.nn.functional.embedding_bag(torch.tensor([[0, 5]]), torch.ones(3, 4))  # raises
torch.nn.functional.embedding_bag(torch.tensor([[0, 5]]), torch.ones(3, 4), max_norm=1.0)  # raises
torch.nn.functional.embedding_bag(torch.tensor([[0, 1]]), torch.ones(3, 4), per_sample_weights=torch.ones(1, 2).half(), mode="sum")  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
