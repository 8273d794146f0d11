import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import DTYPES, check, counting, facts, tensors

import weft

pytestmark = pytest.mark.filterwarnings("ignore")


ints = st.integers(-5, 5)


bounds = st.none() | ints


slices = st.builds(slice, bounds, bounds, st.none() | st.integers(1, 3))


BASIC = st.one_of(ints, slices, st.none(), st.just(...))


def index_lists(size=4):
    return st.lists(st.integers(-size, size - 1), min_size=0, max_size=3)


class Data:
    """An index that becomes a tensor of either library."""

    def __init__(self, values, dtype):
        self.values, self.dtype = values, dtype

    def __repr__(self):
        return f"{self.dtype}({self.values})"


INDEX_TENSORS = st.one_of(
    st.builds(Data, index_lists(), st.sampled_from(("int64", "int32"))),
    st.builds(Data, st.lists(st.booleans(), min_size=0, max_size=4), st.just("bool")),
    st.builds(
        Data,
        st.lists(st.lists(st.integers(-2, 1), min_size=2, max_size=2), min_size=1, max_size=2),
        st.just("int64"),
    ),
    st.builds(Data, st.integers(-2, 2), st.just("int64")),
    st.builds(Data, st.booleans(), st.just("bool")),
)


ADVANCED = st.one_of(BASIC, INDEX_TENSORS, index_lists(), st.booleans())


def items_of(kinds, most, least=0):
    """Indices with at most one ..., which PyTorch does not expect twice."""
    return st.lists(kinds, min_size=least, max_size=most).filter(
        lambda items: sum(i is ... for i in items) < 2
    )


def realise(lib, items):
    return tuple(
        lib.tensor(i.values, dtype=getattr(lib, i.dtype)) if isinstance(i, Data) else i for i in items
    )


def place(view):
    return view.storage_offset(), view.stride(), tuple(view.shape)


@pytest.mark.may_raise(least=0.5)
@settings(max_examples=300, deadline=None)
@given(tensors(), items_of(BASIC, 4))
def test_numbers_and_slices_give_the_same_views(base, items):
    def read(lib, tensor):
        view = tensor[tuple(items)]
        return place(view), view

    check(read, base)


@pytest.mark.may_raise(least=0.3)
@settings(max_examples=400, deadline=None)
@given(tensors(dtypes=DTYPES), items_of(ADVANCED, 4, 1))
def test_any_index_reads_the_same(base, items):
    check(lambda lib, tensor: tensor[realise(lib, items)], base)


@pytest.mark.may_raise(least=0.3)
@settings(max_examples=300, deadline=None)
@given(
    tensors(dtypes=("float32", "int64", "complex64", "bfloat16"), expanded=False), items_of(ADVANCED, 3, 1)
)
def test_any_index_writes_a_number(base, items):
    def write(lib, tensor):
        tensor = tensor.clone()
        tensor[realise(lib, items)] = 7
        return tensor

    check(write, base)


@settings(max_examples=300, deadline=None)
@given(tensors(expanded=False), items_of(ADVANCED, 3, 1), st.data())
def test_any_index_writes_a_tensor_that_fits(base, items, data):
    try:
        wanted = tuple(base[realise(torch, items)].shape)
    except Exception:
        return
    keep = data.draw(st.integers(0, len(wanted)))
    sizes = [data.draw(st.sampled_from((1, size))) for size in wanted[keep:]]
    value = counting(sizes)

    def write(lib, tensor, value):
        tensor = tensor.clone()
        tensor[realise(lib, items)] = value
        return tensor

    if not repeats(base, items):
        check(write, base, value)


def repeats(tensor, items):
    """Whether an element is named twice: then it is open which value stays."""
    numbers = torch.arange(tensor.numel()).reshape(tensor.shape)[realise(torch, items)].flatten().tolist()
    return len(set(numbers)) < len(numbers)


@pytest.mark.parametrize("index", [3, -4, (0, 5), (slice(None), 9), [7], (0, [1, 8]), (0, 0, 0)])
def test_out_of_range_is_an_index_error_and_writes_nothing(index):
    tensor = weft.zeros(3, 4)
    with pytest.raises(IndexError):
        tensor[index]
    with pytest.raises(IndexError):
        tensor[index] = 1.0
    assert tensor.tolist() == weft.zeros(3, 4).tolist()


def test_messages():
    t = weft.zeros(3)
    for index, message in (
        (5, "index 5 is out of bounds for dimension 0 with size 3"),
        ([5], "index 5 is out of bounds for dimension 0 with size 3"),
        ((0, 0), "too many indices for tensor of dimension 1"),
        (0.5, "only integers, slices"),
        (weft.zeros(2), "tensors used as indices must be long, int, byte or bool tensors"),
        (
            [True],
            r"The shape of the mask \[1\] at index 0 does not match the shape of the indexed tensor \[3\] at index 0",
        ),
    ):
        with pytest.raises(IndexError, match=message):
            t[index]
    with pytest.raises(ValueError, match="step must be greater than zero"):
        t[::-1]
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        weft.tensor(1)[0]
    with pytest.raises(TypeError, match="can't assign a str to a torch.FloatTensor"):
        t[0] = "a"


