import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import check, counting, tensors

pytestmark = pytest.mark.filterwarnings("ignore")


ACCUMULATING = ("float32", "float64", "int64", "uint8", "bool", "complex64", "bfloat16")


def any_dim(base):
    return st.integers(-max(base.ndim, 1), max(base.ndim, 1) - 1)


@settings(max_examples=150, deadline=None)
@given(st.data(), tensors(expanded=False, min_dims=1, dtypes=ACCUMULATING))
def test_index_ops(data, base):
    dim = data.draw(any_dim(base))
    size = base.shape[dim]
    index = torch.tensor(
        data.draw(st.lists(st.integers(0, size - 1), max_size=4) if size else st.just([])), dtype=torch.int64
    )
    shape = list(base.shape)
    shape[dim] = len(index)
    source = counting(shape, str(base.dtype).removeprefix("torch."))
    check(lambda lib, b, i, s: b.index_add(dim, i, s), base, index, source)
    check(lambda lib, b, i, s: b.index_add(dim, i, s, alpha=2), base, index, source)
    check(lambda lib, b, i: b.index_fill(dim, i, 1), base, index)
    check(lambda lib, b, i: b.index_fill(dim, i - size, 1), base, index)
    if len(set(index.tolist())) == len(index):
        check(lambda lib, b, i, s: b.index_copy(dim, i, s), base, index, source)
    if base.dtype in (torch.float32, torch.int64):
        reduce = data.draw(st.sampled_from(("prod", "mean", "amax", "amin")))
        include = data.draw(st.booleans())
        check(
            lambda lib, b, i, s: b.index_reduce(dim, i, s, reduce, include_self=include), base, index, source
        )


UNFIT = """
(lambda s: torch.autograd.grad(torch.tensor(1.0).index_copy(0, torch.tensor([0]), s), s)[0].tolist())(torch.ones(1, requires_grad=True))
torch.func.grad(lambda s: torch.ones(1).index_copy(0, torch.tensor([0]), s).sum())(torch.tensor(2.0))
torch.func.grad(lambda s: torch.ones(2, 2).index_copy(0, torch.tensor([1]), s).sum())(torch.ones(1, 2))
torch.index_add(torch.ones(2), 0, torch.tensor([0]), torch.ones(1), alpha="a")  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


INDICES_WHERE_NOTHING_IS_MOVED = """
torch.zeros(3, 0)[torch.tensor([5])]
torch.zeros(3, 0).index_add(0, torch.tensor([5]), torch.zeros(1, 0))
torch.zeros(0, 3).index_add(0, torch.tensor([0]), torch.zeros(1, 3))
torch.zeros(3, 0).index_add(1, torch.tensor([-1, 2]), torch.zeros(3, 2), alpha=2)
torch.zeros(0, 3, requires_grad=True).index_add(0, torch.tensor([5]), torch.zeros(1, 3))
torch.zeros(0).index_add(0, torch.tensor([0]), torch.zeros(1))  # raises
torch.zeros(3, 0).index_reduce(0, torch.tensor([5]), torch.zeros(1, 0), "prod")  # raises
torch.zeros(3, 0).index_reduce(0, torch.tensor([2]), torch.zeros(1, 0), "prod")
torch.zeros(3, 0).index_select(0, torch.tensor([2]))
torch.zeros(0, 3).index_select(1, torch.tensor([2]))
torch.nn.functional.embedding(torch.tensor([[2]]), torch.zeros(3, 0))
(lambda x, s: (x.index_copy(0, torch.tensor([0]), s).backward(torch.tensor(3.0)), x.grad, s.grad))(torch.ones((), requires_grad=True), torch.ones(1, requires_grad=True))
(lambda x, s: (x.index_copy(0, torch.tensor([0]), s).sum().backward(), x.grad, s.grad))(torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True))
(lambda x, s: (x.index_copy(0, torch.tensor([0]), s).sum().backward(), x.grad, s.grad))(torch.ones(1, requires_grad=True), torch.ones((), requires_grad=True))
"""


@pytest.mark.parametrize("expression", lines(INDICES_WHERE_NOTHING_IS_MOVED))
def test_indices_where_nothing_is_moved(expression):
    """Which ops check indices of slices without elements; how 0-dim tensors count as one slice."""
    check_expression(expression)


ORDER_OF_CHECKS = """
torch.tensor(1.0).index_add(0, torch.tensor([0, 0]), torch.tensor(1.0))  # raises
torch.tensor(1.0).index_add(0, torch.tensor([0, 0]), torch.ones(2))  # raises
torch.tensor(1.0).index_add(0, torch.tensor([0, 0]), torch.ones(1))  # raises
torch.tensor(1.0).index_add(0, torch.tensor([0]), torch.ones(1))  # raises
torch.tensor(1.0).index_add(0, torch.tensor([], dtype=torch.int64), torch.tensor(1.0))  # raises
torch.ones(2).index_add(0, torch.tensor([0, 0]), torch.tensor(1.0))  # raises
torch.ones(2).index_add(0, torch.tensor([0]), torch.tensor(1.0))  # raises
torch.ones(2).index_add(0, torch.tensor([0]), torch.ones(2))  # raises
torch.ones(2, 2).index_add(1, torch.tensor([0]), torch.ones(2))  # raises
torch.tensor(1.0).index_reduce(0, torch.tensor([0, 0]), torch.tensor(1.0), "prod")  # raises
torch.tensor(1.0).index_reduce(0, torch.tensor([0, 0]), torch.ones(2), "prod")  # raises
torch.ones(2).index_reduce(0, torch.tensor([0, 0]), torch.tensor(1.0), "prod")  # raises
torch.ones(2).index_copy(0, torch.tensor([0, 0]), torch.tensor(1))  # raises
torch.ones(2).index_copy(0, torch.tensor([0]), torch.tensor(1))  # raises
torch.ones(2).index_copy(0, torch.tensor([0]), torch.ones(1, 2, dtype=torch.int64))  # raises
torch.ones(2).index_copy(0, torch.tensor([0]), torch.ones(2, dtype=torch.int64))  # raises
torch.ones(2).index_copy(-3, torch.tensor([0], dtype=torch.int32), torch.ones(1))  # raises
"""


@pytest.mark.parametrize("expression", lines(ORDER_OF_CHECKS))
def test_order_of_checks(expression):
    """Of two mistakes PyTorch's is told."""
    check_expression(expression)


