"""Products of float16 and bfloat16 on a device are those of float64 on the CPU, rounded once; those of int8 are exact, and those of float8 the CPU's.

The device is the reference device, or the one that TESTED_DEVICE names. On GPUs without cuBLAS `narrow_products.py` multiplies.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from on_device import HERE

import weft

TOLERANCE = {weft.bfloat16: 2**-8, weft.float16: 2**-11}  # half of the distance to the next number


def numbers(*shape, dtype=weft.float16, seed=0):
    return weft.randn(shape, generator=weft.Generator().manual_seed(seed)).to(dtype)


def check(a, b, arrange_a=lambda x: x, arrange_b=lambda x: x):
    expected = arrange_a(a).double() @ arrange_b(b).double()
    found = (arrange_a(a.to(HERE)) @ arrange_b(b.to(HERE))).cpu()
    assert found.dtype is a.dtype and found.shape == expected.shape
    # Sums in float32 are off by their order, which counts where products cancel.
    bound = TOLERANCE[a.dtype] * expected.abs() + 1e-5 * max(a.shape[-1], b.shape[-1])
    assert ((found.double() - expected).abs() <= bound).all()


@pytest.mark.parametrize("dtype", [weft.float16, weft.bfloat16])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (70, 50, 90), (64, 32, 64), (129, 33, 65), (3, 200, 2), (300, 40, 270)]
)
def test_sizes(shape, dtype):
    rows, terms, columns = shape
    check(numbers(rows, terms, dtype=dtype), numbers(terms, columns, dtype=dtype, seed=1))


@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("turn_b", [False, True])
def test_orders_in_memory(turn_a, turn_b):
    a, b = numbers(70, 50), numbers(50, 90, seed=1)
    arrange = [(lambda x: x.T.contiguous().T) if turn else (lambda x: x) for turn in (turn_a, turn_b)]
    check(a, b, *arrange)
    large = numbers(300, 40), numbers(40, 270, seed=1)  # squares of a group are larger
    check(*large, *arrange)
    check(a, b, lambda x: arrange[0](x)[1:, 3:-1], lambda x: arrange[1](x)[4:, 5:])  # not aligned


def test_operands_that_are_copied():
    check(numbers(70, 50), numbers(25, 9), lambda x: x[:, ::2])
    check(numbers(7, 5), numbers(5, 1), lambda x: x, lambda x: x.expand(5, 6))


@pytest.mark.parametrize(
    "shapes",
    [((50,), (50, 9)), ((7, 50), (50,)), ((50,), (50,)), ((3, 1, 20, 33), (2, 33, 41)), ((7, 0), (0, 5))],
)
def test_vectors_and_batches(shapes):
    check(numbers(*shapes[0]), numbers(*shapes[1], seed=1))


def test_special_values():
    a, b = numbers(20, 40), numbers(40, 20)
    a[3, 4], a[5, 6], b[7, 8] = float("inf"), float("nan"), -float("inf")
    found, expected = (a.to(HERE) @ b.to(HERE)).cpu(), (a.double() @ b.double()).half()
    assert found.isnan().equal(expected.isnan()) and found.isinf().equal(expected.isinf())


def test_a_bias_is_added_before_the_result_is_rounded():
    x, weight, bias = numbers(30, 40), numbers(20, 40, seed=1), numbers(20, seed=2) * 1000
    found = weft.nn.functional.linear(*(each.to(HERE) for each in (x, weight, bias))).cpu().double()
    expected = weft.nn.functional.linear(*(each.double() for each in (x, weight, bias)))
    assert ((found - expected).abs() <= TOLERANCE[weft.float16] * expected.abs() + 1e-3).all()


@settings(max_examples=25)
@given(st.integers(0, 150), st.integers(0, 150), st.integers(0, 150), st.booleans(), st.booleans())
def test_any_size(rows, terms, columns, turn_a, turn_b):
    arrange = [(lambda x: x.T.contiguous().T) if turn else (lambda x: x) for turn in (turn_a, turn_b)]
    check(numbers(rows, terms), numbers(terms, columns, seed=1), *arrange)


def integers(*shape, seed=0):
    return weft.randint(-128, 128, shape, dtype=weft.int8, generator=weft.Generator().manual_seed(seed))


@settings(max_examples=25)
@given(
    st.integers(0, 150),
    st.integers(0, 150),
    st.integers(0, 150),
    st.sampled_from(range(4)),
    st.integers(0, 2),
)
def test_products_of_int8(rows, terms, columns, turned, skipped):
    a = integers(rows, terms + 2)[:, skipped : skipped + terms]  # also at odd addresses
    b = integers(terms, columns, seed=1)
    a, b = (x.T.contiguous().T if turned & bit else x for x, bit in ((a, 1), (b, 2)))
    assert weft._int_mm(a.to(HERE), b.to(HERE)).cpu().equal(weft._int_mm(a, b))


def test_large_sums_of_int8():
    a = weft.full((3, 40_000), -128, dtype=weft.int8, device=HERE)
    assert weft._int_mm(a, a.t()).cpu().eq(128 * 128 * 40_000).all()


@pytest.mark.parametrize("right", [weft.float8_e4m3fn, weft.float8_e5m2])
@pytest.mark.parametrize("left", [weft.float8_e4m3fn, weft.float8_e5m2])
@pytest.mark.parametrize("shape", [(1, 16, 1), (70, 48, 90), (30, 33, 20)])
@pytest.mark.parametrize("by_rows", [False, True])
def test_products_of_float8(left, right, shape, by_rows):
    rows, terms, columns = shape
    a, b = numbers(rows, terms).to(left), numbers(columns, terms, seed=1).to(right).t()
    scales = [weft.tensor(0.5), weft.tensor(3.0)]
    if by_rows:
        scales = [numbers(rows, 1, dtype=weft.float32), numbers(1, columns, dtype=weft.float32)]
    bias = numbers(columns, dtype=weft.bfloat16)
    for dtype, added in ((weft.float32, None), (weft.bfloat16, bias)):
        given = a, b, *scales, added
        expected = weft._scaled_mm(*given, out_dtype=dtype)
        found = weft._scaled_mm(*(None if x is None else x.to(HERE) for x in given), out_dtype=dtype)
        weft.testing.assert_close(found.cpu(), expected, rtol=None, atol=None)


def test_special_values_of_float8():
    a, b = numbers(20, 32).to(weft.float8_e5m2), numbers(32, 20, seed=1).to(weft.float8_e5m2)
    a[3, 4], a[5, 6], b[7, 8] = float("inf"), float("nan"), -float("inf")
    one = weft.tensor(1.0)
    expected = weft._scaled_mm(a, b, one, one, out_dtype=weft.float32)
    found = weft._scaled_mm(*(x.to(HERE) for x in (a, b, one, one)), out_dtype=weft.float32).cpu()
    assert found.isnan().equal(expected.isnan()) and found.isinf().equal(expected.isinf())
