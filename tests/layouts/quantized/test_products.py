"""Quantized products: exact sums, and results clamped to their range, by the kernel and by elementwise steps."""

import numpy as np
import pytest

import weft
from weft.layouts.quantized import products


@pytest.fixture(params=["kernel", "steps"], autouse=True)
def way(request, monkeypatch):
    if request.param == "steps":
        monkeypatch.setattr(products, "_in_lines", lambda integers, groups: None)


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_sums(dtype, groups):
    random = np.random.default_rng(0)
    ends = np.iinfo(dtype)
    for rows, terms, columns in ((1, 1, 1), (9, 37, 18), (2, 3, 70), (0, 4, 4), (3, 0, 2), (5, 16, 0)):
        a = random.integers(ends.min, ends.max + 1, (rows, groups * terms)).astype(dtype)
        w = random.integers(-128, 128, (groups * columns, terms)).astype(np.int8)
        for points in (None, random.integers(-128, 128, groups * columns)):
            packed = products.pack(
                weft.from_numpy(w), None if points is None else weft.from_numpy(points), groups
            )
            found = products.sums(weft.from_numpy(a), -7, packed)
            left = (a.reshape(rows, groups, terms).astype(int) + 7).swapaxes(0, 1)
            right = w.astype(int) - (0 if points is None else points[:, None])
            wanted = left @ right.reshape(groups, columns, terms).swapaxes(1, 2)
            np.testing.assert_array_equal(
                found.numpy(), wanted.swapaxes(0, 1).reshape(rows, groups * columns)
            )


def test_strides_batches_and_wrong_sizes():
    random = np.random.default_rng(0)
    a = weft.from_numpy(random.integers(0, 256, (2, 3, 6, 8)).astype(np.uint8))
    w = weft.from_numpy(random.integers(-128, 128, (10, 6)).astype(np.int8))
    wanted = a.permute(3, 0, 1, 2).long() @ w.t().long()
    assert products.sums(a.permute(3, 0, 1, 2), 0, products.pack(w)).equal(wanted.int())
    assert products.sums(a[0, 0].t(), 0, products.pack(w[:, ::1])).equal(
        (a[0, 0].t().long() @ w.t().long()).int()
    )
    assert products.sums(a[0, 0, :, 0], 0, products.pack(w.t()[:, :6].t())).dim() == 1
    negated = weft._neg_view(a.permute(3, 0, 1, 2).to(weft.int8))
    wanted = negated.long() @ -w.t().long()
    assert products.sums(negated, 0, products.pack(weft._neg_view(w))).equal(wanted.int())
    with pytest.raises(RuntimeError, match="terms"):
        products.sums(a, 0, products.pack(w))


def test_results_that_are_out_of_range_are_clamped():
    packed = products.pack(weft.full((3, 4000), 127, dtype=weft.int8))
    a = weft.tensor([[0], [1], [2]], dtype=weft.uint8).expand(3, 4000)
    scales = weft.tensor([1e30, 1.0, 1e-30])
    for dtype, low, high in ((weft.uint8, 0, 255), (weft.int8, -128, 127)):
        found = products.requantized(a, 1, packed, scales, weft.zeros(3), (dtype, 5))
        assert found.tolist() == [[low, low, 5], [5, 5, 5], [high, high, 5]]
        found = products.requantized(a, 1, packed, scales, weft.zeros(3), (dtype, 5), relu=True)
        assert found.tolist() == [[5, 5, 5], [5, 5, 5], [high, high, 5]]
