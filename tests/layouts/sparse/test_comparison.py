"""Comparisons, extrema and choices of sparse tensors, compared with what PyTorch has for dense ones."""

import pytest
from sparse_expressions import LAYOUTS, evaluated, like_dense

import weft


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "text",
    [
        "x == y", "x != y", "x < y", "x > y", "x <= y", "x >= y", "x == d", "d != y", "x > 0", "x > -1", "x == 0", "x == 2", "x != 0",
        "x < two", "ints == y", "torch.maximum(x, y)", "torch.minimum(x, d)", "torch.fmax(x, y)", "x.isclose(y)", "x.isclose(x)",
        "torch.equal(x, x)", "torch.equal(x, y)", "torch.equal(x, d)", "torch.equal(x, x[:2])", "torch.allclose(x, x)",
        "torch.allclose(x, y)", "torch.allclose(x, x + 1e-12 * y)", "torch.equal(x + y - y, x)", "x.clamp(min=0)", "x.clamp(-1, 3)",
        "x.clamp(min=1)", "x.clamp(max=two)", "x.clamp_min(0)", "x.clamp_max(2)", "torch.where(x > 0, x, y)", "torch.where(d > 0, x, y)",
        "torch.where(x > 0, d, y)", "torch.where(x > 0, x, two)", "torch.where(flags, ints, ints)", "x.any()", "x.all()", "flags.any()",
        "(x - x).any()", "flags.all()", "x.any(0)", "x.all(1)", "torch.ones(2, 2).to_sparse().all()", "x == torch.zeros(4)",
    ],
)  # fmt: skip
def test_it_is_what_dense_tensors_have(layout, text):
    like_dense(layout, text)


@pytest.mark.parametrize("text", ["u != v", "u == v", "u < v", "torch.maximum(u, v)", "torch.equal(u, v)", "torch.equal(u, u + v - v)", "hybrid > 5", "torch.where(u > 0, u, v)"])  # fmt: skip
def test_coordinates_that_occur_twice(text):
    like_dense("sparse_coo", text)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("text", "is_sparse"),
    [("x != y", True), ("x == y", False), ("x > 0", True), ("x >= 0", False), ("x.clamp(-1, 2)", True), ("x.clamp(min=1)", False),
     ("torch.maximum(x, y)", True), ("torch.where(d > 0, x, y)", True)],
)  # fmt: skip
def test_the_result_is_sparse_if_the_function_keeps_zeros(layout, text, is_sparse):
    wanted = getattr(weft, layout) if is_sparse else weft.strided
    assert evaluated(weft, layout, text).layout is wanted


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients(layout):
    got = evaluated(
        weft,
        layout,
        "torch.maximum(g, h).to_dense().sum().backward(); (g.grad.to_dense(), h.grad.to_dense())",
    )
    g, h = (evaluated(weft, layout, name).to_dense().detach() for name in ("x", "y"))
    for ct, own, other in ((got[0], g, h), (got[1], h, g)):
        assert ct[(own > other) & (own != 0)].eq(1).all()
        assert ct[own < other].eq(0).all()
