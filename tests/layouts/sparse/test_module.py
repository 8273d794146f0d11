"""The module torch.sparse: diagonals, checks of invariants, gradcheck, and the functions of dense tensors."""

import pytest
import torch
from sparse_layouts import LAYOUTS, dense, in_layout, parts

import weft

ROWS = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
DIAGONALS = {
    "two": (ROWS, [0, 1], (3, 3)),
    "wide": (ROWS, [-1, 1], (5, 7)),
    "outside": (ROWS[:1], [1], (3, 6)),
    "one": (ROWS[0], 0, (3, 3)),
}


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc"])
@pytest.mark.parametrize("case", DIAGONALS)
def test_spdiags(case, layout):
    diagonals, offsets, shape = DIAGONALS[case]
    for chosen in (None, layout):
        found, known = (
            t.sparse.spdiags(t.tensor(diagonals), t.tensor(offsets), shape, chosen and getattr(t, chosen))
            for t in (weft, torch)
        )
        assert parts(found) == parts(known)


def test_spdiags_leaves_out_what_is_behind_the_last_column():
    found = weft.sparse.spdiags(weft.tensor(ROWS), weft.tensor([-1, 2]), (5, 2))
    assert found.to_dense().tolist() == [[0, 0], [1, 0], [0, 2], [0, 0], [0, 0]]


def test_the_gradient_of_spdiags():
    rows = weft.tensor(ROWS, requires_grad=True)
    (weft.sparse.spdiags(rows, weft.tensor([0, 1]), (3, 3)).to_dense() ** 2).sum().backward()
    assert rows.grad.tolist() == [[2, 4, 6], [0, 10, 12]]


BAD = {
    "3 dims": (ROWS, [0, 1], (3, 3, 3)),
    "too many offsets": (ROWS, [0, 1, 2], (3, 3)),
    "repeated": (ROWS, [1, 1], (3, 3)),
    "floats": (ROWS, [0.0, 1.0], (3, 3)),
}


@pytest.mark.parametrize("case", BAD)
def test_spdiags_refuses(case):
    diagonals, offsets, shape = BAD[case]
    messages = []
    for t in (weft, torch):
        with pytest.raises(RuntimeError) as found:
            t.sparse.spdiags(t.tensor(diagonals), t.tensor(offsets), shape)
        messages.append(str(found.value))
    assert messages[0] == messages[1]


def test_the_switch_of_checks():
    switch = weft.sparse.check_sparse_tensor_invariants
    outside = lambda: weft.sparse_coo_tensor([[2]], [1.0], (2,))  # noqa: E731
    assert not switch.is_enabled()
    with switch():
        assert switch.is_enabled()
        with pytest.raises(RuntimeError, match="size is inconsistent"):
            outside()
        with switch(False):
            outside()
        assert switch.is_enabled()
    with pytest.raises(RuntimeError, match="size is inconsistent"):
        switch()(outside)()
    assert not switch.is_enabled()
    switch.enable()
    assert switch.is_enabled()
    switch.disable()
    both = switch()
    with both, pytest.raises(RuntimeError, match="already activated"), both:
        pass
    assert not switch.is_enabled()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradcheck(layout, masked):
    x = in_layout(weft.tensor(dense((4, 4)).tolist(), dtype=weft.float64), layout).requires_grad_()
    double = lambda x: 2 * x.t().to_dense()  # noqa: E731
    assert weft.autograd.gradcheck(double, x, masked=masked)
    assert weft.sparse.as_sparse_gradcheck(weft.autograd.gradcheck)(double, (x,), masked=masked)


def test_dense_operands():
    m = weft.arange(4.0).view(2, 2)
    assert weft.sparse.mm(m, m).tolist() == (m @ m).tolist()
    assert weft.sparse.addmm(m, m, m, beta=2, alpha=3).tolist() == (2 * m + 3 * (m @ m)).tolist()
    for name in ("sum", "softmax", "log_softmax", "sampled_addmm", "spsolve"):
        with pytest.raises(NotImplementedError, match=f"torch.sparse.{name} takes a sparse tensor"):
            getattr(weft.sparse, name)(m, 0)
