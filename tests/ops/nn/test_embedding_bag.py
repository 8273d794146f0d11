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


def both_errors(program):
    found = []
    for library in (weft, torch):
        with pytest.raises((RuntimeError, AssertionError)) as error:
            program(library)
        found.append((type(error.value), str(error.value)))
    return found


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("wrong", [-1, 5])
def test_an_index_that_is_no_row_is_named(mode, wrong):
    def program(library):
        table = library.ones(3, 4, dtype=library.float64)
        library.nn.functional.embedding_bag(library.tensor([[0, wrong]]), table, mode=mode)

    (kind, mine), (other, theirs) = both_errors(program)
    assert kind is other and mine.startswith(theirs) and f"to be {wrong}" in mine


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("name", ["embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"])
def test_dims_are_checked(name, which):
    def program(library):
        arguments = [
            library.ones(2, 2),
            library.ones(2, dtype=library.int64),
            library.zeros(1, dtype=library.int64),
        ]
        arguments[which] = arguments[which].expand(2, 2, *arguments[which].shape)
        getattr(library, name)(*arguments)

    mine, theirs = both_errors(program)
    assert mine == theirs


def test_a_sparse_gradient_of_a_table_without_features():
    for rows, numbers in ((0, []), (5, [1, 3])):

        def program(library):
            table = library.nn.Embedding(rows, 0, sparse=True)  # noqa: B023
            table(library.tensor(numbers, dtype=library.int64)).sum().backward()  # noqa: B023
            grad = table.weight.grad
            return (
                grad.is_sparse,
                tuple(grad.shape),
                tuple(grad._indices().shape),
                tuple(grad._values().shape),
            )

        assert program(weft) == program(torch)


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_padding_that_is_no_row(kind):
    (first, mine), (second, theirs) = both_errors(
        lambda library: getattr(library.nn, kind)(3, 2, padding_idx=3)
    )
    assert first is second and mine.startswith(theirs)


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
