"""Means, norms, extrema, flags and counts of sparse tensors, and sums beside them: against the dense tensor's, and against PyTorch where it has them."""

import math

import pytest
import torch
from oracle import to_weft
from sparse_layouts import LAYOUTS, dense, in_layout, parts

import weft

CALLS = {
    "sum": lambda t, x: x.sum(),
    "sum in float32": lambda t, x: t.sum(x, dtype=t.float32),
    "sum over 0": lambda t, x: x.sum(0),
    "sum over 1": lambda t, x: x.sum(-1, keepdim=True),
    "sum over all": lambda t, x: x.sum((0, 1)),
    "sum over all, kept": lambda t, x: x.sum((0, 1), True),
    "mean": lambda t, x: x.mean(),
    "mean over 0": lambda t, x: x.mean(0),
    "norm": lambda t, x: x.norm(),
    "norm 1": lambda t, x: t.norm(x, 1),
    "norm inf": lambda t, x: x.norm(math.inf),
    "norm 0": lambda t, x: t.norm(x, 0),
    "norm over 1": lambda t, x: t.norm(x, 2, 1),
    "norm inf over 0": lambda t, x: t.linalg.vector_norm(x, math.inf, dim=0),
    "least norm": lambda t, x: t.linalg.norm(x, -math.inf, dim=0),
    "norm of a matrix": lambda t, x: t.linalg.norm(x, 1),
    "prod": lambda t, x: x.prod(),
    "prod over 0": lambda t, x: x.prod(0),
    "max": lambda t, x: x.max(),
    "min": lambda t, x: t.min(x),
    "max over 0": lambda t, x: x.max(0),
    "amax": lambda t, x: x.amax(),
    "amax over 0": lambda t, x: x.amax(0),
    "amin over 1": lambda t, x: x.amin(1, keepdim=True),
    "any": lambda t, x: x.any(),
    "any over 1": lambda t, x: x.any(1),
    "all": lambda t, x: x.all(),
    "all over 0": lambda t, x: x.all(0),
    "count_nonzero": lambda t, x: x.count_nonzero(),
    "count_nonzero over 1": lambda t, x: t.count_nonzero(x, dim=1),
    "argmax": lambda t, x: x.argmax(),
    "argmin over 1": lambda t, x: x.argmin(1),
    "var": lambda t, x: x.var(),
    "std over 0": lambda t, x: x.std(0),
    "median": lambda t, x: x.median(),
}
INTEGERS = ("any", "all", "count", "arg")


def several(found):
    return list(found) if isinstance(found, tuple) else [found]


