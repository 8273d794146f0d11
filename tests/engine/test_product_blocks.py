"""Products in blocks: the numbers of NumPy and the bits of `panels.py`, for operands that lie anyhow."""

import numpy as np
import pytest

import weft
from weft.engine import gemm
from weft.engine.gemm import Places, products
from weft.engine.product_blocks import BLOCK_BYTES, COPIED_ROWS, DEPTH, FAR_BYTES, suits_blocks
from weft.engine.sliding import LINE

DTYPES = [weft.float32, weft.float64]
# More terms than a panel has, more columns than a block of so many terms, and the rest at each edge.
COLUMNS = BLOCK_BYTES // (DEPTH * LINE) * 16 + 21
SIZES = [(2, 3, 5), (17, 1, 16), (40, DEPTH + 3, COLUMNS), (31, 2 * DEPTH, 33), (6, 40, 15), (25, 70, 700)]


def matrix(rows, columns, form, dtype, seed):
    """Row-major, column by column, or column by column with gaps that are longer than most of memory's pages."""
    values = np.random.default_rng(seed).standard_normal((rows, columns)).astype(str(dtype).split(".")[-1])
    if form == "row-major":
        return values
    room = np.zeros((columns, rows + (1500 if form == "apart" else 0)), values.dtype)
    turned = room[:, :rows].T
    turned[:] = values
    return turned


def product(a, b, dtype):
    (rows, terms), columns = a.shape, b.shape[1]
    c = np.full((rows, columns), np.nan, a.dtype)
    strides = [[step // each.itemsize for step in each.strides] for each in (a, b)]
    job = products(dtype, (rows, terms, columns), *strides, Places((), (), (), ()))
    job.entry(c.ctypes.data, a.ctypes.data, b.ctypes.data, job.meta, job.count)
    return c


@pytest.mark.parametrize("right", ["row-major", "by columns"])
@pytest.mark.parametrize("left", ["row-major", "by columns", "apart"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_blocks_have_the_bits_of_panels(sizes, dtype, left, right, monkeypatch):
    rows, terms, columns = sizes
    a, b = matrix(rows, terms, left, dtype, 1), matrix(terms, columns, right, dtype, 2)
    monkeypatch.setattr(gemm, "LEAST_SIZE", 0)
    found = []
    for chosen in (True, False):
        monkeypatch.setattr(gemm, "suits_blocks", lambda *given, chosen=chosen: chosen)
        found.append(product(a, b, dtype))
    assert found[0].tobytes() == found[1].tobytes()
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(
        found[0], exact, rtol=0, atol=terms * (1e-6 if dtype is weft.float32 else 1e-14)
    )


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_bits_of_a_row_do_not_depend_on_the_rows_beside_it(dtype, transposed):
    """Some numbers of rows leave a tile of one row."""
    b = matrix(300, 50, "by columns" if transposed else "row-major", dtype, 2)
    a = matrix(60, 300, "row-major", dtype, 1)
    whole = product(a, b, dtype)
    for rows in range(4, 60):
        assert product(a[:rows], b, dtype).tobytes() == whole[:rows].tobytes()


def test_blocks_are_for_many_rows_and_for_what_is_not_in_the_caches(monkeypatch):
    monkeypatch.setattr("weft.engine.product_blocks.has_masks", lambda: False)
    assert suits_blocks(COPIED_ROWS, 64, True) and not suits_blocks(COPIED_ROWS - 1, 64, False)
    assert suits_blocks(2, FAR_BYTES, False) and not suits_blocks(2, FAR_BYTES, True)
    assert not suits_blocks(1, FAR_BYTES, False)
    monkeypatch.setattr("weft.engine.product_blocks.has_masks", lambda: True)
    assert not suits_blocks(COPIED_ROWS, FAR_BYTES, False)
