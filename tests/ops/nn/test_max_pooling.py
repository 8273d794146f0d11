import pytest
import torch
from alike import same
from hypothesis import given, settings
from hypothesis import strategies as st
from images import images, windows
from oracle import assert_same, check, to_weft

import weft

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@pytest.mark.may_raise(least=0.3)
@settings(max_examples=100, deadline=None)
@given(images(), windows, st.integers(1, 2), st.booleans())
def test_maxima(image, options, dilation, return_indices):
    n, x = image
    check(f"{F}max_pool{n}d", x, **options, dilation=dilation, return_indices=return_indices)


def test_windows_with_many_elements():
    check(F + "max_pool2d", torch.randn(1, 2, 9, 9, dtype=torch.float64), 7, 1, 3)


@pytest.mark.parametrize("dilation", [1, 3])
def test_padding_is_never_the_index_of_a_maximum(dilation):
    x = torch.full((1, 1, 4, 4), -torch.inf)
    check(F + "max_pool2d", x, 2 if dilation == 3 else 3, 1, 1, dilation, return_indices=True)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(1, 3),
    st.integers(0, 2),
    st.integers(1, 2),
    st.booleans(),
)
def test_gradients_to_second_order(n, kernel, stride, padding, dilation, ceil_mode):
    """Windows that overlap, leave gaps, are cut off, and are too large for a byte each."""
    torch.manual_seed(n + 7 * kernel)
    options = {
        "stride": stride,
        "padding": min(padding, kernel // 2),
        "dilation": dilation,
        "ceil_mode": ceil_mode,
    }
    size = dilation * (kernel - 1) + 2
    x, direction = torch.randn(2, 3, *[size] * n), torch.randn(2, 3, *[size] * n)

    def gradients(module, x, direction):
        x.requires_grad_()
        y = getattr(module.nn.functional, f"max_pool{n}d")(x, kernel, **options)
        (first,) = module.autograd.grad((y * y * y).sum(), x, create_graph=True)
        (second,) = module.autograd.grad((first * direction).sum(), x)
        return first, second

    found = gradients(weft, to_weft(x), to_weft(direction))
    for mine, wanted in zip(found, gradients(torch, x, direction), strict=True):
        assert_same(mine.detach().contiguous(), wanted.detach())


@pytest.mark.refuses("all")
@pytest.mark.parametrize("n, shape", [(2, (3,)), (2, (3, 3)), (3, (1, 1, 3)), (2, (1, 1, 1, 3, 3))])
def test_a_wrong_number_of_dims(n, shape):
    same(lambda lib: getattr(lib.nn.functional, f"max_pool{n}d")(lib.zeros(shape), 2))


@pytest.mark.parametrize(
    "arguments", [(1.0,), (True,), (1, 1.0), ((1.0, 1),), (1, (1, True)), (1, 1, 0.0), (1, 1, 0, 1.0)]
)
def test_no_other_numbers_find_the_plans_of_ints(arguments):
    image = weft.zeros(1, 2, 2)
    ints = [tuple(map(int, each)) if isinstance(each, tuple) else int(each) for each in arguments]
    assert weft.nn.functional.max_pool2d(image, *ints).shape == (1, 2, 2)
    with pytest.raises(TypeError):
        weft.nn.functional.max_pool2d(image, *arguments)


def test_three_dims_without_a_batch_in_channels_last_order():
    for lib in (torch, weft):
        whole = lib.arange(6.0 * 125).view(1, 6, 5, 5, 5)
        x = whole.to(memory_format=lib.channels_last_3d).squeeze(0).requires_grad_()
        values, indices = lib.nn.functional.max_pool3d(x, 2, return_indices=True)
        plain, places = lib.nn.functional.max_pool3d(whole[0], 2, return_indices=True)
        assert values.stride() == indices.stride() == (1, 24, 12, 6)
        assert lib.nn.functional.max_pool3d(x.detach(), 2).stride() == (1, 24, 12, 6)
        assert values.tolist() == plain.tolist() and indices.tolist() == places.tolist()
        values.sum().backward()
        assert x.grad.sum() == values.numel()