def assert_close(found, expected):
    got = torch.tensor(found.detach().to_dense().tolist(), dtype=torch.float64)
    tolerance = 1e-5 if expected.dtype is torch.float32 else 1e-9
    torch.testing.assert_close(got, expected.detach().to_dense().double(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("call", CALLS)
def test_zeros_take_part(call, layout):
    elements = dense()
    elements[2] = 0
    elements[:, 1] = elements[:, 1].abs() + 1  # a dim without zeros
    x = in_layout(to_weft(elements), layout)
    for found, expected in zip(
        several(CALLS[call](weft, x)), several(CALLS[call](torch, elements)), strict=True
    ):
        assert found.shape == expected.shape and str(found.dtype) == str(expected.dtype)
        assert_close(found, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "call", [call for call in CALLS if not call.startswith(INTEGERS) and call != "norm 0"]
)
def test_gradients(call, layout):
    elements = to_weft(dense())
    x, whole = in_layout(elements, layout).requires_grad_(), elements.clone().requires_grad_()
    for each in (x, whole):
        found = several(CALLS[call](weft, each))[0]
        (found.to_dense() * 2 + 1).pow(2).sum().backward()
    there = elements != 0
    expected = (whole.grad * there).nan_to_num()
    assert weft.allclose((x.grad.to_dense() * there).nan_to_num(), expected)


KNOWN = (
    "sum", "sum in float32", "sum over 0", "sum over 1", "sum over all", "sum over all, kept", "norm",
    "norm 1", "any",
)  # fmt: skip


@pytest.mark.parametrize("call", KNOWN)
def test_entries_of_results_are_in_the_order_of_pytorch(call):
    indices, values = [[0, 1, 0, 3, 1], [1, 2, 1, 0, 0]], [2.0, -3.0, 4.0, 5.0, 1.0]
    found, known = (CALLS[call](t, t.sparse_coo_tensor(indices, values, (4, 4))) for t in (weft, torch))
    assert parts(found) == parts(known)


def test_sums_of_compressed_matrices_keep_the_layout():
    for dims in (0, 1, (0, 1)):
        found, known = (
            in_layout(each, "sparse_csr").sum(dims, keepdim=True) for each in (to_weft(dense()), dense())
        )
        assert parts(found)[:2] == parts(known)[:2]
        assert_close(found, known)


HYBRID = [
    lambda t, x: t.sparse.sum(x, 2),
    lambda t, x: t.sparse.sum(x, (0, 2)),
    lambda t, x: t.sparse.sum(x, (0, 1)),
    lambda t, x: t.sparse.sum(x),
    lambda t, x: t.sparse.sum(x, dim=0, dtype=t.float64),
    lambda t, x: x.sum(2, keepdim=True),
    lambda t, x: t.sparse.softmax(x, 0),
    lambda t, x: t.sparse.softmax(x, 1),
    lambda t, x: t.sparse.softmax(x, 2),
    lambda t, x: t.sparse.log_softmax(x, dim=-2),
    lambda t, x: t.sparse.softmax(x, 0, dtype=t.float64),
]


@pytest.mark.parametrize("call", HYBRID)
def test_dense_dims(call):
    indices, values = [[0, 1, 1, 0], [2, 0, 2, 2]], [[3.0, 4], [5, 6], [7, 8], [1, -2]]
    found, known = (call(t, t.sparse_coo_tensor(indices, values, (2, 3, 2))) for t in (weft, torch))
    assert parts(found)[:-1] == parts(known)[:-1]
    assert_close(found, known)


def test_amax_over_dense_and_sparse_dims():
    x = weft.sparse_coo_tensor(
        [[0, 1, 1, 0], [2, 0, 2, 2]], [[3.0, -4], [-5, -6], [7, 8], [1, -2]], (2, 3, 2)
    )
    for dims in (0, 2, (0, 2), (1, 2), (0, 1), (0, 1, 2)):
        assert x.amax(dims).to_dense().tolist() == x.to_dense().amax(dims).tolist()
        assert x.amin(dims).to_dense().tolist() == x.to_dense().amin(dims).tolist()


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "uint8"])
def test_dtypes_of_sums(dtype):
    found, known = (
        t.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], t.tensor([1, 0, 1], dtype=getattr(t, dtype)), (2, 3))
        for t in (weft, torch)
    )
    for call in (
        lambda t, x: x.sum(),
        lambda t, x: x.sum(0),
        lambda t, x: t.sparse.sum(x, 0),
        lambda t, x: t.sparse.sum(x),
    ):
        assert parts(call(weft, found)) == parts(call(torch, known))
    with pytest.raises(RuntimeError, match="could not infer output dtype"):
        found.mean()


@pytest.mark.parametrize(
    "values", [[-math.inf, -math.inf], [math.nan, 1.0], [math.inf, 1.0], [-math.inf, 1.0]]
)
def test_softmax_of_numbers_that_are_not_finite(values):
    found, known = (
        t.sparse.softmax(t.sparse_coo_tensor([[0, 0], [0, 1]], values, (2, 2)), 1) for t in (weft, torch)
    )
    torch.testing.assert_close(torch.tensor(found.values().tolist()), known.values(), equal_nan=True)


def test_nothing_stored():
    x = weft.sparse_coo_tensor(size=(2, 3))
    assert x.sum().item() == 0 and x.amax().item() == 0 and x.amax(0).to_dense().tolist() == [0, 0, 0]
    assert x.sum(0)._nnz() == 0 and weft.sparse.softmax(x, 1)._nnz() == 0 and not x.any() and not x.all()
    assert x.norm().item() == 0 and x.mean().item() == 0 and x.prod().item() == 0


def test_the_gradient_of_the_sum_of_all_elements():
    """It is dense for x.sum(), and has the entries of the tensor for torch.sparse.sum, as in PyTorch."""
    for call, layout in ((lambda t, x: x.sum(), "strided"), (lambda t, x: t.sparse.sum(x), "sparse_coo")):
        for t in (weft, torch):
            x = t.sparse_coo_tensor([[0, 1], [1, 2]], [2.0, -3.0], (2, 3), requires_grad=True)
            call(t, x).backward()
            assert x.grad.layout is getattr(t, layout)
            assert x.grad.to_dense().tolist() == (
                [[1] * 3] * 2 if layout == "strided" else [[0, 1, 0], [0, 0, 1]]
            )
