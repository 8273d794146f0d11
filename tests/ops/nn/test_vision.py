import numpy as np
import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import check

import weft

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@pytest.mark.may_raise(least=0.35)
@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["bilinear", "nearest", "bicubic", "other"]),
    st.sampled_from(["zeros", "border", "reflection", "other"]),
    st.booleans(),
    st.integers(2, 3),
    st.integers(0, 99),
)
def test_grid_sample(mode, padding_mode, align_corners, n, seed):
    torch.manual_seed(seed)
    x = torch.randn(2, 3, *(4, 5, 3)[:n], dtype=torch.float64)
    grid = torch.randn(2, *(3, 2, 2)[:n], n, dtype=torch.float64)
    check(F + "grid_sample", x, grid, mode, padding_mode, align_corners)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(["bilinear", "nearest"]),
    st.sampled_from(["zeros", "border", "reflection"]),
    st.booleans(),
    st.tuples(st.integers(1, 9), st.integers(1, 12), st.integers(1, 12)),
    st.integers(0, 2**32 - 1),
)
def test_grid_sample_has_pytorchs_bits(mode, padding_mode, align_corners, shape, seed):
    random = np.random.default_rng(seed)
    image = random.normal(size=(2, *shape)).astype(np.float32)
    grid = random.uniform(-1.3, 1.3, (2, 7, 9, 2)).astype(np.float32)

    def sampled(module):
        sample = module.nn.functional.grid_sample
        tensors = module.from_numpy(image), module.from_numpy(grid)
        return sample(*tensors, mode, padding_mode, align_corners).numpy()

    np.testing.assert_array_equal(sampled(weft), sampled(torch))


@pytest.mark.refuses(2)
def test_grid_sample_outside_of_everything():
    points = torch.tensor([torch.nan, torch.inf, -torch.inf, 1e30, -5.0, 1.0]).view(1, 3, 1, 2)
    check(F + "grid_sample", torch.ones(1, 1, 3, 3), points, align_corners=True)
    check(F + "grid_sample", torch.ones(1, 1, 3, 3), points[..., :1], align_corners=True)
    check(F + "grid_sample", torch.ones(2, 1, 3, 3), points, align_corners=True)
    check("grid_sampler_2d", torch.ones(1, 1, 3, 3), points[:, 2:], 1, 2, False)


@pytest.mark.refuses(
    {
        "size0-True": 1,
        "size0-False": 1,
        "size1-True": 1,
        "size1-False": 1,
        "size2-True": 1,
        "size2-False": 1,
        "size4-True": 2,
        "size4-False": 2,
    }
)
@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 1, 1, 5), (2, 1, 2, 3, 4), (2, 1, 3), (2, 1, 0, 3)])
def test_affine_grid(size, align_corners):
    n = len(size) - 2
    check(F + "affine_grid", torch.randn(2, n, n + 1, dtype=torch.float64), size, align_corners)
    check(F + "affine_grid", torch.randn(2, n, n), size, align_corners)


def test_points_of_nearest_elements_have_a_zero_gradient():
    image = weft.rand(1, 2, 4, 4, requires_grad=True)
    points = weft.zeros(1, 3, 3, 2, requires_grad=True)
    found = weft.nn.functional.grid_sample(image, points, mode="nearest", align_corners=False)
    of_image, of_points = weft.autograd.grad(found.sum(), (image, points))
    assert of_image.sum() == 18
    assert of_points.equal(weft.zeros(1, 3, 3, 2))


def test_points_of_nearest_elements_are_differentiated_twice():
    found = []
    for library in (torch, weft):
        image = library.arange(16.0).view(1, 1, 4, 4).requires_grad_()
        points = library.zeros(1, 3, 3, 2, requires_grad=True)
        weights = library.ones(1, 1, 3, 3, requires_grad=True)
        values = library.nn.functional.grid_sample(image, points, mode="nearest", align_corners=False)
        first = library.autograd.grad(values, (image, points), weights, create_graph=True)
        assert [each.requires_grad for each in first] == [True, True]
        second = library.autograd.grad([each.sum() for each in first], (points, weights))
        found.append([each.tolist() for each in (*first, *second)])
    assert found[0] == found[1]


UNFIT = """
torch.nn.functional.grid_sample(torch.ones(1, 1, 2, 2) > 0, torch.ones(1, 1, 2, 2))  # raises
torch.nn.functional.grid_sample(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2) > 0)  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("dtype", [weft.float32, weft.float64])
def test_the_kernel_of_the_cpu_has_the_bits_of_other_devices(mode, dtype, monkeypatch):
    weft.manual_seed(3)
    image, points = weft.randn(2, 19, 5, 6, dtype=dtype), weft.randn(2, 4, 7, 2, dtype=dtype)
    image[0, :, 2, 3], image[1, 18, 4, 5] = weft.inf, weft.nan
    points[0, 0, 0, 0], points[1, 1, 1, 1] = weft.nan, weft.inf

    def sampled():
        return weft.nn.functional.grid_sample(image, points, mode, align_corners=False)

    found = sampled()
    monkeypatch.delitem(weft.device("cpu").backend.extras, "blend")
    assert found.numpy().tobytes() == sampled().numpy().tobytes()


def test_the_gradient_of_samples_has_a_gradient():
    weft.manual_seed(3)
    image = weft.rand(1, 2, 4, 4, dtype=weft.float64, requires_grad=True)
    points = weft.rand(1, 3, 3, 2, dtype=weft.float64, requires_grad=True)

    def sampled(image, points):
        return weft.nn.functional.grid_sample(image, points, align_corners=False)

    assert weft.autograd.gradgradcheck(sampled, (image, points))
    # A negation that waits belongs to the values.
    lazy = weft.randn(1, 2, 4, 4, dtype=weft.complex128).conj().imag
    assert lazy.is_neg()
    assert sampled(lazy, points).equal(sampled(lazy.clone().resolve_neg(), points))


def test_a_call_in_inference_mode_leaves_nothing_that_training_cannot_use():
    image, points = weft.randn(1, 2, 5, 5), weft.rand(1, 3, 3, 2)
    with weft.inference_mode():
        expected = weft.nn.functional.grid_sample(image, points, align_corners=False)
    points.requires_grad_()
    found = weft.nn.functional.grid_sample(image, points, align_corners=False)
    found.sum().backward()
    assert weft.equal(found, expected) and points.grad.shape == points.shape


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_points_in_an_image_with_more_columns_than_float32_counts(mode):
    columns = 2**24 + 3
    image = weft.arange(columns, dtype=weft.int32).to(weft.float32).view(1, 1, 1, columns)
    points = weft.tensor([[[[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]]])
    given = torch.from_numpy(image.numpy()), torch.from_numpy(points.numpy())
    expected = torch.nn.functional.grid_sample(*given, mode=mode, align_corners=True)
    found = weft.nn.functional.grid_sample(image, points, mode=mode, align_corners=True)
    assert found[..., 0].item() == 0.0
    assert found[..., 2].item() == expected[..., 2].item()
