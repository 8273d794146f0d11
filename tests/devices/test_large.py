"""What kernels do otherwise for many elements: vectors, parts, chains of launches, digits, and writes that meet. They give the CPU's results.

The device is the reference device, or the one that TESTED_DEVICE names.
"""

import pytest
from on_device import HERE, check

import weft as torch


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize("shape", [(3, 5000), (2, 4099), (40, 700), (700, 40), (1, 20_000)])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.softmax(x, 1),
        lambda x: torch.log_softmax(x, 1),
        lambda x: torch.nn.functional.layer_norm(x, x.shape[1:]),
        lambda x: torch.var(x, 1),
        lambda x: torch.softmax(x, 0),
    ],
    ids=["softmax", "log_softmax", "layer_norm", "var", "softmax of columns"],
)
def test_rows(function, shape):
    check(function, torch.randn(shape))


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_the_bits_of_a_sum_do_not_depend_on_where_the_memory_begins(offset):
    x = torch.randn(4001).to(HERE)
    elsewhere = torch.empty(len(x) + offset, device=HERE)[offset:].copy_(x)
    assert elsewhere.sum().item() == x.sum().item()


@pytest.mark.parametrize("count", [100_000, 99_999])
def test_sums_in_parts(count):
    x = torch.randn(count)
    check(lambda x: x.double().sum(), x)
    check(lambda x: tuple(x.max(0)), x, exactly=True)
    check(lambda x: x.argmin(), x, exactly=True)
    check(lambda x: x.view(-1, 9).double().sum(0), torch.randn(90_000))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.uint8, torch.float16])
@pytest.mark.parametrize("shape", [(5000,), (3, 2500)])
def test_sorting(shape, dtype):
    x = (torch.randn(shape) * 9).abs().to(dtype)  # with many equal numbers
    for descending in (False, True):
        check(lambda x, d=descending: tuple(x.sort(-1, descending=d, stable=True)), x, exactly=True)
    check(lambda x: x.topk(3).values, x, exactly=True)
    check(lambda x: x.topk(400).values, x, exactly=True)


@pytest.mark.parametrize("shape", [(40, 100), (40, 250), (5, 1000), (2, 3840)])
def test_sorting_of_short_rows(shape):
    x = torch.randint(0, 50, shape)
    check(lambda x: tuple(x.sort(-1, stable=True)), x, exactly=True)
    check(lambda x: tuple(x.t().sort(0, stable=True)), x, exactly=True)


def test_many_of_the_least():
    x = torch.randn(2, 9000)
    check(lambda x: tuple(x.topk(1500)), x, exactly=True)
    check(lambda x: tuple(x.topk(5, largest=False)), x, exactly=True)


@pytest.mark.parametrize(
    ("rows", "columns", "count"),
    [(50, 7, 1000), (1000, 33, 300), (3, 1, 2000), (300, 3, 5000), (70_000, 1, 5000)],
)
def test_writes_that_meet_keep_their_order(rows, columns, count):
    x, source = torch.randn(rows, columns), torch.randn(count, columns)
    where, other = torch.randint(0, rows, (count,)), torch.randint(0, columns, (count,))
    check(lambda x, i, s: x.index_add(0, i, s), x, where, source, exactly=True)
    check(lambda x, i, s: x.index_put((i,), s), x, where, source, exactly=True)
    check(lambda x, i, s: x.index_put((i,), s, accumulate=True), x, where, source, exactly=True)
    check(
        lambda x, i, j, s: x.index_put((i, j), s[:, 0], accumulate=True),
        x,
        where,
        other,
        source,
        exactly=True,
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_many_writes_that_meet_in_columns_of_their_own(dtype):
    x, source = torch.randn(20, 3).to(dtype), torch.randn(5000, 3).to(dtype)
    where = torch.randint(0, 20, (5000, 3))
    check(lambda x, i, s: x.scatter_add(0, i, s), x, where, source, exactly=True)
    check(lambda x, i, s: x.scatter(0, i, s), x, where, source, exactly=True)


def test_counts():
    values = torch.randint(0, 5000, (20_000,))
    check(lambda x: x.bincount(), values, exactly=True)
    check(lambda x: (x % 7).to(torch.uint8).bincount(minlength=10), values, exactly=True)
    check(lambda x: x.float().histc(50, 100, 3000), values, exactly=True)
    with pytest.raises(RuntimeError, match="non-negative"):
        (values - 9).to(HERE).bincount()


def test_masks():
    x, mask = torch.randn(70_000), torch.randn(70_000) > 0.5
    check(lambda mask: mask.nonzero(), mask, exactly=True)
    check(lambda x, mask: x[mask], x, mask, exactly=True)
    check(lambda x, mask: x.masked_scatter(mask, x), x, mask, exactly=True)


def test_maps_over_rows_and_columns():
    x, row, column = torch.randn(300, 512), torch.randn(512), torch.randn(300, 1)
    check(lambda x, row, column: torch.relu(x * row + column), x, row, column, exactly=True)
    check(lambda x, row, column: x[:, 1:] * row[1:] > column, x, row, column, exactly=True)
    check(lambda x: x.t() + 1, x, exactly=True)


def test_large_chains_run_as_one_kernel():
    x = torch.randn(1 << 18)
    check(lambda x: torch.relu(x * 2 + x).exp().sqrt(), x, exactly=True)
    check(lambda x: (x * x + 1).log().sum().round(), x)