def test_a_put_of_any_bad_index_writes_nothing():
    tensor = weft.zeros(5)
    with pytest.raises(IndexError):
        tensor[weft.tensor([0, 1, 9])] = weft.ones(3)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        tensor[weft.tensor([0, 1])] = weft.ones(3)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        tensor[weft.tensor([True, False, True, False, False])] = weft.ones(3)
    assert tensor.tolist() == [0] * 5


# What shares memory with the target is refused only if it has no gaps (test_overlap.py), as in PyTorch.


def test_overlapping_source_is_read_before_it_is_written():
    tensor = weft.tensor([0, 0, 1, 2, 3, 4])
    tensor[[5, 0]] = tensor[[0, 5]]
    assert tensor.tolist() == [4, 0, 1, 2, 3, 0]
    tensor[weft.tensor([3, 1])] = tensor[::3]
    assert tensor.tolist() == [4, 2, 1, 4, 3, 0]


OWN_ELEMENTS = """
write(torch.arange(6.0), ..., lambda t: t[2])
write(torch.arange(6.0), slice(None), lambda t: t[2:3])
write(torch.arange(6.0).reshape(2, 3), slice(None), lambda t: t[1])
write(torch.arange(6.0).reshape(2, 3), slice(None), lambda t: t[:, 1:2])
write(torch.arange(3.0), torch.tensor([True, False, True]), lambda t: t[0])
write(torch.ones(1).expand(1, 3), -1, lambda t: t)
"""


@pytest.mark.parametrize("expression", lines(OWN_ELEMENTS))
def test_elements_of_the_target_may_be_broadcast_to_it(expression):
    def write(tensor, index, value):
        tensor[index] = value(tensor)
        return tensor

    check_expression(expression, write=write)


def test_the_target_may_be_its_own_index():
    for lib in (torch, weft):
        tensor = lib.tensor([2, 0, 1])
        tensor[tensor.clone()] = lib.tensor([7, 8, 9])
        assert tensor.tolist() == [8, 9, 7]
    memory = weft.tensor([2, 5, 0, 5, 1, 5])
    tensor = memory[::2]
    tensor[memory[::2]] = weft.tensor([7, 8, 9])
    assert tensor.tolist() == [8, 9, 7]


def test_conjugate_and_negative_views():
    def write(lib, z):
        z = z.clone()
        conj, imag = z.conj(), z.conj().imag
        conj[[0, 1]] = lib.tensor([1 + 1j, 2 + 2j])
        imag[lib.tensor([2])] = 5.0
        conj[lib.tensor([False, False, False, True])] = 3j
        return z, conj[[0, 2]], imag[[1]], conj[z.imag > 0]

    check(write, torch.tensor([1 + 2j, 3 - 1j, 0 + 1j, 2 + 0j]))


def test_a_shared_view_sees_writes():
    t = weft.zeros(4, 4)
    row = t[1]
    t[1, 2] = 5
    t[:, 0] = weft.tensor([1.0, 2.0, 3.0, 4.0])
    assert row.tolist() == [2, 0, 5, 0]


def test_long_loops_do_not_fill_the_plan_cache():
    from weft.ops.indexing import basic_indexing

    t = weft.zeros(10000)
    before = len(basic_indexing.VIEW_PLANS) + len(basic_indexing.SELECT_PLANS)
    for i in range(10000):
        t[i]
        t[i : i + 3]
    assert len(basic_indexing.VIEW_PLANS) + len(basic_indexing.SELECT_PLANS) < before + 10


def test_large_tensors_use_all_threads_and_agree():
    index = weft.tensor([(7919 * i) % 400000 for i in range(400000)])
    t = weft.tensor(list(range(400000)))
    assert (t[index] == index).all()
    out = weft.zeros(400000, dtype=weft.int64)
    out[index] = index
    assert (out == t).all()
    mask = t % 3 == 0
    assert t[mask].tolist() == list(range(0, 400000, 3))
    out[mask] = -t[mask]
    assert facts(out)["values"] == repr([-i if i % 3 == 0 else i for i in range(400000)])
    with pytest.raises(IndexError, match="index 400000 is out of bounds"):
        t[index + 1]


def test_a_mask_in_the_memory_that_is_written_to_is_read_before():
    mask = (weft.arange(12) % 6 > 1)[::2]
    expected = mask.clone()
    values = weft.tensor([False, True, False, True])
    expected.view(3, 2).t()[mask.clone().view(2, 3)] = values
    mask.view(3, 2).t()[mask.view(2, 3)] = values
    assert mask.tolist() == expected.tolist()


