import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from twins import check

import weft

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put(accumulate):
    base, index = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0, 1, 0])
    value = torch.tensor([10.0, 20.0, 10.0])
    check(lambda lib, b, i, v: b.index_put((i, i), v, accumulate=accumulate), base, index, value)
    check(lambda lib, b, i, v: lib.index_put_(b, (i,), v[:1], accumulate), base, index, value)
    mask = torch.tensor([[True, False], [True, True]])
    check(lambda lib, b, m, v: b.index_put((m,), v, accumulate), base, mask, value)


def test_the_dtype_of_the_values_must_be_that_of_the_tensor():
    for lib in (torch, weft):
        t = lib.zeros(4)
        for index in (lib.tensor([0, 2]), lib.tensor([True, False, True, False])):
            for values in (
                lib.tensor([1, 2]),
                lib.tensor([1.0, 2.0], dtype=lib.float64),
                lib.tensor([1j, 2j]),
            ):
                for accumulate in (True, False):
                    with pytest.raises(RuntimeError, match="dtypes match"):
                        t.index_put_((index,), values, accumulate)
        assert t.tolist() == [0, 0, 0, 0]


ORDER_OF_CHECKS = """
torch.ones(3, requires_grad=True).put_(torch.tensor([0]), torch.ones(2))  # raises
torch.ones(3, requires_grad=True).index_put_((torch.tensor([0]),) * 2, torch.ones(2))  # raises
torch.zeros(0, 3).index_put_((torch.tensor([0]),), torch.ones(1, dtype=torch.int32))  # raises
torch.zeros(0, 3).index_put_((torch.tensor([0]),), torch.ones(7))  # raises
torch.zeros(0, 3)[torch.tensor([0])]  # raises
torch.zeros(0, 3)[torch.tensor([], dtype=torch.int64)]
torch.zeros(0, 3, device="meta")[torch.zeros(1, dtype=torch.int64, device="meta")]
torch.zeros(0, 3)[torch.tensor([0]), torch.tensor([], dtype=torch.int64)]
torch.zeros(0, 3)[torch.tensor([[0]]), torch.tensor([5])]  # raises
torch.zeros(3, 0)[torch.tensor([7])]
(lambda t: t.__setitem__(torch.tensor([0, 1]), torch.ones(2, dtype=torch.int64)))(torch.zeros(0))  # raises
(lambda t: t.__setitem__(torch.tensor([0, 1]), torch.ones(5)))(torch.zeros(0))  # raises
(lambda t: t.__setitem__((torch.tensor([0, 1]), torch.tensor([0, 1, 2])), torch.ones(5, dtype=torch.int64)))(torch.zeros(2, 2))  # raises
"""


@pytest.mark.parametrize("expression", lines(ORDER_OF_CHECKS))
def test_order_of_checks(expression):
    """Of two mistakes PyTorch's is told: leaves first, then indices, then dtypes and shapes."""
    check_expression(expression)


UNFIT = """
torch.zeros(2, 3).index_put((torch.tensor(False), torch.tensor(0)), torch.tensor(1.0))
torch.zeros(2, 3).index_put((torch.tensor(0), torch.tensor(False)), torch.tensor(1.0))
torch.zeros(3).index_put((torch.tensor(True),), torch.tensor(1.0))
torch.zeros(3).index_put((torch.tensor(False),), torch.tensor(1.0))
torch.tensor(1.0).index_put((torch.tensor(True),), torch.tensor(2.0))  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


def test_a_mask_without_dims_chooses_all_or_nothing():
    # PyTorch reports an internal error.
    x, values = weft.arange(3.0), weft.tensor([5.0, 6.0, 7.0])
    assert x.index_put((weft.tensor(True),), values).tolist() == [5, 6, 7]
    assert x.index_put((weft.tensor(True),), values, accumulate=True).tolist() == [5, 7, 9]
    assert x.index_put((weft.tensor(False),), values, accumulate=True).tolist() == [0, 1, 2]


ONE_ELEMENT_FOR_A_MASK = """
put(torch.zeros(2, 3), torch.tensor([True, False]), torch.tensor(5))
put(torch.zeros(2, 3), torch.tensor([True, False]), torch.tensor([[5]], dtype=torch.int8))
put(torch.zeros(2, 3), (slice(None), torch.tensor([True, False, True])), torch.tensor([5]))
put(torch.zeros(2, 3), (1, torch.tensor([True, False, True])), torch.tensor([5]))
put(torch.zeros(2, 3), (None, torch.tensor([True, False])), torch.tensor([5]))
put(torch.zeros(2, 3, 2), (..., torch.tensor([[True, False]] * 3)), torch.tensor([[[5]]]))
put(torch.zeros(2, 3, dtype=torch.complex64).conj(), torch.tensor([True, False]), torch.tensor(1j))
put(torch.zeros(2, 1).expand(2, 3), torch.tensor([True, False]), torch.tensor(5))
put(torch.zeros(2, 3, device="meta"), torch.tensor([True, False], device="meta"), torch.tensor(5))
torch.zeros(2, 3).index_put((torch.tensor([True, False]),), torch.tensor(5))
torch.zeros(2, 3).index_put((torch.tensor([True, False]),), torch.tensor(5), accumulate=True)  # raises
put(torch.zeros(2, 3), (torch.tensor([True, False]), 0), torch.tensor([5]))
put(torch.zeros(2, 3), torch.tensor([True, False]), torch.tensor([5, 6, 7]))  # raises
put(torch.zeros(2, 3), (torch.tensor([True, False]), torch.tensor([0])), torch.tensor(5))  # raises
put(torch.zeros(2, 3), torch.tensor([True, False, True]), torch.tensor(5))  # raises
put(torch.zeros(2, 3), (0, torch.tensor([[True, False, True]])), torch.tensor(5))  # raises
put(torch.zeros(2, 3, dtype=torch.int8), torch.tensor([True, False]), torch.tensor(500.0))  # raises
put(torch.zeros(2, 3, dtype=torch.int8), torch.tensor([True, False]), torch.tensor(1j))  # raises
"""


@pytest.mark.parametrize("expression", lines(ONE_ELEMENT_FOR_A_MASK))
def test_one_element_for_a_mask_of_some_dims_is_converted(expression):
    def put(tensor, index, value):
        tensor[index] = value
        return tensor

    check_expression(expression, put=put)


@pytest.mark.parametrize("index", [([True, False],), (slice(None), [True, False, True])])
def test_gradients_of_one_element_for_a_mask_of_some_dims(index):
    found = []
    for lib in (torch, weft):
        leaf = lib.ones(2, 3, requires_grad=True)
        value = lib.tensor([3.0], dtype=lib.float64, requires_grad=True)
        target = leaf * 2
        target[tuple(lib.tensor(item) if isinstance(item, list) else item for item in index)] = value
        (target * target).sum().backward()
        found.append((target.tolist(), leaf.grad.tolist(), value.grad.tolist(), str(value.grad.dtype)))
    assert found[0] == found[1]
