"""The basic operations on all sparse layouts: values against the dense tensor's, gradients against differences."""

import pytest

import weft

LAYOUTS = ("coo", "uncoalesced", "csr", "csc", "bsr", "bsc", "hybrid", "batched")
MATRIX = [[1.5, 0, 2.0, 0], [0, 0, 3.0, 0.5], [0.25, 0, 0, 0], [0, 4.0, 0, -1.0]]

# Functions of x (a tensor of the layout), y (another with other entries), d (dense), m (a dense matrix), v (a vector).
OF_ALL = """x + y; x - y; x * y; x * d; d * x; x * 2; x / 2; -x; x.abs(); x.sin(); x.tanh(); x.square()
x.pow(2); x.relu(); x.expm1(); x.sign(); x + d; d + x; d - x; x.sum(); x.sum(0); x.sum(1); x.mean(0); x.amax(0); x.amin(1); x.norm()
x.to_dense(); x.clone(); x.to(t.float64); x.transpose(0, 1); x[0]; x[1, 0]; x[:, 1]; x.select(0, 1); x.index_select(0, t.tensor([1, 0]))
x.narrow(0, 0, 2); t.cat([x, y]); t.cat([x, y], 1); t.stack([x, y]); t.maximum(x, y); x.clamp(-1, 6); x.unsqueeze(0); x.flip(0)
x.sum((0, 1)); t.where(d > 0.3, x, y); t.addcmul(d, d, x.to_dense())"""
OF_MATRICES = """x @ m; m @ x; x @ v; v @ x; t.sparse.mm(x, m); t.mm(x, m); t.mv(x, v); x @ y; t.sparse.mm(x, y); x.t(); x.t() @ m
t.addmm(m, x, m); t.sparse.addmm(m, x, m); t.sparse.softmax(x, 1); t.sparse.log_softmax(x, 0); t.sparse.sum(x, 0); x.reshape(2, 8)
x.tril(); x.diagonal(); x.permute(1, 0); d.sparse_mask(x); t.linalg.norm(x); t.nn.functional.linear(m, x)"""
CALLS = [
    *((call.strip(), True) for line in OF_ALL.splitlines() for call in line.split(";")),
    *((call.strip(), False) for line in OF_MATRICES.splitlines() for call in line.split(";")),
]
# The softmax of a sparse tensor leaves out elements without an entry, and `sparse_mask` of a dense tensor keeps only entries.
UNLIKE_DENSE = ("softmax", "sparse_mask")


def dense_of(layout, shift=0):
    matrix = weft.tensor(MATRIX, dtype=weft.float64).roll(shift, 1)
    return weft.stack([matrix, matrix.flip(1)]) if layout in ("hybrid", "batched") else matrix


def sparse_of(layout, dense):
    if layout == "coo":
        return dense.to_sparse()
    if layout == "uncoalesced":
        found = dense.to_sparse()
        indices, values = found.indices(), found.values()
        parts = weft.cat([indices, indices], 1), weft.cat([values * 0.5, values * 0.5])
        return weft.sparse_coo_tensor(*parts, dense.shape)
    if layout == "hybrid":
        return dense.to_sparse(2)
    if layout == "batched":
        return dense.to_sparse_csr()
    blocks = {"blocksize": (2, 2)} if layout.startswith("b") else {}
    return dense.to_sparse(layout=getattr(weft, f"sparse_{layout}"), **blocks)


def evaluated(call, x, y, dense):
    numbers = weft.arange(16.0, dtype=weft.float64)
    m = (numbers.view(4, 4) / 7).cos()
    d = weft.arange(float(dense.numel()), dtype=weft.float64).view(dense.shape).sin()
    found = eval(call, {"t": weft, "x": x, "y": y, "d": d, "m": m, "v": m[0].clone()})
    return found if found.layout is weft.strided else found.to_dense()


def skipped(layout, call, for_all):
    """Products and the like are those of matrices, and PyTorch does not exchange a dim of the batch with one of the matrix."""
    return (
        layout in ("hybrid", "batched") and not for_all or (layout, call) == ("batched", "x.transpose(0, 1)")
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("call, for_all", CALLS)
def test_values(call, for_all, layout):
    if skipped(layout, call, for_all):
        pytest.skip("for matrices")
    dense, other = dense_of(layout), dense_of(layout, 1)
    with weft.sparse.check_sparse_tensor_invariants():
        found = evaluated(call, sparse_of(layout, dense), sparse_of(layout, other), dense)
    if not any(name in call for name in UNLIKE_DENSE):
        expected = evaluated(
            call.replace("t.sparse.mm", "t.mm").replace("t.sparse.", "t."), dense, other, dense
        )
        assert found.allclose(expected, equal_nan=True) and found.dtype is expected.dtype


@pytest.mark.parametrize("layout", ("uncoalesced", "csr", "csc", "bsc", "hybrid", "batched"))
@pytest.mark.parametrize("call, for_all", CALLS)
def test_gradients(call, for_all, layout):
    if skipped(layout, call, for_all):
        pytest.skip("for matrices")
    dense = dense_of(layout)
    x, y = sparse_of(layout, dense), sparse_of(layout, dense_of(layout, 1))
    values = x._values() if x.is_sparse else x.values()
    values += weft.arange(values.numel()).view(values.shape) / 50 + 5  # no function has a kink there
    gradcheck = weft.sparse.as_sparse_gradcheck(weft.autograd.gradcheck)
    options = {"masked": True, "fast_mode": True}
    assert gradcheck(lambda x: evaluated(call, x, y, dense), x.requires_grad_(), **options)
