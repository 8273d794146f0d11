"""Wrong indices, with checks off: every function raises an error or gives some result, and none leaves the memory of the tensor."""

import itertools

import pytest

import weft
from weft.layouts.sparse.scipy import to_scipy

FAR = 2**62


def of_coordinates():
    for place, index in itertools.product((0, 1), (9, -1, FAR, -FAR)):
        indices = weft.tensor([[0, 1, 2, 0], [0, 1, 1, 2]])
        indices[place, 1] = index
        for coalesced in (False, True):
            yield weft.sparse_coo_tensor(
                indices, weft.ones(4), (3, 3), check_invariants=False, is_coalesced=coalesced
            )
    yield weft.sparse_coo_tensor([[2, 0, 1, 0], [0, 0, 1, 0]], weft.ones(4), (3, 3), is_coalesced=True)


OUTER = (
    [0, 2, 3, 4],
    [0, 2, 3, 10**6],
    [-5, 2, 3, 4],
    [0, 5, 3, 4],
    [1, 2, 3, 4],
    [0, 2, 3, FAR],
    [0, 2],
    [0, 2, 3, 4, 4],
)
INNER = ([0, 1, 1, 2], [0, 1, 9, 2], [0, -1, 1, 2], [1, 0, 1, 2], [0, 0, 1, 2], [0, FAR, 1, 2], [0, 1, 1])


def of_compressed():
    for (outer, inner), layout in itertools.product(itertools.product(OUTER, INNER), ("csr", "csc", "bsr")):
        values, size = (weft.ones(4, 2, 2), (6, 6)) if layout == "bsr" else (weft.ones(4), (3, 3))
        make = getattr(weft, f"sparse_{layout}_tensor")
        yield make(outer, inner, values, size, check_invariants=False)
        if FAR not in (*outer, *inner):
            parts = weft.tensor(outer, dtype=weft.int32), weft.tensor(inner, dtype=weft.int32)
            yield make(*parts, values, size, check_invariants=False)
    yield weft.sparse_csr_tensor(OUTER[0], INNER[0], weft.ones(4), (1000, 3), check_invariants=False)
    yield weft.sparse_csr_tensor(OUTER[0], INNER[0], weft.ones(2), (3, 3), check_invariants=False)


FUNCTIONS = (
    lambda x, d: x.to_dense(), lambda x, d: x.coalesce(), lambda x, d: x + x, lambda x, d: x * x, lambda x, d: x * d,
    lambda x, d: d.clone().add_(x), lambda x, d: x @ d, lambda x, d: d @ x, lambda x, d: x @ d[0], lambda x, d: weft.sparse.mm(x, x),
    lambda x, d: x.t() @ d, lambda x, d: x.sum(0), lambda x, d: x.sum(1), lambda x, d: weft.sparse.softmax(x, 1),
    lambda x, d: weft.sparse.softmax(x, 0), lambda x, d: x.to_sparse_csr(), lambda x, d: x.to_sparse_csc(), lambda x, d: x.to_sparse(),
    lambda x, d: x.to_sparse_bsr((3, 3)), lambda x, d: x[0], lambda x, d: x[:, 1], lambda x, d: x[1, 1], lambda x, d: d.sparse_mask(x),
    lambda x, d: x.sparse_mask(x), lambda x, d: x.amax(0), lambda x, d: weft.sparse.sampled_addmm(x, d, d),
    lambda x, d: weft.sparse.spsolve(x, d[0]), lambda x, d: weft.triangular_solve(d, x), lambda x, d: weft.sparse.mm(x, d, "mean"),
    lambda x, d: x.clone().resize_(12, 12).to_dense(), lambda x, d: weft.masked.sum(x, 0, mask=x > 0), lambda x, d: weft.hspmm(x, d),
    lambda x, d: to_scipy(x).toarray(), repr, lambda x, d: weft.sparse.mm(x.clone().requires_grad_(), d).sum().backward(),
)  # fmt: skip


@pytest.mark.parametrize("made", [of_coordinates, of_compressed])
def test_no_function_leaves_the_memory(made):
    for x in made():
        d = weft.ones(x.shape)
        for function in FUNCTIONS:
            try:
                function(x, d) if function is not repr else repr(x)
            except (RuntimeError, IndexError, ValueError, NotImplementedError):
                pass