def test_of_large_writes_to_one_element_the_last_stays():
    """Threads that shared the indices would write in any order, and lose some of the sums."""
    count = 1 << 20
    index, values = weft.arange(count) % 4, weft.arange(count)
    for _ in range(50):
        last = weft.zeros(4, dtype=weft.int64).index_put_((index,), values)
        total = weft.zeros(4, dtype=weft.int64).index_put_((index,), values, accumulate=True)
        assert last.tolist() == [count - 4, count - 3, count - 2, count - 1]
        assert total.sum() == count * (count - 1) // 2


SMALL_INDICES = """
t[i]
t[i, i]
t[i, :2]
t[:, i]
t.index_put((i,), torch.tensor(7.0))
t.index_put((i, i), torch.arange(3.0))
t.index_select(0, i)
t.gather(0, i[:, None])
t.take(i)
t.scatter(0, i[:, None], 1.0)
t[0].index_add(0, i, torch.ones(3))
t.index_fill(0, i, 1.0)
t.index_copy(0, i, torch.ones(3, 5))
t.put(i, torch.ones(3))
torch.take_along_dim(t, i[:, None], 0)
F.embedding(i, t)
F.embedding_bag(i[None], t)
F.nll_loss(t[:3], i)
F.one_hot(i)
torch.bincount(i)
torch.tensor_split(t, i)
torch.repeat_interleave(t, i, 0)
""".strip().splitlines()


@pytest.mark.parametrize("values", [(1, 0, 3), (1, -1, 0), (4, -5, 5), (127, 0, 1), (-128, 0, 1)], ids=str)
@pytest.mark.parametrize("expression", SMALL_INDICES)
@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "int32", "int64"])
def test_index_dtypes(dtype, expression, values):
    """Small integers index like int64 where PyTorch takes them: also negative ones, and those out of range."""
    found = []
    for lib in (torch, weft):
        t = lib.arange(25.0).reshape(5, 5)
        i = lib.tensor(values).to(getattr(lib, dtype))
        try:
            result = eval(expression, {"torch": lib, "F": lib.nn.functional, "t": t, "i": i})
        except Exception as error:
            found.append(type(error))
        else:
            found.append([each.tolist() for each in (result if isinstance(result, tuple) else [result])])
    assert found[1] == found[0]


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "float32"])
def test_dtypes_that_do_not_index(dtype):
    """PyTorch takes them neither as positions nor as masks."""
    for lib in (torch, weft):
        t, index = lib.zeros(5), lib.tensor([1, 0, 1, 0, 1]).to(getattr(lib, dtype))
        for use in ("t[index]", "t.__setitem__(index, 1.0)", "t.index_put_((index,), t + 1)"):
            with pytest.raises(IndexError, match="tensors used as indices must be"):
                eval(use, {"t": t, "index": index})
        assert not t.any()


def test_int32_reaches_as_far_as_int64():
    t = weft.arange(2**17)
    index = [2**16, -(2**17), 2**17 - 1, -1]
    assert t[weft.tensor(index, dtype=weft.int32)].tolist() == [2**16, 0, 2**17 - 1, 2**17 - 1]
    for bad in (2**17, -(2**17) - 1, 2**31 - 1, -(2**31)):
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds"):
            t[weft.tensor([0, bad], dtype=weft.int32)]


NUMBERS_BEFORE_INDICES = """
(lambda t: t.__setitem__((slice(None), 0), inf))(torch.tensor([1], dtype=torch.uint8))  # raises
(lambda t: t.__setitem__((slice(None), 0), 1e30))(torch.tensor(1))  # raises
(lambda t: t.__setitem__(0, 1 + 2j))(torch.tensor(1.0))  # raises
(lambda t: t.__setitem__(5, 1 + 2j))(torch.tensor([1.0]))  # raises
(lambda t: t.__setitem__(5, "a"))(torch.tensor([1.0]))  # raises
(lambda t: t.__setitem__(5, None))(torch.tensor([1.0]))  # raises
(lambda t: t.__setitem__(5, [1]))(torch.tensor([1.0]))  # raises
(lambda t: t.__setitem__(torch.tensor([5]), 1 + 2j))(torch.tensor([1.0]))  # raises
(lambda t: t.__setitem__((0, 0), 300))(torch.tensor([1], dtype=torch.uint8))  # raises
(lambda t: t.__setitem__((0, 0), 30))(torch.tensor([1], dtype=torch.uint8))  # raises
(lambda t: t.__setitem__((0, 0), -1))(torch.tensor([1], dtype=torch.uint8))  # raises
(lambda t: t.__setitem__(torch.tensor([True, False]), 300))(torch.tensor([1], dtype=torch.uint8))  # raises
(lambda t: t.__setitem__(torch.tensor([0, 1]), 1j))(torch.tensor([1.0]))  # raises
(lambda t: t.__setitem__(torch.tensor([1.0]), 1j))(torch.tensor([1.0]))  # raises
(lambda t: t.__setitem__(0, 1j))(torch.zeros(0))  # raises
(lambda t: t.__setitem__(slice(None), 1j))(torch.zeros(0))  # raises
(lambda t: t.__setitem__(torch.tensor([True, False]), 1j))(torch.tensor([1.0, 2.0]))  # raises
"""


