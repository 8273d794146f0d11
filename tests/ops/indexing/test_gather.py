import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import DTYPES, check, counting, tensors

import weft

pytestmark = pytest.mark.filterwarnings("ignore")


def numbers(size, least=0):
    return st.lists(st.integers(least, size - 1), max_size=5) if size else st.just([])


@settings(max_examples=200, deadline=None)
@given(st.data(), tensors(dtypes=DTYPES, min_dims=1))
def test_index_select_and_take(data, base):
    dim = data.draw(st.integers(-base.ndim, base.ndim - 1))
    index = torch.tensor(
        data.draw(numbers(base.shape[dim])), dtype=data.draw(st.sampled_from((torch.int64, torch.int32)))
    )
    check(lambda lib, b, i: b.index_select(dim, i), base, index)
    flat = torch.tensor(data.draw(numbers(base.numel(), -base.numel())), dtype=torch.int64)
    check(lambda lib, b, i: b.take(i), base, flat)


@settings(max_examples=200, deadline=None)
@given(st.data(), tensors(dtypes=DTYPES, min_dims=1))
def test_gather_and_take_along_dim(data, base):
    dim = data.draw(st.integers(-base.ndim, base.ndim - 1))
    shape = list(base.shape)
    shape[dim] = data.draw(st.integers(0, 3)) if base.shape[dim] else 0
    count = torch.Size(shape).numel()
    values = (
        data.draw(st.lists(st.integers(0, base.shape[dim] - 1), min_size=count, max_size=count))
        if count
        else []
    )
    index = torch.tensor(values, dtype=torch.int64).reshape(shape)
    check(lambda lib, b, i: b.gather(dim, i), base, index)
    check(lambda lib, b, i: b.take_along_dim(i, dim), base, index)
    if count and base.ndim > 1:
        check(lambda lib, b, i: b.take_along_dim(i.narrow((dim + 1) % b.ndim, 0, 1), dim), base, index)


@pytest.mark.refuses(
    [
        "index0-<lambda>6", "index1-<lambda>0", "index1-<lambda>1", "index1-<lambda>2", "index1-<lambda>4",
        "index1-<lambda>5", "index1-<lambda>6", "index2-<lambda>0", "index2-<lambda>1", "index2-<lambda>5",
        "index2-<lambda>6", "index3-<lambda>0", "index3-<lambda>1", "index3-<lambda>2", "index3-<lambda>4",
        "index3-<lambda>5", "index3-<lambda>6", "index4-<lambda>0", "index4-<lambda>1", "index4-<lambda>3",
        "index4-<lambda>6", "index5-<lambda>0", "index5-<lambda>1", "index5-<lambda>2", "index5-<lambda>3",
        "index5-<lambda>4", "index5-<lambda>5", "index5-<lambda>6",
    ]
)  # fmt: skip
@pytest.mark.parametrize(
    "read",
    [
        lambda lib, b, i: b.gather(0, i),
        lambda lib, b, i: b.index_select(0, i),
        lambda lib, b, i: b.take(i),
        lambda lib, b, i: b.take_along_dim(i, 0),
        lambda lib, b, i: b[i],
        lambda lib, b, i: lib.nn.functional.embedding(i, b.reshape(2, 2)),
        lambda lib, b, i: lib.gather(b, 0, i, out=b),
    ],
)
@pytest.mark.parametrize("index", [[0, 1], [4], [-1], [-5], [[0]], [0.0]])
def test_errors(read, index):
    check(read, counting((4,)), torch.tensor(index))


@pytest.mark.refuses(2)
def test_results_that_do_not_fit():
    base, index = counting((4,)), torch.tensor([0, 1])
    check(lambda lib, b, i: lib.index_select(b, 0, i, out=lib.zeros(2, dtype=lib.float64)), base, index)
    check(lambda lib, b, i: lib.take(b, i, out=lib.zeros(1).expand(2)), base, index)
    check(lambda lib, b, i: lib.gather(b, 0, i, out=lib.zeros(3)), base, index)


def test_zero_dimensional():
    base, zero = torch.tensor(3.0), torch.tensor(0)
    for index in (zero, torch.tensor([0])):
        check(lambda lib, b, i: b.gather(0, i), base, index)
        check(lambda lib, b, i: b.index_select(0, i), base, index)
        check(lambda lib, b, i: b.take(i), base, index)
    check(lambda lib, b, i: b.index_select(0, i), counting((3,)), zero)


