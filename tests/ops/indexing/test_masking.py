import oracle
import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import DTYPES, check, counting, tensors

import weft

pytestmark = pytest.mark.filterwarnings("ignore")


@st.composite
def masks(draw, shape):
    """A bool tensor that broadcasts to `shape`, in one memory order or another."""
    sizes = [draw(st.sampled_from((1, size))) for size in shape[draw(st.integers(0, len(shape))) :]]
    count = torch.Size(sizes).numel()
    values = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    mask = torch.tensor(values, dtype=torch.bool).reshape(sizes)
    return mask.t().contiguous().t() if mask.ndim == 2 and draw(st.booleans()) else mask


@settings(max_examples=200, deadline=None)
@given(st.data(), tensors(dtypes=DTYPES))
def test_masked_ops(data, base):
    mask = data.draw(masks(base.shape))
    check(lambda lib, b, m: b.masked_select(m), base, mask)
    check(lambda lib, b, m: b.clone().masked_fill_(m, 1), base, mask)
    check(lambda lib, b, m: b.masked_scatter(m, b.reshape(-1).flip(0)), base, mask)
    if base.is_contiguous():
        check(lambda lib, b, m: b.masked_fill(m, lib.tensor(3)), base, mask)


@settings(max_examples=200, deadline=None)
@given(st.data(), tensors(dtypes=DTYPES), st.sampled_from(("float64", "int64", "bool", "complex64")))
def test_where(data, base, dtype):
    mask = data.draw(masks(base.shape))
    other = torch.tensor(1, dtype=getattr(torch, dtype))
    check(lambda lib, b, m: lib.where(m, b, b), base, mask)
    check(lambda lib, b, m, o: lib.where(m, b, o), base, mask, other)
    check(lambda lib, b, m: (lib.where(m, 2, b), b.where(m, 1.5), lib.where(m, 1, 0.5)), base, mask)


@settings(max_examples=200, deadline=None)
@given(tensors(dtypes=DTYPES))
def test_nonzero(base):
    base = base % 3 if base.dtype not in (torch.bool, torch.complex64, torch.complex128) else base
    check(lambda lib, b: (b.nonzero(), lib.argwhere(b), b.nonzero(as_tuple=True), lib.where(b)), base)
    check(lambda lib, b: lib.nonzero_static(b, size=3), base)


def test_nonzero_as_a_tuple_has_no_out():
    with pytest.raises(RuntimeError, match="does not support the out kwarg when as_tuple is True"):
        weft.nonzero(weft.ones(2), as_tuple=True, out=weft.empty(0, dtype=weft.int64))


@pytest.mark.refuses("all")
def test_errors():
    base, mask = counting((2, 3)), torch.tensor([True, False, True])
    check(lambda lib, b, m: b.masked_fill(b, 1), base, mask)
    check(lambda lib, b, m: b.masked_fill(m, 1j), base, mask)
    check(lambda lib, b, m: b.masked_fill(m, lib.zeros(1)), base, mask)
    check(lambda lib, b, m: b.masked_fill_(lib.ones(2, 2, 3).bool(), 1), base, mask)
    check(lambda lib, b, m: b.masked_select(b), base, mask)
    check(lambda lib, b, m: b.masked_scatter(m, lib.zeros(3)), base, mask)
    check(lambda lib, b, m: b.masked_scatter(m, lib.zeros(6, dtype=lib.int64)), base, mask)
    check(lambda lib, b, m: lib.where(b, b, b), base, mask)
    check(lambda lib, b, m: lib.where(m, b), base, mask)
    check(lambda lib, b, m: lib.where(m, b, b[:, :2]), base, mask)


def test_too_short_a_source_leaves_the_target():
    t = weft.zeros(4)
    with pytest.raises(RuntimeError, match="Number of elements of source"):
        t.masked_scatter_(weft.tensor([True, True, True, False]), weft.ones(2))
    assert t.tolist() == [0.0] * 4