LEAVES_THEN_INDICES_THEN_NUMBERS = """
torch.zeros(2).index_fill_(0, torch.tensor([0], dtype=torch.int32), 1j)  # raises
torch.zeros(2, dtype=torch.uint8).index_fill_(0, torch.tensor([0], dtype=torch.int32), -1.5)  # raises
torch.zeros(2, requires_grad=True).index_fill_(0, torch.tensor([0], dtype=torch.int32), 1.0)  # raises
torch.zeros(2, requires_grad=True).index_reduce_(0, torch.tensor([0]), torch.ones(5), "prod")  # raises
"""


@pytest.mark.parametrize("expression", lines(LEAVES_THEN_INDICES_THEN_NUMBERS))
def test_leaves_then_indices_then_numbers(expression):
    """PyTorch's order of checks in writes of slices."""
    check_expression(expression)


NUMBERS_THAT_DO_NOT_FIT = """
torch.zeros(2, dtype=torch.float16).index_fill(0, torch.tensor([0]), 1e30)  # raises
torch.zeros(2, dtype=torch.float16).index_fill(0, torch.tensor([0]), inf)
torch.zeros(2, dtype=torch.int64).index_fill(0, torch.tensor([0]), torch.tensor(1e30))  # raises
torch.zeros(2, dtype=torch.uint8).index_fill(0, torch.tensor([0]), torch.tensor(-1.5))  # raises
torch.zeros(2, dtype=torch.uint8).index_fill(0, torch.tensor([0]), -1)
torch.zeros(2, dtype=torch.uint8).index_fill(0, torch.tensor([0]), 300)  # raises
torch.zeros(2, dtype=torch.bool).index_fill(0, torch.tensor([0]), 0.25)
torch.zeros(2, dtype=torch.bool).index_fill(0, torch.tensor([0]), torch.tensor(0.25))
torch.zeros(2, 0, dtype=torch.uint8).index_fill(0, torch.tensor([0]), 300)  # raises
torch.zeros(2).index_fill(0, torch.tensor([0]), torch.tensor(1.5, requires_grad=True)).detach()
"""


@pytest.mark.parametrize("expression", lines(NUMBERS_THAT_DO_NOT_FIT))
def test_numbers_that_do_not_fit(expression):
    """index_fill takes numbers that the dtype holds."""
    check_expression(expression)