@pytest.mark.refuses(1)
def test_embedding():
    weight = counting((4, 3))
    check(lambda lib, w: lib.nn.functional.embedding(lib.tensor([[0, 3], [1, 1]]), w), weight)
    check(lambda lib, w: (lib.nn.functional.embedding(lib.tensor([3, 1]), w, max_norm=2.0), w), weight)
    check(lambda lib, w: lib.nn.functional.embedding(lib.tensor([3]), w, padding_idx=7), weight)


@pytest.mark.refuses(2)
def test_unravel_index():
    check(lambda lib, i: lib.unravel_index(i, (2, 3, 4)), torch.tensor([[0, 23], [7, 5]]))
    check(lambda lib, i: lib.unravel_index(i, 5), torch.tensor(3))
    check(lambda lib, i: lib.unravel_index(i, (-1,)), torch.tensor(3))
    check(lambda lib, i: lib.unravel_index(i, (2,)), torch.tensor(3.0))


def test_an_index_that_is_longer_than_the_tensor_is_refused():
    """In a dim that is not gathered along, each size by one: a kernel would read behind the end."""
    for lib in (torch, weft):
        x = lib.arange(6.0).reshape(2, 3)
        for dim, sizes in ((0, (1, 4)), (0, (2, 4)), (1, (3, 1)), (1, (3, 3))):
            index = lib.zeros(sizes, dtype=lib.int64)
            with pytest.raises(RuntimeError, match="Size does not match at dimension"):
                x.gather(dim, index)
            with pytest.raises(RuntimeError):
                x.scatter(dim, index, lib.ones(sizes))


def test_the_padding_of_an_embedding_may_be_counted_from_the_end():
    found = []
    for lib in (torch, weft):
        weight = lib.ones(4, 2, requires_grad=True)
        lib.nn.functional.embedding(lib.tensor([0, 3, 3]), weight, padding_idx=-1).sum().backward()
        found.append(weight.grad.tolist())
    assert found[0] == found[1]


def test_rows_within_the_norm_stay_as_they_are():
    for lib in (torch, weft):
        weight = lib.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
        rows = lib.nn.functional.embedding(lib.tensor([0, 1, 2]), weight, max_norm=1.0)
        assert rows.tolist() == weight.tolist()
        assert weight[1:].tolist() == lib.tensor([[0.3, 0.4], [0.0, 0.0]]).tolist()
        assert abs(weight[0].norm().item() - 1) < 1e-6


UNFIT = """
torch.unravel_index(torch.tensor([3]), None)  # raises
(lambda i: torch.gather(torch.tensor([5, 6, 7]), 0, i, out=i))(torch.tensor([1, 0, 1]))
(lambda i: torch.take_along_dim(torch.tensor([5, 6, 7]), i, out=i))(torch.tensor([1, 0, 1]))
(lambda i: torch.take_along_dim(torch.tensor([5, 6, 7]), i, 0, out=i))(torch.tensor([1, 0, 1]))
(lambda i: torch.gather(torch.tensor([5, 6, 7]), 0, i[:2], out=i[1:]))(torch.tensor([1, 0, 1]))  # raises
(lambda i: torch.gather(i.clone(), 0, i[1:], out=i[:1]))(torch.tensor([2, 1, 0]))  # raises
(lambda i: torch.gather(i.clone(), 0, i[1:], out=i[:0]))(torch.tensor([2, 1, 0]))  # raises
(lambda i: torch.gather(i, 0, torch.tensor([1]), out=i))(torch.tensor([1, 0]))  # raises
(lambda i: torch.gather(i, 0, i, out=i))(torch.tensor([1, 0]))  # raises
torch.gather(torch.ones(2), 0, torch.tensor([1]), out=torch.ones(1, dtype=torch.int64))  # raises
torch.gather(torch.ones(2, requires_grad=True), 0, torch.tensor([1]), out=torch.ones(1))  # raises
torch.gather(torch.ones(2), 0, torch.tensor([1]), out=torch.ones(0))
torch.take_along_dim(torch.ones(2, 2), torch.tensor([[1]]), 0, out=torch.ones(0))
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