@pytest.mark.refuses(2)
def test_isin():
    base, test = counting((3, 2), "int64"), torch.tensor([2, 5, 9])
    check(
        lambda lib, b, t: (lib.isin(b, t), lib.isin(b, t, invert=True), lib.isin(b, 3), lib.isin(5, t)),
        base,
        test,
    )
    check(lambda lib, b, t: lib.isin(b.float() / 10, 0.1), base, test)
    check(lambda lib, b, t: lib.isin(b, t.to(lib.complex64)), base, test)
    check(lambda lib, b, t: lib.isin(1, 2), base, test)


def test_packing_writes_nothing_beyond_its_memory():
    for count in (15, 16, 17, 64, 1000):
        guard = weft.zeros(count)
        values = weft.ones(count)
        kept = [values[values > 0] for _ in range(20)]
        assert guard.sum() == 0 and all((each == 1).all() for each in kept)


@pytest.mark.parametrize(
    "expression",
    lines("""
torch.tensor([3]).masked_fill(torch.tensor([True]), torch.tensor(2.5))
torch.tensor([3]).masked_fill(torch.tensor([True]), torch.tensor(3 + 0j))
torch.tensor([3]).masked_fill(torch.tensor([True]), 3 + 0j)
torch.tensor([3]).masked_fill(torch.tensor([True]), torch.tensor(3 + 1j))  # raises
torch.tensor([3]).masked_fill(torch.tensor([True]), torch.tensor(inf))  # raises
torch.tensor([3], dtype=torch.uint8).masked_fill(torch.tensor([False]), torch.tensor(300))  # raises
torch.tensor([3.0]).half().masked_fill(torch.tensor([True]), torch.tensor(1e6))  # raises
torch.tensor([3], dtype=torch.uint8).index_fill(0, torch.tensor([0]), torch.tensor(300))  # raises
"""),
)
def test_the_only_element_of_a_value_must_fit(expression):
    check_expression(expression)


@pytest.mark.parametrize(
    "write",
    [
        lambda lib, view, mask: view.__setitem__(mask, 9),
        lambda lib, view, mask: view.__setitem__(mask, lib.tensor(9)),
        lambda lib, view, mask: view.__setitem__(mask, lib.tensor([9.0])),
        lambda lib, view, mask: view.masked_fill_(mask, 9),
        lambda lib, view, mask: view.masked_fill_(mask, lib.tensor(9)),
        lambda lib, view, mask: view.index_put_((mask,), lib.tensor(9.0)),
    ],
)
@pytest.mark.parametrize("windows", [False, True])
def test_a_mask_writes_through_one_of_several_names_of_an_element(write, windows):
    def run(lib):
        base = lib.arange(3.0).unsqueeze(1)
        view = base[:, 0].unfold(0, 2, 1) if windows else base.expand(3, 3)
        mask = lib.zeros(view.shape, dtype=lib.bool)
        mask[1, 0] = True
        write(lib, view, mask)
        return base

    assert run(weft).tolist() == run(torch).tolist()


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "float32", "float64", "complex64"])
def test_rows_by_a_mask(dtype):
    """Short rows are packed by a kernel, long ones are gathered; a view begins in the middle of its memory."""
    for columns in (1, 3, 4, 5, 16, 40):
        whole = torch.arange(2 * 9 * columns + 1).to(getattr(torch, dtype))
        theirs = whole[1:].view(2, 9, columns)
        mine = oracle.to_weft(whole)[1:].view(2, 9, columns)
        for chosen in (torch.ones(9) > 0, torch.ones(9) < 0, torch.arange(9) % 3 == 1):
            mask = oracle.to_weft(chosen)
            oracle.assert_same(mine[1][mask], theirs[1][chosen])
            oracle.assert_same(mine[0, :, ::2][mask], theirs[0, :, ::2][chosen])
            oracle.assert_same(mine[:, mask], theirs[:, chosen])
            both, own = torch.stack([chosen, ~chosen]), weft.stack([mask, ~mask])
            oracle.assert_same(mine[own], theirs[both])


def test_rows_by_masks_of_many_sizes():
    for rows in range(2, 40):
        theirs = torch.rand(rows, 3)
        mine, chosen = oracle.to_weft(theirs), theirs[:, 0] > 0.5
        oracle.assert_same(mine[oracle.to_weft(chosen)], theirs[chosen])