@pytest.mark.parametrize("expression", lines(NUMBERS_BEFORE_INDICES))
def test_numbers_before_indices(expression):
    """A number that does not fit the dtype is the first mistake, as in PyTorch."""
    check_expression(expression)


@pytest.mark.parametrize(
    "expression",
    lines("""
torch.zeros(2, dtype=torch.uint8).__setitem__((slice(None), 0), inf)  # raises
torch.zeros(()).__setitem__(0, 1j)  # raises
torch.zeros(2, dtype=torch.uint8).__setitem__(False, 300)  # raises
torch.zeros(2).__setitem__(7, "a")  # raises
torch.zeros(2).__setitem__(7, 1)  # raises
torch.zeros(2, dtype=torch.uint8).__setitem__(torch.tensor([True, False]), torch.tensor([300]))  # raises
torch.zeros(2, dtype=torch.uint8).__setitem__(torch.tensor([False, False]), torch.tensor(1j))  # raises
[a := torch.zeros(2, dtype=torch.uint8), a.__setitem__(torch.tensor([True, False]), torch.tensor(2 + 0j))][0]
[a := torch.zeros(2).half(), a.__setitem__(slice(None), -1e9)][0]
[a := torch.zeros(2).half(), a.__setitem__(torch.tensor([True, False]), 1e6)][0]
[a := torch.zeros(2).bfloat16(), a.__setitem__(slice(None), 0.3)][0]
"""),
)
def test_the_value_is_converted_before_the_index_is_looked_at(expression):
    check_expression(expression)


LEAVES_BEFORE_INDEX_TENSORS = """
torch.ones(3, 1, requires_grad=True).__setitem__(torch.tensor([True]), 2)  # raises
torch.ones(3, 1, requires_grad=True).__setitem__(torch.tensor([1.0]), 2)  # raises
torch.ones(3, 1, requires_grad=True).__setitem__(7, 2)  # raises
torch.ones(3, 1, requires_grad=True).__setitem__(torch.tensor([7]), 2)  # raises
torch.ones((), requires_grad=True).__setitem__(torch.tensor([7]), 2)  # raises
torch.zeros(0, requires_grad=True).__setitem__(torch.tensor(0), 2)  # raises
torch.zeros(0, requires_grad=True).__setitem__((torch.tensor([0, 0]), None), torch.ones(2))  # raises
torch.ones(3, requires_grad=True).__setitem__((7, torch.tensor([0])), 2)  # raises
"""


@pytest.mark.parametrize("expression", lines(LEAVES_BEFORE_INDEX_TENSORS))
def test_leaves_before_index_tensors(expression):
    """What must not be written to is told before what is wrong with an index tensor."""
    check_expression(expression)


ARRAYS_IN_LISTS = """
torch.arange(6).reshape(3, 2)[[np.array([0, 1])]]
torch.arange(6).reshape(3, 2)[[np.array([0, 1]), np.array([1, 0])]]
torch.arange(6).reshape(3, 2)[[np.array([True, False, True])]]
torch.arange(6).reshape(3, 2)[[np.zeros(0, dtype=np.int64)]]
torch.arange(6).reshape(3, 2)[[np.array(1), 0]]
torch.arange(6).reshape(3, 2)[np.array(1)]
torch.arange(6).reshape(3, 2)[[np.int64(1), 0]]
torch.zeros(3, 2).__setitem__([np.zeros(0, dtype=np.int64)], 5.0)
torch.zeros(3, 2).index_put_((torch.tensor([], dtype=torch.int64),), torch.ones(2), accumulate=True)
torch.zeros(3, 2).index_put_((torch.tensor([], dtype=torch.int64),) * 2, torch.ones(0), accumulate=True)
torch.zeros(0, 2).index_put_((torch.tensor([], dtype=torch.int64),), torch.tensor(1.0), accumulate=True)
torch.zeros(3, 2).index_put_((torch.zeros(3, dtype=torch.bool),), torch.tensor(1.0), accumulate=True)
"""


@pytest.mark.parametrize("expression", lines(ARRAYS_IN_LISTS))
def test_lists_of_arrays_and_empty_indices(expression):
    """A list that holds arrays is taken for a tuple of indices."""
    check_expression(expression)
