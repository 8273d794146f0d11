"""Products with a matrix that was copied into panels before."""

import numpy as np
import pytest

import weft
from weft.engine.packed import packed_products
from weft.engine.steps import Operand, Steps

SIZES = [(1, 1, 1), (1, 300, 100), (3, 5, 7), (16, 128, 512), (57, 40, 49), (9, 513, 48)]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [weft.float32, weft.float64], ids=str)
@pytest.mark.parametrize(("rows", "terms", "columns"), SIZES)
def test_products(rows, terms, columns, dtype, transposed):
    weft.manual_seed(0)
    b = weft.randn((columns, terms) if transposed else (terms, columns), dtype=dtype)
    strides = (1, terms) if transposed else (columns, 1)
    packed = packed_products(dtype, terms, columns, strides, (rows, 1))
    copy = weft.empty(packed.nbytes, dtype=weft.uint8)
    assert packed.copy is not None
    packed.copy.entry(copy.data_ptr(), b.data_ptr(), packed.copy.meta, packed.copy.count)
    for height in (rows, 1):
        a, result = (
            weft.randn(height, terms, dtype=dtype),
            weft.full((height, columns), weft.nan, dtype=dtype),
        )
        launch = packed.products[height]
        launch.entry(result.data_ptr(), a.data_ptr(), copy.data_ptr(), launch.meta, launch.count)
        expected = a.numpy().astype(np.float64) @ (b.T if transposed else b).numpy().astype(np.float64)
        tolerance = (1e-5 if dtype is weft.float32 else 1e-13) * terms
        np.testing.assert_allclose(result.numpy(), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("run", ["as one", "one by one"])
def test_steps_follow_each_other_on_their_sequences(run):
    """Each step multiplies the state by a matrix; fewer sequences reach later steps."""
    n, size, sizes = 20, 6, (20, 20, 13, 1)
    weft.manual_seed(0)
    b, state = weft.randn(size, size, dtype=weft.float64), weft.randn(n, size, dtype=weft.float64)
    expected = [state.numpy()]
    for count in sizes:
        expected.append(expected[-1][:count] @ b.numpy())
    packed = packed_products(weft.float64, size, size, (size, 1), set(sizes))
    copy = weft.empty(packed.nbytes, dtype=weft.uint8)
    packed.copy.entry(copy.data_ptr(), b.data_ptr(), packed.copy.meta, packed.copy.count)
    states = weft.full((len(sizes) + 1, n, size), weft.nan, dtype=weft.float64)
    states[0] = state
    row = n * size * 8
    operands = [Operand(0, size * 8, row), Operand(0, size * 8), Operand(1)]
    # The rows of a step begin where those of all n sequences of the step before end.
    steps = Steps(sizes, range(0, n * len(sizes), n), [(packed.products, operands)])
    # So much work is always shared.
    launch = steps.as_one(2, packed.grain, 1 << 30) if run == "as one" else steps.one_by_one()
    launch.entry(states.data_ptr(), copy.data_ptr(), launch.meta, launch.count)
    for k, (count, each) in enumerate(zip((n, *sizes), expected)):
        np.testing.assert_allclose(states[k, :count].numpy(), each, rtol=1e-12, atol=1e-12)
        assert states[k, count:].isnan().all()
