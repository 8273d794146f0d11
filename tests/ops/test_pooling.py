import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import assert_same, check, to_weft

import weft

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@st.composite
def images(draw, least=1, dtypes=(torch.float32, torch.float64)):
    n = draw(st.integers(1, 3))
    batch = draw(st.sampled_from([(), (1,), (2,)]))
    torch.manual_seed(draw(st.integers(0, 99)))
    sizes = [draw(st.integers(least, 6)) for _ in range(n)]
    x = torch.randn(*batch, 2, *sizes).to(draw(st.sampled_from(dtypes)))
    if n == 2 and batch and draw(st.booleans()):
        x = x.to(memory_format=torch.channels_last)
    return n, x


geometry = {
    "kernel_size": st.integers(1, 4),
    "stride": st.none() | st.integers(1, 3),
    "padding": st.integers(0, 2),
}
geometry = st.fixed_dictionaries({**geometry, "ceil_mode": st.booleans()})


@settings(max_examples=100, deadline=None)
@given(images(), geometry, st.booleans())
def test_averages(image, options, count_include_pad):
    n, x = image
    check(f"{F}avg_pool{n}d", x, **options, count_include_pad=count_include_pad)


@settings(max_examples=100, deadline=None)
@given(images(), geometry, st.integers(1, 2), st.booleans())
def test_maxima(image, options, dilation, return_indices):
    n, x = image
    check(f"{F}max_pool{n}d", x, **options, dilation=dilation, return_indices=return_indices)


@settings(max_examples=60, deadline=None)
@given(images(), st.integers(1, 4))
def test_adaptive_windows(image, size):
    n, x = image
    check(f"{F}adaptive_avg_pool{n}d", x, size)
    check(f"{F}adaptive_max_pool{n}d", x, size, return_indices=True)


@settings(max_examples=30, deadline=None)
@given(images(least=2), st.sampled_from([1, 2, 3.0]), st.booleans())
def test_norms(image, power, ceil_mode):
    n, x = image
    check(f"{F}lp_pool{n}d", x.double().abs(), power, 2, ceil_mode=ceil_mode)


def test_windows_with_many_elements_and_wide_divisors():
    x = torch.randn(1, 2, 9, 9, dtype=torch.float64)
    check(F + "avg_pool2d", x, 7, 1, 3, divisor_override=5)
    check(F + "max_pool2d", x, 7, 1, 3)
    check(F + "avg_pool2d", (x * 100).long(), 3)
    check(F + "avg_pool2d", x, 2, divisor_override=0)


@pytest.mark.parametrize("dilation", [1, 3])
def test_padding_is_never_the_index_of_a_maximum(dilation):
    x = torch.full((1, 1, 4, 4), -torch.inf)
    check(F + "max_pool2d", x, 2 if dilation == 3 else 3, 1, 1, dilation, return_indices=True)


@pytest.mark.parametrize("n", [2, 3])
def test_fractional_windows_draw_the_same_numbers(n):
    x = torch.randn(2, 3, *[7] * n)
    torch.manual_seed(3)
    expected = getattr(torch.nn.functional, f"fractional_max_pool{n}d")(
        x, 2, output_ratio=[0.5] * n, return_indices=True
    )
    weft.manual_seed(3)
    got = getattr(weft.nn.functional, f"fractional_max_pool{n}d")(
        to_weft(x), 2, output_ratio=[0.5] * n, return_indices=True
    )
    assert_same(got, expected)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling_undoes_pooling(n):
    x = torch.randn(2, 2, *[5] * n)
    values, indices = getattr(torch.nn.functional, f"max_pool{n}d")(x, 2, return_indices=True)
    for size in (None, x.shape, [9] * n):
        check(f"{F}max_unpool{n}d", values, indices, 2, output_size=size)
    check(f"{F}max_unpool{n}d", values, indices + 1000, 2)
    check(f"{F}max_unpool{n}d", values, indices.int(), 2)
