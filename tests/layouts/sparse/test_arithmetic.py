"""Arithmetic of sparse tensors, compared with PyTorch's."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_expressions import LAYOUTS, compare, compare_gradients, evaluated, like_dense, same_tensors

import weft

COMPRESSED = LAYOUTS[1:]


@pytest.mark.parametrize(
    "text",
    [
        "x + y", "x - y", "x * y", "x.add(y, alpha=3)", "x.sub(y, alpha=2)", "u + v", "v + u", "u - v", "u * v", "v * u", "u * x",
        "x * u", "u + x", "x + u.coalesce()", "u + z", "ints + flags", "flags - flags", "ints.add(ints, alpha=0.5)",
        "u + torch.zeros(4, 4, layout=torch.sparse_coo)", "u * torch.zeros(4, 4, layout=torch.sparse_coo)", "hybrid + hybrid",
        "hybrid * hybrid", "hybrid + hybrid.coalesce()", "u + hybrid", "u * hybrid", "ints + u", "ints * u",
        "ints.add(ints, alpha=True)", "x.add(y, alpha=True)", "x.sub(y, alpha=True)", "x.add(y, alpha=1j)",
    ],
)  # fmt: skip
def test_coordinates_with_coordinates(text):
    compare("sparse_coo", text)


@pytest.mark.parametrize("text", ["x + y", "x.add(y, alpha=3)", "x + x", "x * y", "x * x", "ints + ints"])
def test_rows_with_rows(text):
    compare("sparse_csr", text)


@pytest.mark.parametrize("layout", COMPRESSED)
@pytest.mark.parametrize(
    "text",
    [
        "x + y", "x - y", "x * y", "x.add(y, alpha=3)", "x.sub(y, alpha=2)", "x + x", "x * x", "x + ints", "ints * x", "x * z", "z + x",
        "x + y.to_sparse()", "x * y.to_sparse_csr()", "x + y.to_sparse_csc()", "x - y.to_sparse_bsr((2, 2))", "x * y.to_sparse_bsc((4, 1))",
        "x * d", "e * x", "x * row", "x * row.unsqueeze(1)", "x * row[:1]", "x + d", "d + x", "x - d", "d - x", "torch.add(d, x, alpha=2)",
        "x.add(d, alpha=2)", "torch.rsub(x, y)", "x.clone().add_(y)", "x.clone().mul_(d)", "x.clone().sub_(x)", "d.clone().add_(x)",
        "d.clone().mul_(x)", "x / 2", "ints / 2", "x / two", "x // 2", "x.div(2, rounding_mode='trunc')", "x ** 2", "x.pow(3)",
        "x % 3", "torch.fmod(x, 3)", "x.clone().div_(2)", "x.clone().pow_(2)", "torch.true_divide(x, 2)",
    ],
)  # fmt: skip
def test_compressed_tensors_compute_what_dense_ones_do(layout, text):
    like_dense(layout, text)


@pytest.mark.parametrize(
    "text",
    [
        "x * d", "d * x", "x * row", "row * u", "u.coalesce() * row", "u * row.unsqueeze(1)", "u * row.long()", "u * d.unsqueeze(0)",
        "u * torch.stack([d, e])", "hybrid * torch.arange(12.).reshape(2, 3, 2)", "hybrid * torch.ones(2, 3, 1)",
        "hybrid * torch.arange(2.)", "hybrid * torch.arange(3.).unsqueeze(-1)", "hybrid * torch.ones(4, 2, 3, 2)",
        "d.to_sparse(1) * e", "d + x", "torch.add(d, x, alpha=2)", "d - x", "x * torch.ones(3)",
    ],
)  # fmt: skip
def test_coordinates_with_dense_tensors(text):
    compare("sparse_coo", text)


def test_coordinates_repeat_along_dims_of_size_one():
    """PyTorch only changes the shape."""
    hybrid = weft.sparse_coo_tensor([[0, 0]], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], (1, 3))
    line = weft.sparse_coo_tensor([[0], [2]], [7.0], (1, 3))
    d = weft.arange(6.0).reshape(2, 3)
    assert (hybrid * d).to_dense().tolist() == (hybrid.to_dense() * d).tolist()
    assert (line * d).to_dense().tolist() == (line.to_dense() * d).tolist()


@pytest.mark.parametrize("text", ["flags * flags", "x + d", "x - d"])
def test_a_dense_tensor_after_coordinates(text):
    like_dense("sparse_coo", text)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
@pytest.mark.parametrize(
    "text",
    ["x * 2", "2 * x", "x * two", "two * x", "ints * 2.5", "ints * True", "ints * two", "x * 2j", "flags * 2", "-x", "x * torch.tensor(2)"],
)  # fmt: skip
def test_products_with_numbers(layout, text):
    compare(layout, text)


@pytest.mark.parametrize(
    "text",
    [
        "u / 2", "ints / 2", "u / two", "u // 2", "u // two", "ints // 2", "u.div(2, rounding_mode='floor')",
        "ints.div(2., rounding_mode='trunc')", "u ** 2", "ints ** 2", "u ** -1", "u ** 2.5", "u.true_divide(4)", "u.pow(2)", "u / 2j",
    ],
)  # fmt: skip
def test_quotients_and_powers_by_numbers(text):
    compare("sparse_coo", text)


@pytest.mark.parametrize(
    "text",
    [
        "x / y", "x / d", "d / x", "x // y", "2 // x", "x ** 0", "x + 1", "1 + x", "1 - x", "x + two", "row + x", "x + torch.zeros(4, layout=torch.sparse_coo)",
        "x / torch.tensor(5.).to_sparse()", "x.add_(z)", "ints.mul_(2.5)", "ints.div_(2)", "ints.add_(x)", "torch.add(x, y, out=d)",
        "g.mul_(2)", "torch.add(g, y, out=x)", "g.add_(y)",
    ],
)  # fmt: skip
def test_exceptions(text):
    compare("sparse_coo", text)


@pytest.mark.parametrize(
    "text", ["u.mul_(2); u", "u.add_(v); u", "u.mul_(row.float()); u", "u.div_(2); u", "u.floor_divide_(2); u", "u.sub_(v); u", "u.mul_(ints); u"]
)  # fmt: skip
def test_in_place(text):
    compare("sparse_coo", text)


@pytest.mark.parametrize("text", ["torch.mul(u, 2, out=y)", "torch.mul(u, d, out=y)", "torch.add(u, v, out=y)", "torch.pow(u, 2, out=y)", "torch.add(d, x, out=e)"])  # fmt: skip
def test_out(text):
    compare("sparse_coo", text)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
@pytest.mark.parametrize(
    "text",
    ["g * 2", "g * two", "g * d", "d * g", "g + h", "g.add(h, alpha=3)", "g * h", "g * g", "g + g", "g - h"],
)
def test_gradients(layout, text):
    if layout == "sparse_csr" and text == "g - h":  # PyTorch lacks it
        text = "g.add(h, alpha=-1)"
    leaves = ["g", "h"] if "h" in text else ["g"]
    compare_gradients(layout, f"({text}).to_dense().pow(2).sum()", *leaves)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gradient_of_a_dense_summand_is_dense(layout):
    like_dense(layout, "torch.add(d, x)")
    got = evaluated(
        weft, layout, "w = e.clone().requires_grad_(); (w + g).pow(2).sum().backward(); (w.grad, g.grad)"
    )
    expected = evaluated(torch, "sparse_csr", "(2 * (e + d), 2 * (e + d))")
    for a, b in zip(got, expected):
        assert a.layout is weft.strided and a.tolist() == b.tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("text", "dense"), [("two", "d"), ("row", "d"), ("e", "d")])
def test_the_gradient_of_a_dense_factor(layout, text, dense):
    got = evaluated(
        weft,
        layout,
        f"w = {text}.clone().requires_grad_(); (g * w).to_dense().pow(2).sum().backward(); w.grad.to_dense()",
    )
    expected = evaluated(
        torch, layout, f"w = {text}.clone().requires_grad_(); (d * w).pow(2).sum().backward(); w.grad"
    )
    assert got.tolist() == expected.tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gradients_of_a_quotient(layout):
    got = evaluated(
        weft,
        layout,
        "w = two.clone().requires_grad_(); (g / w).to_dense().pow(2).sum().backward(); (w.grad.item(), g.grad.to_dense())",
    )
    expected = evaluated(
        torch,
        layout,
        "w = two.clone().requires_grad_(); q = d.requires_grad_(); (q / w).pow(2).sum().backward(); (w.grad.item(), q.grad)",
    )
    assert got[0] == pytest.approx(expected[0])
    assert got[1].tolist() == expected[1].tolist()


# ---- Any indices -------------------------------------------------------------------------------------------------------

PAIRS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=8)


def coordinates(library, pairs, coalesced):
    indices = library.tensor(pairs, dtype=library.int64).reshape(-1, 2).t()
    values = library.arange(1, len(pairs) + 1, dtype=library.float64)
    found = library.sparse_coo_tensor(indices, values, (3, 4))
    return found.coalesce() if coalesced else found


@settings(max_examples=60, deadline=None)
@given(
    PAIRS,
    PAIRS,
    st.booleans(),
    st.booleans(),
    st.sampled_from(["a + b", "a * b", "a - b", "a.add(b, alpha=2)"]),
)
def test_any_coordinates(left, right, is_left_coalesced, is_right_coalesced, text):
    results = [
        eval(
            text,
            {
                "a": coordinates(library, left, is_left_coalesced),
                "b": coordinates(library, right, is_right_coalesced),
            },
        )
        for library in (weft, torch)
    ]
    same_tensors(*results)


@settings(max_examples=40, deadline=None)
@given(PAIRS, PAIRS, st.sampled_from(LAYOUTS[1:]), st.sampled_from(["a + b", "a * b", "a - b"]))
def test_any_compressed_entries(left, right, layout, text):
    blocks = {"blocksize": (3, 2)} if layout in ("sparse_bsr", "sparse_bsc") else {}
    a, b = (
        coordinates(weft, pairs, True).to_sparse(layout=getattr(weft, layout), **blocks)
        for pairs in (left, right)
    )
    c, d = (coordinates(torch, pairs, True).to_dense() for pairs in (left, right))
    got = eval(text, {"a": a, "b": b})
    assert got.layout is a.layout
    assert got.to_dense().tolist() == eval(text, {"a": c, "b": d}).tolist()


@pytest.mark.parametrize("library", [torch, weft])
def test_hybrid_products_broadcast_dense_dims(library):
    left = library.arange(12.0).reshape(2, 2, 3).to_sparse(2)
    right = (library.arange(4.0).reshape(2, 2, 1) + 1).to_sparse(2)
    product = left * right
    assert product.is_coalesced()
    assert product.to_dense().tolist() == (left.to_dense() * right.to_dense()).tolist()


@pytest.mark.parametrize("library", [torch, weft])
def test_sums_with_a_tensor_without_entries(library):
    """Its number of dense dims does not count."""
    empty = library.sparse_coo_tensor(size=(2, 3))
    hybrid = library.ones(2, 3).to_sparse(1)
    for total in (empty + hybrid, hybrid + empty):
        assert total.to_dense().tolist() == [[1.0] * 3] * 2
        assert total.sparse_dim() == 1
