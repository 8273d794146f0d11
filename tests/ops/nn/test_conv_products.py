"""The three products of a convolution by the kernels of `engine/sliding.py`, against PyTorch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.devices.cpu import sliding
from weft.ops.nn import conv_graphs
from weft.ops.nn.conv_products import Geometry, convolve, correlate, spread


@pytest.fixture(params=[1, 3], autouse=True)
def threads(request):
    before = weft.get_num_threads()
    weft.set_num_threads(request.param)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SHARED_WORK", "ALWAYS_SHARED_WORK"):
            patch.setattr(sliding, name, 1)
        patch.setattr(conv_graphs, "MOST_WORK", 0)  # else small convolutions would not use these kernels
        yield request.param
    weft.set_num_threads(before)


@st.composite
def geometries(draw):
    n = draw(st.integers(1, 3))

    def each(low, high):
        return tuple(draw(st.integers(low, high)) for _ in range(n))

    kernel, stride, dilation, padding = each(1, 4), each(1, 3), each(1, 2), each(0, 3)
    reach = [gap * (k - 1) + 1 for k, gap in zip(kernel, dilation, strict=True)]
    sizes = tuple(
        max(1, need - 2 * pad) + draw(st.integers(0, 9)) for need, pad in zip(reach, padding, strict=True)
    )
    counts = tuple(
        (size + 2 * pad - need) // step + 1
        for size, pad, need, step in zip(sizes, padding, reach, stride, strict=True)
    )
    groups = draw(st.integers(1, 3))
    border = tuple((pad, pad) for pad in padding)
    return Geometry(sizes, kernel, stride, dilation, border, groups, counts)


def expected(how, x, w, ct):
    x, w = (torch.tensor(each, requires_grad=True) for each in (x, w))
    function = getattr(torch.nn.functional, f"conv{len(how.sizes)}d")
    padding = [before for before, _ in how.border]
    y = function(x, w, None, how.stride, padding, how.dilation, how.groups)
    y.backward(torch.tensor(ct))
    return y.detach().numpy(), x.grad.numpy(), w.grad.numpy()


def found(how, x, w, ct):
    x, w, ct = (weft.tensor(each) for each in (x, w, ct))
    return [each.numpy() for each in (convolve(x, w, how), spread(ct, w, how), correlate(x, ct, how))]


def operands(how, images, channels, made, dtype, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (
        (images, channels * how.groups, *how.sizes),
        (made * how.groups, channels, *how.kernel),
        (images, made * how.groups, *how.positions),
    )
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


@settings(max_examples=25, deadline=None)
@given(
    geometries(),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from([1, 8, 11]),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([20, 300, 1 << 17]),
)
def test_values(how, images, channels, made, dtype, most):
    """Small strips, too: `most` elements of the lines at once."""
    given = operands(how, images, channels, made, dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sliding, "MOST_LINES", most)
        for plans in (sliding._sums_plans, sliding._products_plans):
            plans.clear()
        results = found(how, *given)
        for plans in (sliding._sums_plans, sliding._products_plans):
            plans.clear()
    limit = 1e-5 if dtype is np.float32 else 1e-13
    for mine, theirs in zip(results, expected(how, *given), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=limit, atol=limit * max(1, np.abs(theirs).max()))


def test_bits_do_not_depend_on_threads(threads):
    how = Geometry((19, 23), (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), 1, (19, 23))
    given = operands(how, 5, 7, 13, np.float32)
    many = found(how, *given)
    weft.set_num_threads(1)
    for mine, alone in zip(many, found(how, *given), strict=True):
        assert mine.tobytes() == alone.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [15, 16, 17, 31, 32, 33, 34, 35, 66, 67, 130])
def test_rows_of_many_every_second_elements(width, dtype):
    """Elements that lie two apart are copied as vectors, and the last of them one by one."""
    positions = 3, (width - 1) // 2 + 1
    how = Geometry((5, width), (3, 3), (2, 2), (1, 1), ((1, 1), (1, 1)), 2, positions)
    given = operands(how, 2, 1, 2, dtype)
    limit = 1e-5 if dtype is np.float32 else 1e-13
    for mine, theirs in zip(found(how, *given), expected(how, *given), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=limit, atol=limit * max(1, np.abs(theirs).max()))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_windows_that_reach_far_behind_the_last_row(dtype):
    """The zeros behind the last row of the last plane are read far behind the plane."""
    how = {"stride": (3, 2, 1), "padding": (1, 2, 3), "dilation": (4, 4, 4)}
    torch.manual_seed(0)
    dtypes = getattr(torch, dtype), getattr(weft, dtype)
    found = []
    x, w = torch.randint(-9, 9, (2, 2, 4, 4, 4)), torch.randint(-9, 9, (2, 2, 4, 5, 6))
    for library, own in zip((torch, weft), dtypes, strict=True):
        a, b = (library.asarray(each.numpy()).to(own).requires_grad_() for each in (x, w))
        spread = library.nn.functional.conv_transpose3d(a, b, output_padding=(2, 3, 1), groups=2, **how)
        spread.square().sum().backward()
        found.append([spread.detach().numpy(), a.grad.numpy(), b.grad.numpy()])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_elements_that_are_not_finite_stay_in_their_windows():
    how = Geometry((6, 6), (3, 3), (1, 1), (1, 1), ((0, 0), (0, 0)), 1, (4, 4))
    x, w, ct = operands(how, 1, 2, 3, np.float32)
    x[0, 0, 2, 0] = np.inf  # only the left column of the window ever reads it
    for mine, theirs in zip(found(how, x, w, ct), expected(how, x, w, ct), strict=True):
        np.testing.assert_array_equal(np.isfinite(mine), np.isfinite(theirs))


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("negated", ["input", "weight", "bias", "ct"])
def test_pending_negation(groups, negated):
    plain = {"input": weft.randn(2, 4, 7), "weight": weft.randn(4, 4 // groups, 3), "bias": weft.randn(4)}
    plain["ct"] = weft.randn(2, 4, 5)
    results = []
    for tensors in (plain, plain | {negated: (-plain[negated])._neg_view()}):
        leaves = [tensors[name].detach().requires_grad_() for name in ("input", "weight", "bias")]
        y = weft.nn.functional.conv1d(*leaves, groups=groups)
        results.append([y, *weft.autograd.grad(y, leaves, tensors["ct"])])
    for expected, result in zip(*results, strict=True):
        weft.testing.assert_close(result, expected)
